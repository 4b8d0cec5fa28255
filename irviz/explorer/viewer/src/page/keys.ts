// The keys of the viewer, each with what it does; help.tsx lists them.

import { goToChange } from "../graph/change_steps";
import { toggleAll } from "../graph/node_actions";
import { ZOOM_STEP } from "../graph/viewport";
import { compareWith, compareWithParent, stepStage } from "../stages/stage_actions";
import type { State } from "../state";

interface Key {
  /** As `nameOf` writes it; several for the same. */
  keys: readonly string[];
  words: string;
  run(state: State, root: HTMLElement): void;
}

/** Close what is open, one thing a time, the innermost first. */
function closeOne(state: State, root: HTMLElement) {
  if (state.openMenu.peek()) state.openMenu.value = null;
  else if (state.isDrawer.peek() && state.isInspectorOpen.peek()) {
    state.isInspectorOpen.value = false;
    root.focus({ preventScroll: true }); // what had the focus may be gone
  } else if (state.isComparing.peek() && state.can("Compare")) compareWith(state, "");
  else if (state.selection.peek().node) state.select("");
  else if (state.query.peek()) state.query.value = "";
  else if (state.isFull.peek()) state.isFull.value = false;
}

export const KEYS: readonly Key[] = [
  {
    keys: ["/"],
    words: "find a node",
    run: (_, root) => root.querySelector<HTMLInputElement>(".irviz-search input")?.select(),
  },
  {
    keys: ["Alt+ArrowLeft", "Alt+ArrowUp"],
    words: "the stage before; of a comparison with it, both",
    run: (state) => stepStage(state, -1),
  },
  {
    keys: ["Alt+ArrowRight", "Alt+ArrowDown"],
    words: "the stage after",
    run: (state) => stepStage(state, 1),
  },
  {
    keys: ["Alt+Shift+ArrowLeft", "Alt+Shift+ArrowUp"],
    words: "the last stage before that changed something",
    run: (state) => stepStage(state, -1, true),
  },
  {
    keys: ["Alt+Shift+ArrowRight", "Alt+Shift+ArrowDown"],
    words: "the next stage that changed something",
    run: (state) => stepStage(state, 1, true),
  },
  {
    keys: ["d"],
    words: "compare with the stage before, and back",
    run: (state) => compareWithParent(state),
  },
  {
    keys: ["Ctrl+z"],
    words: "undo the last change to the stages",
    run(state) {
      if (state.canUndo.peek()) state.ask({ action: "Undo" });
    },
  },
  {
    keys: ["Ctrl+Shift+z"],
    words: "redo it",
    run(state) {
      if (state.canRedo.peek()) state.ask({ action: "Redo" });
    },
  },
  { keys: ["n"], words: "the next change", run: (state) => goToChange(state, 1) },
  { keys: ["p"], words: "the change before", run: (state) => goToChange(state, -1) },
  { keys: ["["], words: "back to what was looked at", run: (state) => state.goBack(-1) },
  { keys: ["]"], words: "forward", run: (state) => state.goBack(1) },
  { keys: ["+", "="], words: "zoom in", run: (state) => state.zoom.peek()?.(ZOOM_STEP) },
  { keys: ["-"], words: "zoom out", run: (state) => state.zoom.peek()?.(1 / ZOOM_STEP) },
  {
    keys: ["0"],
    words: "show all of the graph; again: as much of it as can be read",
    run: (state) => state.fit(),
  },
  {
    keys: ["o"],
    words: "open all groups, as far as there is room",
    run: (state) => toggleAll(state, true),
  },
  { keys: ["c"], words: "close all groups", run: (state) => toggleAll(state, false) },
  {
    keys: ["i"],
    words: "show or hide the inspector",
    run(state) {
      state.isInspectorOpen.value = !state.isInspectorOpen.peek();
    },
  },
  {
    keys: ["f"],
    words: "full screen",
    run(state) {
      state.isFull.value = !state.isFull.peek();
    },
  },
  {
    keys: ["t"],
    words: "where the time of the recorded passes went",
    run(state) {
      state.areTimesOpen.value = state.times.peek().length > 0;
    },
  },
  {
    keys: ["?"],
    words: "this list",
    run(state) {
      state.isHelpOpen.value = true;
    },
  },
  {
    keys: ["Escape"],
    words: "close the menu or drawer; end the comparison; select nothing; clear the search",
    run: closeOne,
  },
];

/** Keys that parts of the viewer have when they have the focus. */
export const OTHER_KEYS: readonly { part: string; keys: readonly string[]; words: string }[] = [
  { part: "Stages", keys: ["ArrowUp", "ArrowDown"], words: "go through the stages" },
  { part: "Stages", keys: ["Enter"], words: "in the filter: to the first that fits" },
  { part: "Stages", keys: ["ArrowLeft", "ArrowRight"], words: "fold a pass; step through stages" },
  { part: "Stages", keys: ["F2"], words: "rename" },
  { part: "Stages", keys: ["Delete"], words: "drop, with what was made from it" },
  { part: "Search", keys: ["Enter"], words: "go to the node, then to the next" },
  { part: "Search", keys: ["Shift+Enter"], words: "go to the one before" },
  { part: "Search", keys: ["Escape"], words: "close the list; then clear the words" },
  { part: "Graph", keys: ["Arrow keys"], words: "go to a node nearby" },
  { part: "Graph", keys: ["Shift+Arrow keys"], words: "move the picture" },
  { part: "Graph", keys: ["Shift+wheel"], words: "move it sideways" },
  { part: "Graph", keys: ["Enter"], words: "open or close a group; go to a called PrimFunc" },
  { part: "Graph", keys: ["Shift+Enter"], words: "close what is around" },
  { part: "Graph", keys: ["Home", "End"], words: "the first node, the last node" },
  { part: "Loops", keys: ["ArrowUp", "ArrowDown"], words: "go to a loop or block" },
  { part: "Loops", keys: ["Shift+Arrow keys"], words: "choose one more for a step" },
  { part: "Loops", keys: ["Enter"], words: "to the steps that are legal there" },
  { part: "Loops", keys: ["Escape"], words: "back from the steps; choose none" },
  { part: "TVMScript", keys: ["Ctrl+F"], words: "find in the text" },
  { part: "TVMScript", keys: ["Enter"], words: "select the line's node; go to a function" },
  {
    part: "TVMScript",
    keys: ["Alt+Enter"],
    words: "with Blame: to the pass that changed the line",
  },
  { part: "Times", keys: ["Arrow keys"], words: "go to a pass beside, around or inside" },
  { part: "Times", keys: ["Enter"], words: "to the stage that the pass made" },
  { part: "Everywhere", keys: ["Shift+F10"], words: "the menu of a node or stage" },
];

type KeyPress = Pick<KeyboardEvent, "key" | "altKey" | "shiftKey" | "ctrlKey" | "metaKey">;

const isCommand = ({ ctrlKey, metaKey }: KeyPress) => ctrlKey || metaKey;

/** Name the key of an event: `Alt+Shift+ArrowLeft`; ⌘ is Ctrl. Otherwise Shift is part of the
 * character. */
export function nameOf(event: KeyPress): string {
  const { key, altKey, shiftKey } = event;
  const shift = shiftKey ? "Shift+" : "";
  if (isCommand(event)) return `Ctrl+${shift}${key.toLowerCase()}`;
  return altKey ? `Alt+${shift}${key}` : key;
}

/** Tell whether what has the focus takes characters, so that keys are text. */
function takesText(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable) return target.getAttribute("aria-readonly") !== "true";
  if (target.matches("textarea, select")) return true;
  return target.matches("input:not([type=checkbox], [type=radio], [type=button], [type=range])");
}

/** Do what a key stands for; keys of forms and texts are theirs, but for an Escape that they have no
 * use for, and none is left to the notebook but those with Ctrl. */
export function pressKey(state: State, root: HTMLElement, event: KeyboardEvent) {
  const target = event.composedPath()[0] ?? null;
  const inside = (parts: string) => target instanceof Element && target.closest(parts) !== null;
  const name = nameOf(event);
  const found = KEYS.find(({ keys }) => keys.includes(name));
  const isText = takesText(target);
  if (isCommand(event) && (isText || !found)) return; // the browser's and the notebook's
  event.stopPropagation();
  const isLetter = name.length === 1 && inside("button"); // which has no use for it
  const isTheirs = isText || (!isCommand(event) && inside(".irviz-form") && !isLetter);
  if (event.defaultPrevented || (isTheirs && name !== "Escape") || inside("dialog")) return;
  if (!found) return;
  event.preventDefault();
  found.run(state, root);
}

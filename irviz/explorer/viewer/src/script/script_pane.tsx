// The TVMScript of a stage, also beside NumPy, or of two in comparison: lines and nodes lead to each
// other.

import { openSearchPanel } from "@codemirror/search";
import { type ReadonlySignal, useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { SideMark } from "../controls/before_after_badge";
import { Button } from "../controls/button";
import type { Change, Script, Side } from "../schema";
import { goTo as goToStage } from "../stages/stage_actions";
import type { State } from "../state";
import type { BlameActions } from "./blame_gutter";
import { indexNumPy, linesOfNode, madeOf, type NumPyIndex } from "./numpy_lines";
import {
  fold,
  openEditor,
  openOne,
  type ScriptEditor,
  showLine,
  type TextPlace,
  topLine,
} from "./script_editor";
import {
  drawnId,
  drawnOn,
  functionNamed,
  indexScript,
  type Lines,
  lineOf,
  linesOf,
  nodeOn,
  type ScriptIndex,
} from "./script_lines";
import { markLines } from "./script_marks";

const SIDE_BY_SIDE = 700; // px: in a narrower pane both texts are in one
const LONG = 120; // lines: of a longer text all functions but the current one are folded
const SIDES = ["current", "reference"] as const;

export function ScriptPane({ state }: { state: State }) {
  const root = useRef<HTMLElement>(null);
  const body = useRef<HTMLDivElement>(null);
  const isWide = useSignal(true);
  const isCollapsed = useSignal(true);
  const chosenFolding = useSignal<boolean | null>(null); // null: as the length of the text demands
  const shownFunction = useSignal("");
  const chunk = useSignal(-1); // the stretch that differs which was gone to
  const editor = useSignal<ScriptEditor | null>(null);
  const numpy = useSignal<{ index: NumPyIndex; editor: ScriptEditor } | null>(null);
  const pointed = useSignal(0); // the line of TVMScript that the pointer is on, in either text
  const current = useIndex(state, "current");
  const reference = useIndex(state, "reference");
  const isFolded = useComputed(
    () => chosenFolding.value ?? (current.value?.lines.length ?? 0) > LONG,
  );

  useEffect(() => {
    const element = root.current;
    if (!element) return;
    const observer = new ResizeObserver(() => {
      if (element.clientWidth) isWide.value = element.clientWidth >= SIDE_BY_SIDE;
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      editor.peek()?.close();
      numpy.peek()?.editor.close();
    };
  }, []);

  // the text
  useSignalEffect(() => {
    const [index, other] = [current.value, reference.value];
    const name = state.scene.peek().function;
    const options = {
      ...{ isWide: isWide.value, isCollapsed: isCollapsed.value, isWrapped: state.hasNumpy.value },
      unfolded: isFolded.peek() ? name : null,
      blame: state.hasBlame.value ? blame : null,
    };
    if (!body.current) return;
    const before = editor.peek();
    const seen = before?.texts.current;
    const line = seen && name === shownFunction.peek() ? topLine(before) : 0;
    const offset = seen && line ? line - (functionNamed(seen.index, name)?.first ?? line) : 0;
    before?.close();
    numpy.peek()?.editor.close();
    chunk.value = -1;
    shownFunction.value = name;
    editor.value = index && open(index, body.current);
    numpy.value = index && !other && state.hasNumpy.value ? openNumPy(index, body.current) : null;
    if (editor.value) toFunction(editor.value, name, offset);

    function open(script: ScriptIndex, parent: HTMLElement) {
      return openEditor(parent, script, other, options, { choose, point });
    }

    function openNumPy(script: ScriptIndex, parent: HTMLElement) {
      const written = indexNumPy(script);
      if (!written) return null;
      const origin = (place: TextPlace) => ({ ...place, line: written.origins[place.line] ?? 0 });
      const actions = {
        choose: (place: TextPlace) => choose(origin(place)),
        point: (place: TextPlace | null) => point(place && origin(place)),
      };
      return { index: written, editor: openOne(parent, written, options, actions, "NumPy") };
    }
  });

  const blame: BlameActions = {
    labelOf: (stage) => state.rows.peek().find(({ id }) => id === stage)?.label ?? "",
    goTo: (line) => goToStage(state, line),
  };

  // another function
  useSignalEffect(() => {
    const name = state.scene.value.function;
    const opened = editor.peek();
    if (!opened || name === shownFunction.peek()) return;
    shownFunction.value = name;
    foldTexts(isFolded.peek() ? name : null);
    toFunction(opened, name);
  });

  // the marks of nodes
  useSignalEffect(() => {
    const [opened, scene] = [editor.value, state.scene.value];
    const [selection, hovered] = [state.selection.value, state.hovered.value];
    const blocks = state.blockLines.value;
    for (const side of SIDES) {
      const text = opened?.texts[side];
      const picture = scene[side];
      if (!text?.view || picture?.stage !== text.index.script.stage) continue;
      const line = (chosen: { node: string; side: Side }) =>
        chosen.side === side ? lineOf(text.index, blocks, picture.nodes[chosen.node]) : 0;
      const isLinked = numpy.value && side === "current";
      const lines = {
        selected: [line(selection)],
        hovered: [line(hovered), isLinked ? pointed.value : 0],
      };
      text.view.dispatch({ effects: markLines.of(lines) });
      if (!isLinked || !numpy.value) continue;
      const { index, editor: opposite } = numpy.value;
      const ofNode = (at: number) => madeOf(index, linesOfNode(text.index, at));
      const here = madeOf(index, { first: pointed.value, last: pointed.value });
      const marks = {
        selected: ofNode(line(selection)),
        hovered: here.length ? here : ofNode(line(hovered)),
      };
      opposite.texts.current.view.dispatch({ effects: markLines.of(marks) });
    }
  });

  // the selected node is scrolled to
  useSignalEffect(() => {
    const { node, side } = state.selection.value;
    const [opened, picture] = [editor.value, state.scene.value[side]];
    const text = opened?.texts[side];
    if (!opened || !text || picture?.stage !== text.index.script.stage) return;
    const line = lineOf(text.index, state.blockLines.value, picture.nodes[node]);
    showLine(opened, side, line);
    if (side === "current") showNumPy(linesOfNode(text.index, line));
  });

  // the change that was gone to
  useSignalEffect(() => {
    const [opened, change] = [editor.value, state.scene.value.changes[state.change.value]];
    if (!opened || !change) return;
    for (const side of SIDES) {
      const line = linesOfChange(opened, change, side)[0];
      if (!line) continue;
      showLine(opened, side, line);
      const found = opened.stretches.findIndex((one) => isIn(line, one[side]));
      if (found >= 0) chunk.value = found;
      return;
    }
  });

  function choose({ side, line, word, link }: TextPlace): void {
    const text = editor.peek()?.texts[side];
    if (!text) return;
    if (link && !link.isDefinition) {
      goTo(link.name, side);
      return;
    }
    if (link && side === "current") state.ask({ action: "Focus", function: link.name });
    if (link) return;
    if (numpy.peek()) showLine(editor.peek() as ScriptEditor, side, line);
    showNumPy({ first: line, last: line });
    const place = nodeOn(text.index, line, word);
    const id = drawnAt(text.index, side, line, word);
    if (id) state.select(id, side);
    else if (place && side === "current") state.reveal(place.function, place.node);
  }

  function point(place: TextPlace | null): void {
    const text = place && editor.peek()?.texts[place.side];
    const side = place?.side ?? "current";
    const node = text ? drawnAt(text.index, side, place.line, place.word) : "";
    pointed.value = place && side === "current" ? place.line : 0;
    const hovered = state.hovered.peek();
    if (hovered.node !== node || hovered.side !== side) state.hovered.value = { node, side };
  }

  /** Return the id of what is drawn for a line, "" for nothing. */
  function drawnAt(index: ScriptIndex, side: Side, line: number, word: string): string {
    const picture = state.scene.peek()[side];
    const bound = drawnId(picture, nodeOn(index, line, word));
    return bound || drawnOn(index, state.blockLines.peek(), picture, line, word);
  }

  function goTo(name: string, side: Side = "current"): void {
    const opened = editor.peek();
    const text = opened?.texts[side];
    if (!opened || !text) return;
    showLine(opened, side, functionNamed(text.index, name)?.first ?? 0, "start");
    if (side === "current") shownFunction.value = name;
    if (side === "current") showNumPyOf(name);
  }

  /** Scroll the NumPy to what was made of lines of TVMScript. */
  function showNumPy(lines: Lines): void {
    const opened = numpy.peek();
    if (opened) showLine(opened.editor, "current", madeOf(opened.index, lines)[0] ?? 0);
  }

  function showNumPyOf(name: string): void {
    const opened = numpy.peek();
    const found = opened && functionNamed(opened.index, name);
    if (found) showLine(opened.editor, "current", found.first, "start");
  }

  function foldTexts(unfolded: string | null): void {
    for (const opened of [editor.peek(), numpy.peek()?.editor]) {
      if (opened) fold(opened, unfolded);
    }
  }

  function setFolding(isOn: boolean): void {
    const name = shownFunction.peek();
    chosenFolding.value = isOn;
    foldTexts(isOn ? name : null);
    goTo(name);
  }

  /** Go to the next stretch that differs, or to the one before. */
  function step(by: 1 | -1): void {
    const opened = editor.peek();
    const count = opened?.stretches.length;
    if (!opened || !count) return;
    const from = chunk.peek() < 0 && by < 0 ? 0 : chunk.peek();
    chunk.value = (from + by + count) % count;
    const found = opened.stretches[chunk.value];
    if (!found) return;
    showLine(opened, "current", found.current.first);
    const change = state.scene
      .peek()
      .changes.findIndex((one) =>
        SIDES.some((side) =>
          linesOfChange(opened, one, side).some((line) => isIn(line, found[side])),
        ),
      );
    if (change >= 0) state.change.value = change;
  }

  const linesOfChange = (opened: ScriptEditor, change: Change, side: Side): number[] => {
    const index = opened.texts[side]?.index;
    if (!index) return [];
    return linesOf(index, state.blockLines.peek(), state.scene.peek()[side], change[side]);
  };

  /** Show a function, or what differs in it. */
  function toFunction(opened: ScriptEditor, name: string, offset = 0): void {
    const found = functionNamed(opened.texts.current.index, name);
    if (!found) return;
    if (!opened.texts.reference) {
      showLine(opened, "current", Math.min(found.first + offset, found.last), "start");
      showNumPyOf(name);
      return;
    }
    const first = opened.stretches.find((one) => one.current.last >= found.first);
    if (first && first.current.first <= found.last) {
      showLine(opened, "current", first.current.first);
    }
  }

  const { current: shown, reference: compared } = state.scripts.value;
  const count = editor.value?.stretches.length ?? 0;
  const names = current.value?.functions.map(({ name }) => name) ?? [];
  return (
    <section class="irviz-script" aria-label="TVMScript" ref={root} {...KEYS_STAY}>
      <header class="irviz-script-header">
        <div class="irviz-script-stages">
          {compared && shown && <Stage side="reference" script={compared} />}
          {compared && shown && <Stage side="current" script={shown} />}
          {!(compared && shown) && <span>{shown ? nameOf(shown) : "TVMScript"}</span>}
        </div>
        {compared && shown && (
          <span class="irviz-script-group">
            <span role="status">
              {chunk.value < 0 ? differing(count) : `${chunk.value + 1} of ${count}`}
            </span>
            <Button
              title="Previous difference in the text"
              icon="up"
              isDisabled={!count}
              onPress={() => step(-1)}
            />
            <Button
              title="Next difference in the text"
              icon="down"
              isDisabled={!count}
              onPress={() => step(1)}
            />
            <Button
              title="Hide lines that do not differ"
              isPressed={isCollapsed.value}
              onPress={() => {
                isCollapsed.value = !isCollapsed.value;
              }}
            >
              Only differences
            </Button>
          </span>
        )}
        {shown && (
          <span class="irviz-script-group">
            <select
              class="irviz-field"
              aria-label="Function"
              title="Go to a function"
              value={names.includes(shownFunction.value) ? shownFunction.value : ""}
              onChange={(event) => goTo(event.currentTarget.value)}
            >
              <option value="" hidden>
                functions
              </option>
              {names.map((name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
            {!compared && (
              <>
                <Button
                  title="Show the functions as loops over NumPy arrays"
                  isPressed={state.hasNumpy.value}
                  onPress={() => state.set("hasNumpy", !state.hasNumpy.peek())}
                >
                  NumPy
                </Button>
                <Button
                  title="Show which pass changed each line last"
                  isPressed={state.hasBlame.value}
                  onPress={() => state.set("hasBlame", !state.hasBlame.peek())}
                >
                  Blame
                </Button>
                <Button
                  title="Fold all functions but this one"
                  isPressed={isFolded.value}
                  onPress={() => setFolding(!isFolded.value)}
                >
                  Fold others
                </Button>
              </>
            )}
            <Button title="Find in the text (Ctrl+F)" icon="search" onPress={find} />
          </span>
        )}
      </header>
      <div
        class="irviz-script-body"
        data-numpy={numpy.value ? "" : undefined}
        data-collapsed={compared && isCollapsed.value ? "" : undefined}
        ref={body}
      />
      {!shown && (
        <p class="irviz-script-none">
          {state.host.isLive ? "TVMScript is being printed …" : "The text was not recorded."}
        </p>
      )}
    </section>
  );

  function find(): void {
    const opened = numpy.peek()?.editor ?? null;
    const isThere = opened && (!isWide.peek() || opened.texts.current.view.hasFocus);
    const view = (isThere ? opened : editor.peek())?.texts.current.view;
    if (view) openSearchPanel(view);
  }
}

/** The notebook does not get the keys that the text takes. */
const KEYS_STAY = {
  "data-lm-suppress-shortcuts": "true",
  onKeyDown: (event: KeyboardEvent) => event.defaultPrevented && event.stopPropagation(),
};

function Stage({ side, script }: { side: Side; script: Script }) {
  return (
    <span title={nameOf(script)}>
      <SideMark side={side} /> {nameOf(script)}
    </span>
  );
}

const nameOf = (script: Script) => `${script.stage} ${script.label}`;
const differing = (count: number) =>
  `${count} ${count === 1 ? "difference" : "differences"} in the text`;
const isIn = (line: number, { first, last }: Lines) => first <= line && line <= last;

const isSameBlame = (one: Script["blame"], other: Script["blame"]) =>
  one.length === other.length && one.every(({ stage }, at) => stage === other[at]?.stage);

/** The index of one of the scripts, made when another text is shown. */
function useIndex(state: State, side: Side): ReadonlySignal<ScriptIndex | null> {
  const last = useRef<ScriptIndex | null>(null);
  return useComputed(() => {
    const script = state.scripts.value[side];
    const known = last.current?.script;
    const isKnown =
      known &&
      known.stage === script?.stage &&
      known.text === script.text &&
      known.numpy.length === script.numpy.length &&
      isSameBlame(known.blame, script.blame);
    if (!isKnown) last.current = script && indexScript(script);
    return last.current;
  });
}

// What can be done with stages, for the list of stages, the toolbar and the keys.

import type { StageRow } from "../schema";
import type { MenuItem, State } from "../state";
import { stageBeside, stageListItems } from "./stage_list_rows";

/** Show a stage, compared with `reference`, "" for no other; by default what it is compared with stays. */
export const checkout = (state: State, stage: string, reference: string | null = null) => {
  if (!state.can("Checkout") || (stage === shownNext(state) && reference === null)) return;
  const isShown = stage === state.current.peek()?.id;
  const isSame = reference === (state.scene.peek().reference?.stage ?? "");
  if (isShown && isSame && !state.asked.peek()) return; // no answer would come
  state.asked.value = isShown ? "" : stage;
  state.ask({ action: "Checkout", stage, reference });
};

/** Show a node in a stage; without a node it is the stage. */
export function goTo(state: State, to: { stage: string; function: string; node: string }) {
  if (to.stage !== shownNext(state) && state.can("Reveal")) state.asked.value = to.stage;
  const { function: name, node, stage } = to;
  state.ask({ action: "Reveal", function: name, node, stage });
}

/** The stage that is shown, or will be: keys may be faster than the kernel. */
const shownNext = (state: State) => state.asked.peek() || (state.current.peek()?.id ?? "");

/** Compare the shown stage with another, or with itself: then with none. */
export const compareWith = (state: State, stage: string) =>
  state.ask({ action: "Compare", reference: stage === state.current.peek()?.id ? "" : stage });

/** Compare with the stage that the shown one was made from; if it is, end the comparison. */
export function compareWithParent(state: State) {
  const { id, parent } = state.current.peek() ?? {};
  if (!parent && !state.isComparing.peek()) {
    const words = `Stage ${id} was made from no other stage: choose one to compare with, above.`;
    state.ask({ action: "Say", words, isError: false });
    return;
  }
  const isShown = state.scene.peek().reference?.stage === parent;
  state.ask({ action: "Compare", reference: isShown || !parent ? "" : parent });
}

/** Show what was compared with, and compare with what was shown. */
export function swapSides(state: State) {
  const { current, reference } = state.scene.peek();
  if (!current || !reference) return;
  checkout(state, reference.stage, current.stage);
}

/** Show a stage. A comparison with the stage before goes along: 8 | 9 becomes 9 | 10. */
export function visit(state: State, stage: string) {
  const rows = state.rows.peek();
  const parentOf = (stage: string) => rows.find(({ id }) => id === stage)?.parent ?? "";
  const { current, reference } = state.scene.peek();
  const isPair = reference !== null && reference.stage === parentOf(current?.stage ?? "");
  checkout(state, stage, isPair && parentOf(stage) ? parentOf(stage) : null);
}

/** Visit the stage `by` stages further down, of those that are listed, or that changed something. */
export function stepStage(state: State, by: number, skipsSame = false) {
  const hidesSame = skipsSame || state.hidesSame.peek();
  const shown = shownNext(state);
  const items = stageListItems(state.rows.peek(), {
    hidesSame,
    words: "",
    folded: new Set<string>(),
  });
  const next = stageBeside(items, shown, by);
  if (next !== undefined) visit(state, next);
}

export const canDrop = (state: State, row: StageRow) =>
  row.id !== state.rows.value[0]?.id && state.can("Drop");

export function stageMenu(state: State, row: StageRow): MenuItem[] {
  const isShown = row.isShown;
  const reference = state.scene.peek().reference?.stage;
  const isPinned = reference === row.id;
  const items: MenuItem[] = [
    {
      label: "Show this stage",
      hint: "B after",
      isDisabled: isShown || !state.can("Checkout"),
      run: () => checkout(state, row.id),
    },
    {
      label: isPinned ? "Compare with none" : "Compare the shown stage with this",
      hint: "A before",
      isDisabled: isShown || !state.can("Compare"),
      run: () => state.ask({ action: "Compare", reference: isPinned ? "" : row.id }),
    },
    {
      label: "Show, compared with its parent",
      hint: "d",
      isDisabled: !row.parent || !state.can("Compare"),
      run: () => checkout(state, row.id, row.parent),
    },
  ];
  if (!state.host.isLive) return items;
  return [
    ...items,
    {
      label: "Rename",
      hint: "F2",
      isSeparate: true,
      isDisabled: !state.can("Rename"),
      run() {
        state.renamed.value = row.id;
      },
    },
    {
      label: "Drop, with what was made from it",
      hint: "Delete",
      isDisabled: !canDrop(state, row),
      run: () => state.ask({ action: "Drop", stage: row.id }),
    },
  ];
}

/** The stages as a menu, of which one is chosen. */
export function stageChoices(
  state: State,
  chosen: string | undefined,
  choose: (stage: string) => void,
): MenuItem[] {
  return state.rows.peek().map((row) => ({
    label: `${row.id}  ${row.label}`,
    hint: row.changes > 0 ? `Δ ${row.changes}` : "",
    isChecked: row.id === chosen,
    run: () => choose(row.id),
  }));
}

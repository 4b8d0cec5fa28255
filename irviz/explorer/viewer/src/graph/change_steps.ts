// From one change of a comparison to the next.

import type { Change, Selection } from "../schema";
import type { State } from "../state";

/** Return the change that is reached from another by steps, around the end; -1 for none. */
export function stepChange(count: number, from: number, steps: number): number {
  if (!count) return -1;
  if (from < 0) return steps > 0 ? 0 : count - 1;
  return (((from + steps) % count) + count) % count;
}

/** Return the place of the change that the selected node is of, -1 for none. */
export const changeOf = (changes: readonly Change[], { node, side }: Selection): number =>
  node ? changes.findIndex((one) => one[side].includes(node)) : -1;

/** Go to another change, which both pictures then show. */
export function goToChange(state: State, steps: number) {
  const { changes } = state.scene.peek();
  if (!changes.length) {
    const words = state.isComparing.peek()
      ? "no change is shown here"
      : "changes are those of a comparison: d compares with the stage before";
    state.ask({ action: "Say", words, isError: false });
  }
  const next = stepChange(changes.length, state.changeAt.peek(), steps);
  if (next === state.change.peek()) state.change.value = -1; // it is gone to again
  state.change.value = next;
}

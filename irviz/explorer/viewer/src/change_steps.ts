// From one change of a comparison to the next.

import type { State } from "./state";

/** Return the change that is reached from another by steps, around the end; -1 for none. */
export function stepChange(count: number, from: number, steps: number): number {
  if (!count) return -1;
  if (from < 0) return steps > 0 ? 0 : count - 1;
  return (((from + steps) % count) + count) % count;
}

/** Go to another change, which both pictures then show. */
export function goToChange(state: State, steps: number) {
  const from = state.change.peek();
  const next = stepChange(state.scene.peek().changes.length, from, steps);
  if (next === from) state.change.value = -1; // the only one is gone to again
  state.change.value = next;
}

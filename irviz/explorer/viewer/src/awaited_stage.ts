// The stage that was asked for, where its picture takes so long that this has to be said.

import { useLate } from "./delayed";
import type { StageRow } from "./schema";
import type { State } from "./state";

const PATIENCE = 300; // ms

/** Return the stage that is being drawn, undefined until that lasts. */
export function useAwaitedStage(state: State): StageRow | undefined {
  const id = state.host.connection.value === "lost" ? "" : state.asked.value;
  const isLate = useLate(id !== "", PATIENCE, id);
  return isLate ? state.rows.value.find((row) => row.id === id) : undefined;
}

// The stage that was asked for, where its picture takes so long that this has to be said.

import { useLate } from "../controls/show_if_late";
import type { StageRow } from "../schema";
import type { State } from "../state";

const PATIENCE = 300; // ms

/** Return the stage that is being drawn, undefined until that lasts. The kernel tells it, unless it is
 * busy with something else. */
export function useAwaitedStage(state: State): StageRow | undefined {
  const isLost = state.host.connection.value === "lost";
  const asked = isLost ? "" : state.asked.value;
  const isLate = useLate(asked !== "", PATIENCE, asked);
  const id = isLost ? "" : state.status.value.drawing || (isLate ? asked : "");
  return id ? state.rows.value.find((row) => row.id === id) : undefined;
}

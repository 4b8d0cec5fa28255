// The graph of what is looked at, or the graphs of two stages that are compared.

import type { State } from "./state";

export function GraphPane({ state }: { state: State }) {
  return <div class="irviz-graph-pane">{state.scene.value.key}</div>;
}

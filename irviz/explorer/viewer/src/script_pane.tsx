// The TVMScript of the module, or of two stages that are compared.

import type { State } from "./state";

export function ScriptPane({ state }: { state: State }) {
  return <pre class="irviz-script-pane">{state.scripts.value.current?.text}</pre>;
}

// The viewer: all of the explorer that is looked at, in one widget.

import { render as renderInto } from "preact";
import { type AnyModel, liveHost } from "./host";
import { createState, type State } from "./state";

function Viewer({ state }: { state: State }) {
  return (
    <div class="irviz-viewer">
      <ul>
        {state.rows.value.map((row) => (
          <li key={row.id}>
            {row.id} {row.label}
          </li>
        ))}
      </ul>
      <p>{state.scene.value.current?.label}</p>
    </div>
  );
}

function render({ model, el, signal }: { model: AnyModel; el: HTMLElement; signal: AbortSignal }) {
  const state = createState(liveHost(model, signal), signal);
  renderInto(<Viewer state={state} />, el);
  return () => renderInto(null, el);
}

export default { render };

// How large the picture is seen, and buttons that change it.

import { useComputed } from "@preact/signals";
import type { PictureView } from "./picture_view";
import type { State } from "./state";
import { zoom } from "./viewport";

const STEP = 1.25;

export function ZoomBar({ state, view }: { state: State; view: PictureView }) {
  const percent = useComputed(() => `${Math.round((view.seen.value?.scale ?? 1) * 100)} %`);
  const by = (factor: (scale: number) => number) => () => {
    const seen = view.seen.peek();
    if (seen) view.move(zoom(seen, factor(seen.scale)));
  };
  const fit = () => {
    state.viewport.value = null;
  };
  return (
    <fieldset class="irviz-zoom" aria-label="Zoom" data-lm-suppress-shortcuts="true">
      <button type="button" title="Original size" onClick={by((scale) => 1 / scale)}>
        {percent}
      </button>
      <button type="button" title="Zoom out (-)" aria-label="Zoom out" onClick={by(() => 1 / STEP)}>
        −
      </button>
      <button type="button" title="Zoom in (+)" aria-label="Zoom in" onClick={by(() => STEP)}>
        +
      </button>
      <button type="button" title="Fit, as far as text can be read (0)" onClick={fit}>
        Fit
      </button>
    </fieldset>
  );
}

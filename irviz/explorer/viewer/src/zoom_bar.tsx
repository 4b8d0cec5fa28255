// How large the picture is seen, and buttons that change it.

import { useComputed } from "@preact/signals";
import { Button } from "./button";
import type { PictureView } from "./picture_view";
import type { State } from "./state";
import { ZOOM_STEP, zoom } from "./viewport";

export function ZoomBar({ state, view }: { state: State; view: PictureView }) {
  const percent = useComputed(() => `${Math.round((view.seen.value?.scale ?? 1) * 100)} %`);
  const by = (factor: (scale: number) => number) => () => {
    const seen = view.seen.peek();
    if (seen) view.move(zoom(seen, factor(seen.scale)));
  };
  return (
    <fieldset class="irviz-zoom" aria-label="Zoom">
      <Button title="Original size" class="irviz-zoom-percent" onPress={by((scale) => 1 / scale)}>
        {percent}
      </Button>
      <Button title="Zoom out (-)" icon="minus" onPress={by(() => 1 / ZOOM_STEP)} />
      <Button title="Zoom in (+)" icon="plus" onPress={by(() => ZOOM_STEP)} />
      <Button title="Fit, as far as text can be read; again: all of it (0)" onPress={state.fit}>
        Fit
      </Button>
    </fieldset>
  );
}

// How large the picture is seen and how much of it is open, and buttons that change it.

import { useComputed } from "@preact/signals";
import { Button } from "../controls/button";
import type { State } from "../state";
import { groupsOf, toggleAll } from "./node_actions";
import type { PictureView } from "./picture_view";
import { ZOOM_STEP } from "./viewport";

export function ZoomBar({ state, view }: { state: State; view: PictureView }) {
  const percent = useComputed(() => `${Math.round((view.seen.value?.scale ?? 1) * 100)} %`);
  const { areClosed, areOpen } = groupsOf(state);
  return (
    <fieldset class="irviz-zoom" aria-label="Zoom">
      <Button
        title="Original size"
        class="irviz-zoom-percent"
        onPress={() => view.zoom(1 / (view.seen.peek()?.scale ?? 1))}
      >
        {percent}
      </Button>
      <Button title="Zoom out (-)" icon="minus" onPress={() => view.zoom(1 / ZOOM_STEP)} />
      <Button title="Zoom in (+)" icon="plus" onPress={() => view.zoom(ZOOM_STEP)} />
      <Button title="Show all of it; again: as much as can be read (0)" onPress={state.fit}>
        Fit
      </Button>
      {state.can("ToggleAll") && (areClosed || areOpen) && (
        <>
          <Button
            title="Open all groups, as far as there is room (o)"
            isDisabled={!areClosed}
            onPress={() => toggleAll(state, true)}
          >
            Open all
          </Button>
          <Button
            title="Close all groups (c)"
            isDisabled={!areOpen}
            onPress={() => toggleAll(state, false)}
          >
            Close all
          </Button>
        </>
      )}
    </fieldset>
  );
}

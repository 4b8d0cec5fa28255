// What differs between the two pictures, in words, and the way from change to change.

import { Button } from "../controls/button";
import type { State } from "../state";
import { goToChange } from "./change_steps";

export function ChangeBar({ state }: { state: State }) {
  const { summary, changes } = state.scene.value;
  const place = state.changeAt.value;
  const change = changes[place];
  const places = changes.length === 1 ? "1 place" : `${changes.length} places`;
  return (
    <section class="irviz-change-bar" aria-label="Changes">
      <b title="What became of nodes, those in closed groups included">
        {summary || (changes.length ? `${changes.length} changed` : "no change")}
      </b>
      {changes.length ? (
        <span class="irviz-change-steps">
          <Button
            title="To the change before (p)"
            icon="back"
            onPress={() => goToChange(state, -1)}
          />
          <span class="irviz-change-place" title="Places in the graphs that differ">
            {change ? `${place + 1} of ${places}` : places}
          </span>
          <Button
            title="To the next change (n)"
            icon="forward"
            onPress={() => goToChange(state, 1)}
          />
        </span>
      ) : null}
      <span class="irviz-change-words" aria-live="polite">
        {change ? `${change.sign} ${change.words}` : ""}
      </span>
    </section>
  );
}

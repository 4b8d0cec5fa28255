// What differs between the two pictures, in words, and the way from change to change.

import { goToChange } from "./change_steps";
import type { State } from "./state";

export function ChangeBar({ state }: { state: State }) {
  const { summary, changes } = state.scene.value;
  const place = state.change.value;
  const change = changes[place];
  const said = change ? ` ${change.sign} ${change.words}` : "";
  return (
    <section class="irviz-change-bar" aria-label="Changes">
      <b>{summary || (changes.length ? "" : "no change")}</b>
      {changes.length ? (
        <span class="irviz-change-steps" data-lm-suppress-shortcuts="true">
          <button
            type="button"
            title="To the previous change (p)"
            aria-label="To the previous change"
            onClick={() => goToChange(state, -1)}
          >
            ‹
          </button>
          <span class="irviz-change-place">
            {change ? place + 1 : "–"} / {changes.length}
          </span>
          <button
            type="button"
            title="To the next change (n)"
            aria-label="To the next change"
            onClick={() => goToChange(state, 1)}
          >
            ›
          </button>
        </span>
      ) : null}
      <span class="irviz-change-words" aria-live="polite">
        {said}
      </span>
    </section>
  );
}

// The history of the selected node: the stages that changed it, each of which can be gone to.

import type { HistoryStep } from "../schema";
import { goTo } from "../stages/stage_actions";
import type { State } from "../state";

/** The step whose nodes the shown stage has: the last one that is not after it. */
function shownStep(state: State, steps: readonly HistoryStep[], stage: string): number {
  const order = new Map(state.rows.value.map(({ id }, at) => [id, at]));
  const placeOf = (id: string) => order.get(id) ?? 0;
  return steps.filter((step) => placeOf(step.stage) <= placeOf(stage)).length - 1;
}

interface Props {
  state: State;
  steps: readonly HistoryStep[];
  /** The stage of the picture that the node is selected in. */
  stage: string;
}

export function History({ state, steps, stage }: Props) {
  const shown = shownStep(state, steps, stage);
  return (
    <ol class="irviz-history">
      {steps.map((step, at) => (
        <li key={step.stage}>
          <button
            type="button"
            aria-current={at === shown ? "step" : undefined}
            data-gone={step.node ? undefined : ""}
            disabled={!state.can("Reveal")}
            title={`Go to stage ${step.stage} ${step.label}${step.words ? `: ${step.words}` : ""}`}
            onClick={() => goTo(state, step)}
          >
            <span class="irviz-history-stage">
              {step.stage} {step.label}
            </span>
            {step.names && <code>{step.names}</code>}
            {step.words && <span class="irviz-history-words">{step.words}</span>}
          </button>
        </li>
      ))}
    </ol>
  );
}

// What to try first: some steps, which go away when they are done.

import { type Signal, signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Button } from "../controls/button";
import { Icon } from "../controls/icons";
import type { State } from "../state";

type Step = "select" | "transform" | "step" | "compare" | "find";

// as long as the page lives: nobody needs it twice
const done = signal<ReadonlySet<Step>>(new Set());
const isClosed: Signal<boolean> = signal(false);

const STEPS: readonly { step: Step; words: string; keys: string }[] = [
  { step: "select", words: "Click a node: what it is", keys: "" },
  {
    step: "transform",
    words: "Make a stage: apply a pass (Transform), replace a call (Node)",
    keys: "",
  },
  { step: "step", words: "Step through the stages", keys: "Alt ← →" },
  { step: "compare", words: "Compare with the stage before", keys: "d" },
  { step: "find", words: "Find a node, in any function", keys: "/" },
];

/** Return the steps for what was opened: who has stages steps through them, who has one makes another. */
function stepsFor(state: State) {
  const hasStages = state.rows.peek().length > 1;
  const without: Step[] = hasStages ? ["transform"] : ["step"];
  if (!hasStages && !state.host.isLive) without.push("transform", "compare");
  return STEPS.filter(({ step }) => !without.includes(step));
}

export function FirstSteps({ state }: { state: State }) {
  const steps = useRef(stepsFor(state)).current;
  return (
    <aside class="irviz-first" aria-label="First steps" hidden={isClosed.value}>
      <div class="irviz-first-head">
        <h3>First steps</h3>
        <Button
          icon="close"
          title="Close"
          onPress={() => {
            isClosed.value = true;
          }}
        />
      </div>
      <ol>
        {steps.map(({ step, words, keys }) => (
          <li key={step} class={done.value.has(step) ? "irviz-done" : ""}>
            {done.value.has(step) && <Icon name="check" />}
            <span>{words}</span>
            {keys && <kbd>{keys}</kbd>}
          </li>
        ))}
      </ol>
    </aside>
  );
}

/** Notice the steps that are done. */
export function useFirstSteps(state: State) {
  const stage = state.current.value?.id;
  const { node } = state.selection.value;
  const count = state.rows.value.length;
  const begun = useRef(count).current;
  const steps = useRef(stepsFor(state)).current;
  const [isComparing, words] = [state.isComparing.value, state.search.value];
  useEffect(() => {
    const first = state.visits.peek().places[0]?.stage;
    const next = new Set(done.peek());
    if (node) next.add("select");
    if (first !== undefined && stage !== first) next.add("step");
    if (count > begun) next.add("transform");
    if (isComparing) next.add("compare");
    if (words.trim()) next.add("find");
    if (next.size > done.peek().size) done.value = next;
    if (steps.every(({ step }) => next.has(step))) isClosed.value = true;
  }, [stage, node, isComparing, words, count, begun]);
}

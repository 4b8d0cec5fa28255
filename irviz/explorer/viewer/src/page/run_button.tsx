// Run, which becomes Cancel while something is run, and what the run gave.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Button } from "../controls/button";
import { useLate } from "../controls/show_if_late";
import type { State } from "../state";
import { Closable } from "./banners";
import { cancel } from "./status_bar";

const PATIENCE = 300; // ms after which Run becomes Cancel: a double click is not to cancel

/** Return how many seconds something has lasted. */
function useSeconds(isSo: boolean): number {
  const seconds = useSignal(0);
  useEffect(() => {
    seconds.value = 0;
    if (!isSo) return;
    const begin = performance.now();
    const timer = setInterval(() => {
      seconds.value = Math.floor((performance.now() - begin) / 1000);
    }, 250);
    return () => clearInterval(timer);
  }, [isSo]);
  return seconds.value;
}

/** Tell whether something is run, or waits for that. */
const isBusy = (state: State) => {
  const { job, waiting } = state.status.value;
  return (job !== "" || waiting > 0) && state.host.connection.value !== "lost";
};

export function RunButton({ state }: { state: State }) {
  const runs = isBusy(state);
  const isLong = useLate(runs, PATIENCE);
  const seconds = useSeconds(runs);
  if (isLong)
    return (
      <Button
        icon="stop"
        title="Cancel: end what is running"
        class="irviz-primary irviz-run-button irviz-cancel"
        isDisabled={!state.can("Cancel")}
        onPress={() => cancel(state)}
      >
        <span class="irviz-label">Cancel</span>
        <span class="irviz-seconds">{seconds} s</span>
      </Button>
    );
  return (
    <Button
      icon="run"
      title="Run this stage on the inputs, and compare its results with the first stage's"
      class="irviz-primary irviz-run-button"
      isDisabled={!state.can("Run") || runs}
      onPress={() => {
        state.wantsAnswer.value = true;
        state.ask({ action: "Run", again: true });
      }}
    >
      <span class="irviz-label">Run</span>
    </Button>
  );
}

/** What the run that was asked for gave, until that is closed or read in the form. */
export function RunAnswer({ state }: { state: State }) {
  const { answer, answerKind } = state.status.value;
  const { key } = state.scene.value;
  const hasForm = state.isInspectorOpen.value && state.tab.value === "Results";
  useEffect(() => {
    state.wantsAnswer.value = false; // another stage or function has another answer
  }, [key, hasForm]);
  if (!state.wantsAnswer.value || isBusy(state) || !answer) return null;
  const kind = `irviz-answer irviz-${answerKind}`;
  const close = () => {
    state.wantsAnswer.value = false;
  };
  return <Closable class="irviz-answer-card" kind={kind} words={answer} close={close} />;
}

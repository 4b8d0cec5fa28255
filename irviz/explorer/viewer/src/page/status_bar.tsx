// The status bar: the last message, what is being done, the verdict, and how the kernel is.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Button } from "../controls/button";
import { useLate } from "../controls/show_if_late";
import { useAwaitedStage } from "../stages/pending_stage";
import type { State } from "../state";
import type { Connection } from "../viewer_host";

const CONNECTIONS: Record<Connection, string> = {
  none: "recorded: no kernel",
  idle: "kernel ready",
  busy: "kernel busy",
  lost: "kernel lost",
};
const PATIENCE = 300; // ms after which work is shown

export function cancel(state: State) {
  state.asked.value = "";
  state.ask({ action: "Cancel" });
}

/** Say what takes long, and let it be cancelled, unless the toolbar has Cancel in place of Run. */
function Work({ state, words }: { state: State; words: string }) {
  const { job, waiting } = state.status.value;
  const hasCancel = state.shows("toolbar") && (job !== "" || waiting > 0);
  return (
    <div class="irviz-job">
      <span class="irviz-spinner" aria-hidden="true" />
      <span role="status">{words}</span>
      {!hasCancel && (
        <Button
          icon="stop"
          title="End what is running"
          isDisabled={!state.can("Cancel")}
          onPress={() => cancel(state)}
        >
          Cancel
        </Button>
      )}
    </div>
  );
}

function Job({ state }: { state: State }) {
  const { progress, waiting } = state.status.value;
  // of what a lost kernel did nothing more is heard
  const isLost = state.host.connection.value === "lost";
  const { job, making } = isLost ? { job: "", making: "" } : state.status.value;
  const isSlow = useLate(job !== "", PATIENCE, job);
  const drawn = useAwaitedStage(state);
  const doing = making ? `making ${making}` : isSlow ? job : "";
  const words = doing ? [progress ? `${doing}: ${progress}` : doing] : [];
  if (doing && waiting) words.push(`${waiting} more to do`);
  if (drawn) words.unshift(`drawing stage ${drawn.id} ${drawn.label}`);
  return words.length ? <Work state={state} words={words.join("; ")} /> : null;
}

export function Status({ state }: { state: State }) {
  const { words, isError, verdict, job } = state.status.value;
  const { current, reference } = state.scene.value;
  const canRun = state.host.isLive && current?.svg && reference?.svg;
  const isUnknown = canRun && !verdict && !job;
  const isOpen = useSignal(false);
  const connection = state.host.connection.value;
  const isLong = words.length > 60 || words.includes("\n");
  useEffect(() => {
    isOpen.value = false;
  }, [words]);
  return (
    <div class="irviz-status">
      {isOpen.value && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls
        <pre class={isError ? "irviz-all-words irviz-error" : "irviz-all-words"} tabIndex={0}>
          {words}
        </pre>
      )}
      <span class="irviz-connection" data-connection={connection} title={CONNECTIONS[connection]}>
        <span class="irviz-label">{CONNECTIONS[connection]}</span>
      </span>
      <p class={isError ? "irviz-words irviz-error" : "irviz-words"} role="status" title={words}>
        {words}
      </p>
      {isLong && (
        <Button
          icon={isOpen.value ? "down" : "more"}
          title={isOpen.value ? "Show less" : "Show all of it"}
          isPressed={isOpen.value}
          onPress={() => {
            isOpen.value = !isOpen.value;
          }}
        />
      )}
      <Job state={state} />
      {verdict && (
        <p
          class="irviz-verdict"
          role="status"
          title={verdict.includes("|Δ|") ? `${verdict}\n|Δ|: the size of a difference` : verdict}
        >
          {verdict}
        </p>
      )}
      {isUnknown && (
        <p class="irviz-verdict irviz-hint">To compare results, press Run: it runs A and B.</p>
      )}
    </div>
  );
}

// What is said: the last message, what is being done, what is asked, and how the kernel is.

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
const SURE = 1500; // ms after which a kernel that is connected to is taken for gone

/** What cannot be overlooked: a question, or that the kernel is gone. */
export function Banner({ state }: { state: State }) {
  const { question } = state.status.value;
  const isLost = useLate(state.host.connection.value === "lost", SURE);
  return (
    <div class="irviz-banner" role="alert">
      {isLost && (
        <p class="irviz-lost">
          <b>The kernel does not answer.</b> What is in the page can still be looked at; what needs
          the kernel is switched off until it is back.
        </p>
      )}
      {question && (
        <div class="irviz-question">
          <p>{question}</p>
          <Button
            title="Run it in another process, now and later"
            icon="run"
            class="irviz-primary"
            isDisabled={!state.can("Answer")}
            onPress={() => state.ask({ action: "Answer", isAllowed: true })}
          >
            Run it
          </Button>
          <Button
            title="Leave it undone"
            isDisabled={!state.can("Answer")}
            onPress={() => state.ask({ action: "Answer", isAllowed: false })}
          >
            Do not run it
          </Button>
        </div>
      )}
    </div>
  );
}

/** Say over the graph which pass or difference was found, until that is closed. */
export function Finding({ state }: { state: State }) {
  const { found } = state.status.value;
  const closed = useSignal("");
  useEffect(() => {
    if (!found) closed.value = ""; // what is found again is said again
  }, [found]);
  if (!found || found === closed.value) return null;
  const close = () => {
    closed.value = found;
  };
  return <Closable class="irviz-finding" words={found} close={close} />;
}

/** Words that stand over the graph until they are closed. */
export function Closable(props: { class: string; kind?: string; words: string; close(): void }) {
  return (
    <div class={props.class}>
      <p class={props.kind} role="status">
        {props.words}
      </p>
      <Button icon="close" title="Close" onPress={props.close} />
    </div>
  );
}

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

// What stands over the graph: a question, that the kernel is gone, and what was found.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Button } from "../controls/button";
import { useLate } from "../controls/show_if_late";
import type { State } from "../state";

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

// A form of Python's: an ipywidget that stands in the viewer.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { State } from "../state";
import { followFieldErrors } from "./field_errors";

interface Props {
  state: State;
  /** The reference of the widget, undefined until Python has made it. */
  reference: string | undefined;
}

export function Form({ state, reference }: Props) {
  const element = useRef<HTMLDivElement>(null);
  const why = useSignal("");
  useEffect(() => {
    const host = element.current;
    if (!host || !reference) return;
    let isOver = false;
    let remove = () => {};
    const unfollow = followFieldErrors(host);
    why.value = "";
    state.host
      .mount(reference, host)
      .then((unmount) => {
        remove = unmount;
        if (isOver) unmount();
      })
      .catch((error: unknown) => {
        why.value = `This form cannot be shown: ${error instanceof Error ? error.message : error}`;
      });
    return () => {
      isOver = true;
      unfollow();
      remove();
      host.replaceChildren();
    };
  }, [reference]);
  return (
    <>
      {!reference && <p class="irviz-hint irviz-waiting">preparing…</p>}
      {why.value && (
        <p class="irviz-error" role="alert">
          {why}
        </p>
      )}
      <div class="irviz-form-place" ref={element} inert={state.host.connection.value === "lost"} />
    </>
  );
}

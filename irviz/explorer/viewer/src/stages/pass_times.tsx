// Where the time of the recorded passes went: their flame graph, in a dialog.

import { useSignal } from "@preact/signals";
import { useEffect, useId, useRef } from "preact/hooks";
import { Button } from "../controls/button";
import type { PassTime } from "../schema";
import type { State } from "../state";
import { passAfter } from "./flame_graph_keys";
import { visit } from "./stage_actions";

const share = ({ width }: PassTime) => `${(100 * width).toFixed(1)} %`;

const wordsOf = (one: PassTime) => [
  `own ${one.own}`,
  `total ${one.total}`,
  `${share(one)} of all passes`,
  ...(one.isChanged ? [] : ["changed nothing"]),
  ...(one.error ? [one.error] : []),
];

export function PassTimes({ state }: { state: State }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const graph = useRef<HTMLDivElement>(null);
  const at = useSignal(0);
  const pointed = useSignal(-1);
  const id = useId();
  const isOpen = state.areTimesOpen.value;
  useEffect(() => {
    if (!isOpen) {
      dialog.current?.close();
      return;
    }
    // the outermost pass may have made the shown stage as well as the one inside it
    const shown = state.current.peek()?.id;
    at.value = Math.max(
      state.times.peek().findLastIndex(({ stage }) => stage === shown),
      0,
    );
    dialog.current?.showModal();
    (graph.current?.children[at.peek()] as HTMLElement | undefined)?.focus();
  }, [isOpen]);
  const close = () => {
    state.areTimesOpen.value = false;
  };
  const goTo = ({ stage }: PassTime) => {
    close();
    if (stage) visit(state, stage);
  };
  const press = (event: KeyboardEvent) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const next = passAfter(state.times.peek(), at.peek(), event.key);
    if (next === undefined) return;
    event.preventDefault();
    at.value = next;
    pointed.value = -1;
    (graph.current?.children[next] as HTMLElement | undefined)?.focus();
  };
  const passes = isOpen ? state.times.value : [];
  const told = passes[pointed.value] ?? passes[at.value];
  const rows = Math.max(0, ...passes.map(({ depth }) => depth)) + 1;
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes it
    <dialog
      ref={dialog}
      class="irviz-help irviz-times"
      aria-labelledby={id}
      onClose={close}
      onClick={(event) => {
        if (event.target === dialog.current) close();
      }}
    >
      <div class="irviz-help-head">
        <h2 id={id}>Time of the passes</h2>
        <Button icon="close" title="Close" onPress={close} />
      </div>
      <div
        ref={graph}
        class="irviz-flames"
        role="tree"
        aria-label="Passes, each below the one that ran it"
        style={{ "--irviz-rows": rows }}
        onKeyDown={press}
        onPointerLeave={() => {
          pointed.value = -1;
        }}
      >
        {passes.map((one, place) => (
          <button
            key={place}
            type="button"
            role="treeitem"
            aria-level={one.depth + 1}
            aria-selected={one.stage !== "" && one.stage === state.current.value?.id}
            aria-label={[one.name, ...wordsOf(one)].join(", ")}
            tabIndex={place === at.value ? 0 : -1}
            data-changed={one.isChanged ? "" : undefined}
            data-error={one.error ? "" : undefined}
            style={{
              left: `${100 * one.left}%`,
              width: `${100 * one.width}%`,
              "--irviz-row": one.depth,
            }}
            onPointerEnter={() => {
              pointed.value = place;
            }}
            onFocus={() => {
              at.value = place;
            }}
            onClick={() => goTo(one)}
          >
            {one.name}
          </button>
        ))}
      </div>
      {told && (
        <p class="irviz-times-told">
          <b>{told.name}</b> {wordsOf(told).join(" · ")}
          {told.stage && ` · Enter: stage ${told.stage}`}
          <span>Coloured: the pass changed the module.</span>
        </p>
      )}
    </dialog>
  );
}

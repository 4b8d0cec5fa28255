// The keys, in a dialog.

import { useEffect, useId, useRef } from "preact/hooks";
import { Button } from "../controls/button";
import type { State } from "../state";
import { KEYS, OTHER_KEYS } from "./keys";

const SIGNS: Record<string, string> = {
  ArrowLeft: "←",
  ArrowRight: "→",
  ArrowUp: "↑",
  ArrowDown: "↓",
  Shift: "⇧",
};

function KeyName({ name }: { name: string }) {
  const parts = name.length > 1 ? name.split("+") : [name];
  return (
    <span class="irviz-keys">
      {parts.map((part) => (
        <kbd key={part}>{SIGNS[part] ?? part}</kbd>
      ))}
    </span>
  );
}

function Part({
  title,
  rows,
}: {
  title: string;
  rows: readonly { keys: readonly string[]; words: string }[];
}) {
  return (
    <section>
      <h3>{title}</h3>
      <dl>
        {rows.map(({ keys, words }) => (
          <div key={words}>
            <dt>
              {keys.map((key) => (
                <KeyName key={key} name={key} />
              ))}
            </dt>
            <dd>{words}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

export function Help({ state }: { state: State }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  const isOpen = state.isHelpOpen.value;
  useEffect(() => {
    if (isOpen) dialog.current?.showModal();
    else dialog.current?.close();
  }, [isOpen]);
  const close = () => {
    state.isHelpOpen.value = false;
  };
  const parts = [...new Set(OTHER_KEYS.map(({ part }) => part))];
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes it
    <dialog
      ref={dialog}
      class="irviz-help"
      aria-labelledby={id}
      onClose={close}
      onClick={(event) => {
        if (event.target === dialog.current) close();
      }}
    >
      <div class="irviz-help-head">
        <h2 id={id}>Keys</h2>
        <Button icon="close" title="Close" onPress={close} />
      </div>
      <div class="irviz-help-parts">
        <Part title="Viewer" rows={KEYS} />
        <div>
          {parts.map((part) => (
            <Part key={part} title={part} rows={OTHER_KEYS.filter((row) => row.part === part)} />
          ))}
        </div>
      </div>
    </dialog>
  );
}

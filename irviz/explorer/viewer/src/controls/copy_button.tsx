// A button that copies a text.

import { useSignal } from "@preact/signals";
import { Button } from "./button";
import { copy } from "./clipboard";

const THANKS = 1200; // ms that it says that it has copied

export function CopyButton({ text, what }: { text: string; what: string }) {
  const isDone = useSignal(false);
  const press = async (event: MouseEvent) => {
    isDone.value = await copy(text, event.currentTarget as Element);
    setTimeout(() => {
      isDone.value = false;
    }, THANKS);
  };
  return (
    <Button
      icon={isDone.value ? "check" : "copy"}
      title={isDone.value ? "Copied" : `Copy ${what}`}
      class="irviz-copy-button"
      onPress={press}
    />
  );
}

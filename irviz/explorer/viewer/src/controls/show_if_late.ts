// What is shown only when it lasts.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

/** Tell whether something has been so for some time; a new `key` begins anew. */
export function useLate(isSo: boolean, milliseconds: number, key: unknown = isSo): boolean {
  const isLate = useSignal(false);
  useEffect(() => {
    isLate.value = false;
    if (!isSo) return;
    const timer = setTimeout(() => {
      isLate.value = true;
    }, milliseconds);
    return () => clearTimeout(timer);
  }, [isSo, key]);
  return isSo && isLate.value;
}

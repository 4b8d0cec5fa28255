// Which pass of the flame graph the keyboard goes to next.

import type { PassTime } from "../schema";

/** Return the place of the pass that a key leads to from another, undefined where it leads nowhere.
 * A pass stands before those inside it, and below the one that it is in. */
export function passAfter(
  passes: readonly Pick<PassTime, "depth">[],
  at: number,
  key: string,
): number | undefined {
  const depth = passes[at]?.depth ?? 0;
  const isBeside = (one: Pick<PassTime, "depth">) => one.depth === depth;
  const ways: Record<string, () => number> = {
    ArrowLeft: () => passes.slice(0, at).findLastIndex(isBeside),
    ArrowRight: () => passes.findIndex((one, place) => place > at && isBeside(one)),
    ArrowUp: () => passes.slice(0, at).findLastIndex((one) => one.depth < depth),
    ArrowDown: () => ((passes[at + 1]?.depth ?? 0) > depth ? at + 1 : -1),
    Home: () => 0,
    End: () => passes.length - 1,
  };
  const found = ways[key]?.();
  return found === undefined || found < 0 ? undefined : found;
}

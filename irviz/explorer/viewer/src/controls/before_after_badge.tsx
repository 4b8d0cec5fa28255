// What the two stages of a comparison are called, everywhere, and their mark.

import type { Side } from "../schema";

export const SIDES = {
  reference: { letter: "A", when: "before" },
  current: { letter: "B", when: "after" },
} as const satisfies Record<Side, { letter: string; when: string }>;

export function SideMark({ side }: { side: Side }) {
  const { letter, when } = SIDES[side];
  return (
    <span class="irviz-side" data-side={side}>
      <b>{letter}</b> {when}
    </span>
  );
}

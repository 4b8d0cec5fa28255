// The mark of one of the two stages that are compared: A before, B after.

import type { Side } from "./schema";
import { SIDES } from "./sides";

export function SideMark({ side }: { side: Side }) {
  const { letter, when } = SIDES[side];
  return (
    <span class="irviz-side" data-side={side}>
      <b>{letter}</b> {when}
    </span>
  );
}

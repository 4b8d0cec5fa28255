// What the two pictures of a comparison are called, everywhere.

import type { Side } from "./schema";

export const SIDES = {
  reference: { letter: "A", when: "before" },
  current: { letter: "B", when: "after" },
} as const satisfies Record<Side, { letter: string; when: string }>;

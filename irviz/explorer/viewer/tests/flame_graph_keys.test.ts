import assert from "node:assert/strict";
import test from "node:test";

import { passAfter } from "../src/stages/flame_graph_keys";

// a, with b and c inside; d, with e inside
const passes = [0, 1, 1, 0, 1].map((depth) => ({ depth }));

test("arrows go to passes beside, around and inside, and nowhere past the ends", () => {
  const to = (key: string) => passes.map((_, at) => passAfter(passes, at, key));
  assert.deepEqual(to("ArrowRight"), [3, 2, 4, undefined, undefined]);
  assert.deepEqual(to("ArrowLeft"), [undefined, undefined, 1, 0, 2]);
  assert.deepEqual(to("ArrowUp"), [undefined, 0, 0, undefined, 3]);
  assert.deepEqual(to("ArrowDown"), [1, undefined, undefined, 4, undefined]);
});

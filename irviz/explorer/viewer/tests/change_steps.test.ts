import assert from "node:assert/strict";
import test from "node:test";

import { changeOf, goToChange, stepChange } from "../src/graph/change_steps";
import type { Change } from "../src/schema";
import type { State } from "../src/state";

const change = (reference: string[], current: string[]): Change => ({
  ...{ sign: "≠", words: "", reference, current },
});
const changes = [change(["a"], ["a"]), change(["b", "c"], ["d"])];

test("the change of a selected node is found on the side that it is on", () => {
  assert.equal(changeOf(changes, { node: "c", side: "reference" }), 1);
  assert.equal(changeOf(changes, { node: "c", side: "current" }), -1);
  assert.equal(changeOf(changes, { node: "", side: "current" }), -1);
});

test("steps go on from the change that is looked at, around the end", () => {
  assert.equal(stepChange(2, -1, 1), 0);
  assert.equal(stepChange(2, -1, -1), 1);
  assert.equal(stepChange(2, 1, 1), 0);
  assert.equal(stepChange(0, -1, 1), -1);
  const shown: number[] = [];
  const state = {
    scene: { peek: () => ({ changes }) },
    changeAt: { peek: () => 0 },
    change: {
      peek: () => -1,
      set value(place: number) {
        shown.push(place);
      },
    },
  } as unknown as State;
  goToChange(state, 1);
  assert.deepEqual(shown, [1]);
});

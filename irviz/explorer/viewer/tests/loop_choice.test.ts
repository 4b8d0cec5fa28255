import assert from "node:assert/strict";
import test from "node:test";

import * as loops from "../src/loop_choice";

test("a click chooses a loop alone, and a second click takes it out", () => {
  assert.deepEqual(loops.choose([], "i", false), ["i"]);
  assert.deepEqual(loops.choose(["j", "k"], "i", false), ["i"]);
  assert.deepEqual(loops.choose(["i"], "i", false), []);
});

test("a click that adds keeps the order of the clicks", () => {
  const chosen = ["k", "i", "j"].reduce((all, id) => loops.choose(all, id, true), [] as string[]);
  assert.deepEqual(chosen, ["k", "i", "j"]);
  assert.deepEqual(loops.choose(chosen, "i", true), ["k", "j"]);
});

test("choosing leaves the list it was given as it is", () => {
  const chosen = Object.freeze(["i"]) as string[];
  loops.choose(chosen, "j", true);
  loops.choose(chosen, "i", true);
  assert.deepEqual(chosen, ["i"]);
});

test("an arrow key moves by one and stays inside", () => {
  assert.equal(loops.along(3, 0, 1), 1);
  assert.equal(loops.along(3, 2, 1), 2);
  assert.equal(loops.along(3, 0, -1), 0);
  assert.equal(loops.along(2, 5, 0), 1);
});

test("a mark is scrolled to only when its beginning is outside of the box", () => {
  const box = { top: 100, bottom: 500 };
  assert.equal(loops.overshoot({ top: 300 }, box), 0);
  assert.equal(loops.overshoot({ top: 60 }, box), -40);
  assert.equal(loops.overshoot({ top: 600 }, box), 140);
});

import assert from "node:assert/strict";
import test from "node:test";
import { stepChange } from "../src/graph/change_steps";
import { counterparts, newNodes } from "../src/graph/counterparts";
import { linesBeside } from "../src/graph/tooltip";
import type { NodeFacts, Picture, Scene } from "../src/schema";

const facts = (more: Partial<NodeFacts>) => ({ kind: "call", operator: "f", ...more }) as NodeFacts;
const picture = (...ids: string[]) =>
  ({ nodes: Object.fromEntries(ids.map((id) => [id, facts({ name: id })])) }) as Picture;

// matmul, add and relu became one call; lv of the stage before is another node than lv after it
const SCENE = {
  reference: picture("x", "lv", "lv1", "lv2", "gone"),
  current: picture("x", "lv", "made"),
  changes: [
    { sign: "⊃", words: "fused", reference: ["lv1", "lv2"], current: ["lv"] },
    { sign: "−", words: "removed", reference: ["gone"], current: [] },
    { sign: "+", words: "added", reference: [], current: ["made"] },
  ],
} as unknown as Scene;

test("a node of the same name corresponds", () => {
  assert.deepEqual(counterparts(SCENE, "x", "current"), ["x"]);
  assert.deepEqual(counterparts(SCENE, "x", "reference"), ["x"]);
});

test("a fused node corresponds to all that it was made of, and each of these to it", () => {
  assert.deepEqual(counterparts(SCENE, "lv", "current"), ["lv1", "lv2"]);
  assert.deepEqual(counterparts(SCENE, "lv2", "reference"), ["lv"]);
});

test("a node that was added or removed corresponds to none", () => {
  assert.deepEqual(counterparts(SCENE, "gone", "reference"), []);
  assert.deepEqual(counterparts(SCENE, "made", "current"), []);
});

test("a name that means another node after a transform corresponds to none", () => {
  assert.deepEqual(counterparts(SCENE, "lv", "reference"), []);
});

test("without another stage nothing corresponds", () => {
  assert.deepEqual(counterparts({ ...SCENE, reference: null }, "x", "current"), []);
  assert.deepEqual(counterparts(SCENE, "", "current"), []);
});

test("new are the nodes that were not there, and those that became something else", () => {
  const before = picture("x", "lv");
  const swapped = { nodes: { ...picture("x", "lv2").nodes, lv: facts({ operator: "g" }) } };
  assert.deepEqual(newNodes(before, swapped as unknown as Picture).sort(), ["lv", "lv2"]);
  assert.deepEqual(newNodes(before, before), []);
});

test("where pictures have nothing in common nothing is called new", () => {
  assert.deepEqual(newNodes(picture("x"), picture("y")), []);
});

test("the next change after the last is the first, and the one before the first the last", () => {
  assert.equal(stepChange(3, -1, 1), 0);
  assert.equal(stepChange(3, -1, -1), 2);
  assert.equal(stepChange(3, 2, 1), 0);
  assert.equal(stepChange(3, 0, -1), 2);
  assert.equal(stepChange(0, -1, 1), -1);
});

test("a tooltip says what the facts do not say yet", () => {
  const known = facts({ name: "lv", operator: "R.nn.softmax", type: "Tensor[(2,)]" });
  const words = "lv: Tensor[(2,)]\noperator R.nn.softmax\naxis = -1";
  assert.deepEqual(linesBeside({ facts: known, words }), ["axis = -1"]);
  assert.deepEqual(linesBeside({ facts: undefined, words: "open" }), ["open"]);
});

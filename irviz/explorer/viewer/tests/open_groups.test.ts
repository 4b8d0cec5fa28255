import assert from "node:assert/strict";
import test from "node:test";

import { groupAt, groupRects, groupsAround, newlyOpen, nodesIn } from "../src/graph/open_groups";
import type { NodeFacts } from "../src/schema";

const group = (name: string, parent: string) => ({ name, parent });
const picture = {
  groups: {
    block: group("", ""),
    layers: group("12 × layer", "block"),
    call: group("fused", "layers"),
  },
  nodes: Object.fromEntries(
    [
      ["x", ""],
      ["a", "block"],
      ["b", "layers"],
      ["c", "call"],
    ].map(([node, around]) => [node, { group: around } as NodeFacts]),
  ),
};
const at = (x: number) => ({ x, y: 0, width: 10, height: 10 });
const places = new Map([
  ["x", at(0)],
  ["a", at(20)],
  ["b", at(40)],
  ["c", at(60)],
]);

test("the open groups around something are named from the outermost one", () => {
  const names = (id: string) => groupsAround(picture, id).map(({ name }) => name);
  assert.deepEqual(names("call"), ["12 × layer", "fused"]);
  assert.deepEqual(names("block"), []);
  assert.deepEqual(names(""), []);
});

test("what is in an open group are the nodes in it and in the groups in it", () => {
  assert.deepEqual(nodesIn(picture, "layers"), ["b", "c"]);
  assert.deepEqual(nodesIn(picture, "call"), ["c"]);
});

test("of what was opened those count that are not in another one", () => {
  const { block, layers } = picture.groups;
  const more = { groups: { ...picture.groups, head: group("head", "block") } };
  assert.deepEqual(newlyOpen({ groups: { block } }, picture), ["layers"]);
  assert.deepEqual(newlyOpen({ groups: { block, layers } }, picture), ["call"]);
  assert.deepEqual(newlyOpen({ groups: { block } }, more), ["layers", "head"]);
  assert.deepEqual(newlyOpen(more, picture), []);
});

test("a group is where the nodes in it are, and the innermost one counts", () => {
  const rects = groupRects(picture, places);
  assert.deepEqual(rects.get("layers"), { x: 40, y: 0, width: 30, height: 10 });
  assert.equal(groupAt(rects, { x: 65, y: 5 }), "call");
  assert.equal(groupAt(rects, { x: 55, y: 5 }), "layers");
  assert.equal(groupAt(rects, { x: 25, y: 5 }), "");
});

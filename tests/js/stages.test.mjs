import assert from "node:assert/strict";
import test from "node:test";

import { copy } from "../../irviz/app/static/copy.js";
import { headed, neighbour, refusal, steps } from "../../irviz/app/static/stages.js";

const rows = [
  { id: "0", isSame: false, isShown: false },
  { id: "1", isSame: true, isShown: false },
  { id: "2", isSame: false, isShown: true },
  { id: "3", isSame: true, isShown: false },
  { id: "4", isSame: false, isShown: false },
];

test("what changed nothing is skipped when the reader says so", () => {
  assert.deepEqual(steps(rows, false), ["0", "1", "2", "3", "4"]);
  assert.deepEqual(steps(rows, true), ["0", "2", "4"]);
});

test("the shown stage is there even if it changed nothing", () => {
  const onSame = rows.map((row) => ({ ...row, isShown: row.id === "3" }));
  assert.deepEqual(steps(onSame, true), ["0", "2", "3", "4"]);
});

test("a step leads to the stage before or behind, and not past the ends", () => {
  assert.equal(neighbour(rows, false, 1), "3");
  assert.equal(neighbour(rows, true, 1), "4");
  assert.equal(neighbour(rows, true, -1), "0");
  const last = rows.map((row) => ({ ...row, isShown: row.id === "4" }));
  assert.equal(neighbour(last, false, 1), null);
});

test("a heading stands before the first row that is kept inside of it, and only then", () => {
  const outer = { name: "sequential", depth: 0 };
  const inner = { name: "Dispatch", depth: 1 };
  const recorded = [
    { id: "0", within: 0, headings: [] },
    { id: "1", within: 2, headings: [outer, inner] },
    { id: "2", within: 1, headings: [] },
    { id: "3", within: 1, headings: [] },
  ];
  const all = headed(recorded, new Set(["0", "1", "2", "3"]));
  assert.deepEqual([...all.values()], [[], [outer, inner], [], []]);
  const some = headed(recorded, new Set(["0", "2", "3"]));
  assert.deepEqual([...some.values()], [[], [outer], []]);
});

test("a text is copied by the page's clipboard", async () => {
  const copied = [];
  assert.equal(await copy("mod = 1", null, { writeText: async (text) => copied.push(text) }), true);
  assert.deepEqual(copied, ["mod = 1"]);
});

test("a dropped file is sent alone, and only if a server passes it on", () => {
  assert.equal(refusal([{ name: "a.py", size: 10 }]), "");
  assert.match(refusal([{ name: "a.py", size: 1 }, { name: "b.py", size: 1 }]), /one file/);
  assert.match(refusal([{ name: "big.onnx", size: 9 * 2 ** 20 }]), /irviz.explore\("big.onnx"\)/);
});

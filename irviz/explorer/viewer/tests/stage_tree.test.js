import assert from "node:assert/strict";
import test from "node:test";

import { guidesOf, headingsAround, neighbour, refusal, treeItems } from "../src/stage_tree.js";

/** @import { StageRow } from "../src/messages" */
/** @import { Item } from "../src/stage_tree.js" */

const NONE = new Set([""]);

/** @type {(id: string, more?: Partial<StageRow>) => StageRow} */
const row = (id, more = {}) => ({
  ...{ id, label: id, parent: "", depth: 0, isBranch: false, headings: [], badge: "", title: "" },
  ...{ isShown: false, isSame: false },
  ...more,
});

const rows = [
  row("0"),
  row("1", { isSame: true }),
  row("2", { isShown: true }),
  row("3", { isSame: true }),
  row("4"),
];

/** @type {(items: readonly Item[]) => string[]} */
const keys = (items) => items.map(({ key }) => key);

/** @type {(items: readonly Item[]) => string[]} */
const words = (items) => items.map((item) => ("name" in item ? item.name : item.key));

test("what changed nothing is skipped when the reader says so", () => {
  assert.deepEqual(keys(treeItems(rows, false, NONE)), ["0", "1", "2", "3", "4"]);
  assert.deepEqual(keys(treeItems(rows, true, NONE)), ["0", "2", "4"]);
});

test("the shown stage is there even if it changed nothing", () => {
  const onSame = rows.map((one) => ({ ...one, isShown: one.id === "3" }));
  assert.deepEqual(keys(treeItems(onSame, true, NONE)), ["0", "2", "3", "4"]);
});

test("a step leads to the stage before or behind, and not past the ends", () => {
  const [all, some] = [treeItems(rows, false, NONE), treeItems(rows, true, NONE)];
  assert.equal(neighbour(all, "2", 1)?.key, "3");
  assert.equal(neighbour(some, "2", 1)?.key, "4");
  assert.equal(neighbour(some, "2", -1)?.key, "0");
  assert.equal(neighbour(all, "4", 1), undefined);
  assert.equal(neighbour(all, "0", -1), undefined);
});

// Recorded: 1 to 3 in `sequential`, 1 in a pass within it.
const recorded = [
  row("0"),
  row("1", {
    depth: 2,
    headings: [
      { name: "sequential", depth: 0 },
      { name: "Dispatch", depth: 1 },
    ],
    isSame: true,
  }),
  row("2", { depth: 1 }),
  row("3", { depth: 1 }),
  row("4"),
];
const [SEQUENTIAL, DISPATCH] = ["1/0", "1/1"];

test("a heading stands before the first row that is kept inside of it, and only then", () => {
  const all = words(treeItems(recorded, false, NONE));
  assert.deepEqual(all, ["0", "sequential", "Dispatch", "1", "2", "3", "4"]);
  const some = words(treeItems(recorded, true, NONE));
  assert.deepEqual(some, ["0", "sequential", "2", "3", "4"]);
});

test("a folded heading hides what is inside of it, and counts the stages", () => {
  const outer = treeItems(recorded, false, new Set([SEQUENTIAL]));
  assert.deepEqual(words(outer), ["0", "sequential", "4"]);
  assert.equal(outer.map((item) => "count" in item && item.count)[1], 3);
  const inner = treeItems(recorded, false, new Set([DISPATCH]));
  assert.deepEqual(words(inner), ["0", "sequential", "Dispatch", "2", "3", "4"]);
  const both = treeItems(recorded, false, new Set([SEQUENTIAL, DISPATCH]));
  assert.deepEqual(words(both), ["0", "sequential", "4"]);
});

test("the headings around a stage are known, to be opened when it is shown", () => {
  assert.deepEqual(headingsAround(recorded, "1"), [SEQUENTIAL, DISPATCH]);
  assert.deepEqual(headingsAround(recorded, "3"), [SEQUENTIAL]);
  assert.deepEqual(headingsAround(recorded, "4"), []);
});

test("branches are joined to the stage that they were made from, chains are not", () => {
  // 0 → 1 → 2, 0 → 3, 0 → 4 → 5
  const branched = [
    row("0"),
    row("1", { depth: 1, isBranch: true }),
    row("2", { depth: 1 }),
    row("3", { depth: 1, isBranch: true }),
    row("4", { depth: 1, isBranch: true }),
    row("5", { depth: 1 }),
  ];
  const guides = guidesOf(treeItems(branched, false, NONE));
  assert.deepEqual(guides, [[], ["branch"], ["line"], ["branch"], ["end"], ["none"]]);
});

test("branches of branches keep the lines that pass them", () => {
  // 0 → 1 → {2, 3}, 0 → 4
  const nested = [
    row("0"),
    row("1", { depth: 1, isBranch: true }),
    row("2", { depth: 2, isBranch: true }),
    row("3", { depth: 2, isBranch: true }),
    row("4", { depth: 1, isBranch: true }),
  ];
  const guides = guidesOf(treeItems(nested, false, NONE));
  assert.deepEqual(guides, [[], ["branch"], ["line", "branch"], ["line", "end"], ["end"]]);
});

test("a branch that begins with a pipeline is joined at the pipeline's heading", () => {
  const headings = [{ name: "pipeline", depth: 1 }];
  const piped = [
    row("0"),
    row("1", { depth: 2, isBranch: true, headings }),
    row("2", { depth: 1, isBranch: true }),
  ];
  const items = treeItems(piped, false, NONE);
  assert.deepEqual(words(items), ["0", "pipeline", "1", "2"]);
  assert.deepEqual(guidesOf(items), [[], ["branch"], ["line", "none"], ["end"]]);
});

test("where a branch begins is listed even if it changed nothing: else the tree would be another", () => {
  const branched = [
    row("0"),
    row("1", { depth: 1, isBranch: true }),
    row("2", { depth: 1, isBranch: true, isSame: true }),
    row("3", { depth: 1 }),
  ];
  assert.deepEqual(keys(treeItems(branched, true, NONE)), ["0", "1", "2", "3"]);
});

test("a dropped file is sent alone, and only if a server passes it on", () => {
  const one = { name: "a.py", size: 10 };
  assert.equal(refusal([one]), "");
  assert.match(refusal([one, { name: "b.py", size: 1 }]), /one file/);
  assert.match(refusal([{ name: "big.onnx", size: 9 * 2 ** 20 }]), /irviz.explore\("big.onnx"\)/);
});

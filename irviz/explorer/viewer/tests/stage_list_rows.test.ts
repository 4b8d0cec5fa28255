import assert from "node:assert/strict";
import test from "node:test";
import type { StageRow } from "../src/schema";
import {
  guidesOf,
  headingsAround,
  type Item,
  neighbour,
  stageBeside,
  stageListItems,
} from "../src/stages/stage_list_rows";

const NONE = new Set([""]);

const row = (id: string, more: Partial<StageRow> = {}): StageRow => ({
  ...{ id, label: id, parent: "", depth: 0, isBranch: false, headings: [], title: "" },
  ...{ verdict: "", verdictKind: "", time: "", speed: "", share: 0 },
  ...{ isShown: false, isSame: false, changes: -1 },
  ...more,
});

const rows = [
  row("0"),
  row("1", { isSame: true }),
  row("2", { isShown: true }),
  row("3", { isSame: true }),
  row("4"),
];

const keys = (items: readonly Item[]): string[] => items.map(({ key }) => key);

const words = (items: readonly Item[]): string[] =>
  items.map((item) => ("name" in item ? item.name : item.key));

test("what changed nothing is skipped when the reader says so", () => {
  assert.deepEqual(keys(stageListItems(rows, { hidesSame: false, words: "", folded: NONE })), [
    "0",
    "1",
    "2",
    "3",
    "4",
  ]);
  assert.deepEqual(keys(stageListItems(rows, { hidesSame: true, words: "", folded: NONE })), [
    "0",
    "2",
    "4",
  ]);
});

test("the stage that the shown one is compared with is there even if it changed nothing", () => {
  const compared = { hidesSame: true, words: "", folded: NONE, reference: "1" };
  assert.deepEqual(keys(stageListItems(rows, compared)), ["0", "1", "2", "4"]);
});

test("the shown stage is there even if it changed nothing", () => {
  const onSame = rows.map((one) => ({ ...one, isShown: one.id === "3" }));
  assert.deepEqual(keys(stageListItems(onSame, { hidesSame: true, words: "", folded: NONE })), [
    "0",
    "2",
    "3",
    "4",
  ]);
});

test("a step leads to the stage before or behind, and not past the ends", () => {
  const [all, some] = [
    stageListItems(rows, { hidesSame: false, words: "", folded: NONE }),
    stageListItems(rows, { hidesSame: true, words: "", folded: NONE }),
  ];
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
  const all = words(stageListItems(recorded, { hidesSame: false, words: "", folded: NONE }));
  assert.deepEqual(all, ["0", "sequential", "Dispatch", "1", "2", "3", "4"]);
  const some = words(stageListItems(recorded, { hidesSame: true, words: "", folded: NONE }));
  assert.deepEqual(some, ["0", "sequential", "2", "3", "4"]);
});

test("a folded heading hides what is inside of it, and counts the stages", () => {
  const outer = stageListItems(recorded, {
    hidesSame: false,
    words: "",
    folded: new Set([SEQUENTIAL]),
  });
  assert.deepEqual(words(outer), ["0", "sequential", "4"]);
  assert.equal(outer.map((item) => "count" in item && item.count)[1], 3);
  const inner = stageListItems(recorded, {
    hidesSame: false,
    words: "",
    folded: new Set([DISPATCH]),
  });
  assert.deepEqual(words(inner), ["0", "sequential", "Dispatch", "2", "3", "4"]);
  const both = stageListItems(recorded, {
    hidesSame: false,
    words: "",
    folded: new Set([SEQUENTIAL, DISPATCH]),
  });
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
  const guides = guidesOf(stageListItems(branched, { hidesSame: false, words: "", folded: NONE }));
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
  const guides = guidesOf(stageListItems(nested, { hidesSame: false, words: "", folded: NONE }));
  assert.deepEqual(guides, [[], ["branch"], ["line", "branch"], ["line", "end"], ["end"]]);
});

test("a branch that begins with a pipeline is joined at the pipeline's heading", () => {
  const headings = [{ name: "pipeline", depth: 1 }];
  const piped = [
    row("0"),
    row("1", { depth: 2, isBranch: true, headings }),
    row("2", { depth: 1, isBranch: true }),
  ];
  const items = stageListItems(piped, { hidesSame: false, words: "", folded: NONE });
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
  assert.deepEqual(keys(stageListItems(branched, { hidesSame: true, words: "", folded: NONE })), [
    "0",
    "1",
    "2",
    "3",
  ]);
});

test("the filter keeps stages by number or by a part of their label, in any case", () => {
  const named = [row("0", { label: "given" }), row("10", { label: "FuseOps" }), row("1")];
  const found = (filter: string) =>
    keys(stageListItems(named, { hidesSame: false, words: filter, folded: NONE }));
  assert.deepEqual(found("fuse"), ["10"]);
  assert.deepEqual(found("1"), ["1"]);
  assert.deepEqual(found(" "), ["0", "10", "1"]);
});

test("what the filter finds is listed even inside of a folded pass", () => {
  const folded = new Set(["1/0"]);
  const found = stageListItems(recorded, { hidesSame: false, words: "3", folded });
  assert.deepEqual(words(found).at(-1), "3");
});

test("the next stage is the one listed below", () => {
  const all = stageListItems(rows, { hidesSame: false, words: "", folded: NONE });
  assert.equal(stageBeside(all, "2", 1), "3");
  assert.equal(stageBeside(all, "2", -1), "1");
  assert.equal(stageBeside(all, "2", 9), undefined);
});

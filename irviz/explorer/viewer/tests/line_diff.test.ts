import assert from "node:assert/strict";
import { test } from "node:test";
import { lineDiff } from "../src/script/line_diff";

const compare = (before: string, after: string, keys = (line: string) => line) => {
  const read = (text: string) => ({ text, keys: text.split("\n").map(keys) });
  return lineDiff(read(before), read(after)).changes.map(({ fromA, toA, fromB, toB }) => [
    before.slice(fromA, toA),
    after.slice(fromB, toB),
  ]);
};
const leftOfEquals = (line: string) => line.split(" = ")[0] ?? "";

test("equal texts do not differ", () => {
  assert.deepEqual(compare("a\nb\n", "a\nb\n"), []);
});

test("whole lines are added and removed, whatever lines around them look like", () => {
  assert.deepEqual(compare("a = 1\nb = 1\n", "a = 1\nc = 1\nb = 1\n"), [["", "c = 1\n"]]);
  assert.deepEqual(compare("a\nb\nc\n", "a\nc\n"), [["b\n", ""]]);
});

test("of lines that belong together only the words differ that are others", () => {
  const before = "x = old(a)\ny = add(x)\n";
  const after = "new = 1\nx = new(a)\ny = add(x)\n";
  assert.deepEqual(compare(before, after, leftOfEquals), [
    ["", "new = 1\n"],
    ["old", "new"],
  ]);
});

test("lines that belong together stand beside each other though all texts differ", () => {
  const names = Array.from({ length: 100 }, (_, number) => `lv${number}`);
  const before = names.map((name) => `${name} = R.add(x)\n`).join("");
  const after = names.map((name) => `${name} = R.call_tir(cls.sub, y)\n`).join("");
  const found = compare(before, `z = 0\n${after}`, leftOfEquals);
  assert.deepEqual(found[0], ["", "z = 0\n"]);
  assert.ok(found.slice(1).every(([mine]) => !mine?.includes("\n")));
});

test("pairs of lines that differ are said by where they begin", () => {
  const [before, after] = ["a = 1\nb = 1\nc = 1\n", "a = 1\nnew\nb = 2\nc = 2\n"];
  const read = (text: string) => ({ text, keys: text.split("\n").map(leftOfEquals) });
  const { pairs } = lineDiff(read(before), read(after));
  assert.deepEqual(pairs, [
    [before.indexOf("b"), after.indexOf("b")],
    [before.indexOf("c"), after.indexOf("c")],
  ]);
});

test("texts without a last line break, and empty ones, are compared", () => {
  assert.deepEqual(compare("", "a\nb"), [["", "a\nb"]]);
  const removed = compare("a\nb", "a").map(([mine]) => mine);
  assert.equal(removed.join(""), "\nb");
});

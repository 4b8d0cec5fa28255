import assert from "node:assert/strict";
import test from "node:test";

import { foundFunctions } from "../src/graph/function_table";

const row = (name: string, words: string, changes: number) => ({
  ...{ name, kind: "PrimFunc", words, changes },
});
const ROWS = [row("add", "", 0), row("matmul", "1 loop split", 3), row("mul", "2 loops split", 5)];

test("the functions that changed most come first, those of which nothing is known last", () => {
  const names = (words: string) =>
    foundFunctions([row("x", "", -1), ...ROWS], words).map((one) => one.name);
  assert.deepEqual(names(""), ["mul", "matmul", "add", "x"]);
  assert.deepEqual(names("mat"), ["matmul"]);
  assert.deepEqual(names("split Mul"), ["mul", "matmul"]);
  assert.deepEqual(names("gone"), []);
});

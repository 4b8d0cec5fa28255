import assert from "node:assert/strict";
import { test } from "node:test";
import { indexNumPy, linesOfNode, madeOf } from "../src/script/numpy_lines";
import { functionNamed, indexScript } from "../src/script/script_lines";

const TEXT = `class Module:
    @T.prim_func
    def relu(X: T.Buffer((4,)), Y: T.Buffer((4,))):
        for i in range(4):
            with T.sblock("Y"):
                vi = T.axis.spatial(4, i)
                Y[vi] = T.max(X[vi], 0)

    @R.function
    def main(x: R.Tensor((4,))):
        lv = R.call_tir(cls.relu, (x,))
        return lv
`;
const index = indexScript({
  stage: "0",
  label: "initial",
  text: TEXT,
  functions: [
    { name: "relu", first: 2, last: 7 },
    { name: "main", first: 9, last: 12 },
  ],
  lines: {},
  numpy: [
    { function: "", text: "import numpy as np", lines: [] },
    {
      function: "relu",
      text: "def lnumpy_relu(X, Y):\n    for i in range(4):\n        Y[i] = np.maximum(X[i], 0)",
      lines: [0, 1, 4],
    },
    { function: "main", text: "# main cannot be written", lines: [1] },
  ],
  blame: [],
});
const numpy = indexNumPy(index);
assert.ok(numpy);
const here = (text: string) => numpy.lines.findIndex((line) => line.includes(text)) + 1;
const there = (text: string) => index.lines.findIndex((line) => line.includes(text)) + 1;
const only = (line: number) => ({ first: line, last: line });

test("a line of NumPy has the line of TVMScript that it was made of", () => {
  assert.equal(numpy.origins[here("def lnumpy_relu")], there("def relu"));
  assert.equal(numpy.origins[here("for i")], there("for i"));
  assert.equal(numpy.origins[here("np.maximum")], there("T.max"));
  assert.equal(numpy.origins[here("cannot be written")], there("R.call_tir"));
  assert.equal(numpy.origins[here("import numpy")], 0);
  assert.deepEqual(madeOf(numpy, only(there("for i"))), [here("for i")]);
  assert.deepEqual(madeOf(numpy, only(0)), []);
});

test("a block has the lines of what is in it, another node only its own", () => {
  const block = linesOfNode(index, there("T.sblock"));
  assert.deepEqual(madeOf(numpy, block), [here("np.maximum")]);
  const parameter = linesOfNode(index, there("def relu"));
  assert.deepEqual(madeOf(numpy, parameter), [here("def lnumpy_relu")]);
});

test("a function is gone to by its name, also one that cannot be written", () => {
  assert.equal(functionNamed(numpy, "relu")?.def, here("def lnumpy_relu"));
  assert.equal(functionNamed(numpy, "main")?.first, here("cannot be written"));
});

test("a script whose NumPy is not shown has none", () => {
  assert.equal(indexNumPy(indexScript({ ...index.script, numpy: [] })), null);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodeFacts, Picture, Script } from "../src/schema";
import {
  blocksOf,
  drawnId,
  drawnOn,
  indexScript,
  lineKeys,
  lineOf,
  linksIn,
  nodeOn,
  type ScriptIndex,
  TOKENS,
} from "../src/script/script_lines";

const TEXT = `@I.ir_module
class Module:
    @T.prim_func
    def relu(X: T.Buffer((4,), "float32")):
        pass

    @R.function
    def main(x: R.Tensor((4,)), y: R.Tensor((4,))):
        cls = Module
        lv = R.call_tir(cls.relu, (x,))
        return lv
`;
const SCRIPT: Script = {
  stage: "0",
  label: "initial",
  text: TEXT,
  functions: [
    { name: "main", first: 7, last: 12 },
    { name: "relu", first: 3, last: 6 },
  ],
  lines: { main: { x: 8, y: 8, lv: 10 } },
  numpy: [],
  blame: [],
};
const index = indexScript(SCRIPT);

const facts = (name: string, inner: string) => ({ function: name, inner }) as NodeFacts;
const picture = (nodes: Record<string, NodeFacts>) => ({ stage: "0", nodes }) as Picture;

test("functions are in the order of the text, from their decorator to their last line", () => {
  const lines = index.functions.map(({ name, first, def, last }) => [name, first, def, last]);
  assert.deepEqual(lines, [
    ["relu", 3, 4, 5],
    ["main", 7, 8, 11],
  ]);
});

test("a line leads to the node that it binds, and a parameter's name to the parameter", () => {
  assert.equal(nodeOn(index, 10, "cls")?.node, "lv");
  assert.equal(nodeOn(index, 8, "y")?.node, "y");
  assert.equal(nodeOn(index, 8, "main"), undefined);
  assert.equal(nodeOn(index, 9, "cls"), undefined);
});

test("a node leads to its line, also where its function is shown inside of another one", () => {
  assert.equal(lineOf(index, {}, facts("main", "lv")), 10);
  assert.equal(lineOf(index, {}, facts("main", "gone")), 0);
  assert.equal(lineOf(index, {}, undefined), 0);
});

test("a node is found in a picture by its function, whatever its id is there", () => {
  const place = nodeOn(index, 10, "");
  assert.equal(drawnId(picture({ lv: facts("main", "lv") }), place), "lv");
  const inside = picture({ lv: facts("other", "lv"), "lv3/lv": facts("main", "lv") });
  assert.equal(drawnId(inside, place), "lv3/lv");
  assert.equal(drawnId(picture({}), place), "");
  assert.equal(drawnId(null, place), "");
});

test("names of functions of the module are links, and others are not", () => {
  const isFunction = (name: string) => ["relu", "main", "env.relu"].includes(name);
  const found = (text: string) =>
    linksIn(text, isFunction).map((one) => [text.slice(one.from, one.to), one.isDefinition]);
  assert.deepEqual(found("lv = R.call_tir(cls.relu, (cls.other,))"), [["cls.relu", false]]);
  assert.deepEqual(found('R.call_dps_packed("env.relu", (x,))'), [["env.relu", false]]);
  assert.deepEqual(found('R.call_packed("relu", x) # "main"'), [["relu", false]]);
  assert.deepEqual(found("    def main(relu):"), [["main", true]]);
});

test("lines of two stages belong together by their node or function, else by their text", () => {
  const changed = TEXT.replace("cls.relu, (x,)", "cls.other, (y,)").replace("x: R", "x: S");
  const other = lineKeys(indexScript({ ...SCRIPT, text: changed }));
  assert.deepEqual(other, lineKeys(index));
});

test("a line without the name of its node belongs to the line with the same text", () => {
  const said = { ...SCRIPT, text: "    cls.take(x)\n    R.kill_tensor(x)\n" };
  const keysOf = (nodes: readonly string[]) => {
    const lines = nodes.map((node, place) => [place + 1, [{ function: "main", node }]] as const);
    return lineKeys({ ...indexScript(said), byLine: new Map(lines) as ScriptIndex["byLine"] });
  };
  assert.deepEqual(keysOf(["_", "_1"]), keysOf(["_1", "_2"]));
});

test("what is indented more than a line is a block, without the blank lines behind it", () => {
  const lines = [
    "class A:",
    "  def f():",
    "    pass",
    "",
    "  def g():",
    "    for i in j:",
    "      k",
    "",
  ];
  assert.deepEqual([...blocksOf(lines)].sort(), [
    [1, 7],
    [2, 3],
    [5, 7],
    [6, 7],
  ]);
  assert.deepEqual([...blocksOf(["", "a", "b"])], []);
});

test("a line has comments, strings, numbers, keywords, decorators and calls", () => {
  const tokens = (line: string) =>
    [...line.matchAll(TOKENS)].map((match) => {
      const [kind] =
        Object.entries(match.groups ?? {}).find(([, text]) => text !== undefined) ?? [];
      return `${kind} ${match[0]}`;
    });
  assert.deepEqual(tokens('for i in T.grid(1, 2.5e-3): # "x"'), [
    "keyword for",
    "keyword in",
    "function grid",
    "number 1",
    "number 2.5e-3",
    'comment # "x"',
  ]);
  assert.deepEqual(tokens("@T.prim_func(private=True)"), ["decorator @T.prim_func", "number True"]);
  assert.deepEqual(tokens(String.raw`f("a\"b", 'c') + "open`), [
    "function f",
    String.raw`string "a\"b"`,
    "string 'c'",
    'string "open',
  ]);
  assert.deepEqual(tokens("lv1 = x2 + vi"), []);
});

test("a line inside of a block of a PrimFunc leads to the block", () => {
  const text = `@I.ir_module
class Module:
    @T.prim_func
    def f(X: T.Buffer((4,), "float32"), Y: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.sblock("Y"):
                vi = T.axis.spatial(4, i)
                Y[vi] = X[vi]
        pass
`;
  const functions = [{ name: "f", first: 3, last: 9 }];
  const own = indexScript({
    stage: "0",
    label: "",
    text,
    functions,
    lines: {},
    numpy: [],
    blame: [],
  });
  const nodes = { X: facts("f", "X"), W: facts("f", "W"), Y: facts("f", "Y") };
  const blocks = { 0: { f: { X: 4, W: 4, Y: 6 } } };
  const found = (line: number, word = "") => drawnOn(own, blocks, picture(nodes), line, word);
  assert.deepEqual(
    [6, 7, 8].map((line) => found(line)),
    ["Y", "Y", "Y"],
  );
  assert.deepEqual(
    [3, 4, 5, 9].map((line) => found(line)),
    ["", "", "", ""],
  );
  assert.equal(found(4, "X"), "X");
  assert.equal(drawnOn(own, blocks, { ...picture(nodes), stage: "1" }, 6, ""), "");
});

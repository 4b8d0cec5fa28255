import assert from "node:assert/strict";
import test from "node:test";

import { fileHost } from "../src/file_host";
import type { Details, Picture, Recording, Scene, ViewerTraits } from "../src/schema";

const picture = (stage: string, names: readonly string[]): Picture => ({
  ...{ stage, label: "", name: "main", svg: "", error: "", note: "", facts: [], dimmed: [] },
  ...{ instead: [], groups: {} },
  nodes: Object.fromEntries(
    names.map((name) => [name, { name, operator: "relax.add", type: "Tensor[(1,)]" }]),
  ) as Picture["nodes"],
});
const scene = (name: string, stage: string, reference = ""): Scene => ({
  ...{ key: `${name}/${stage}/${reference}`, function: name, summary: "" },
  ...{ changes: [], legend: [], moved: [0, 0], part: "" },
  current: picture(stage, ["a", `b${stage}`]),
  reference: reference ? picture(reference, ["a"]) : null,
});
const details = (key: string, node: string): Details => ({
  ...{ key, node, side: "current", value: `${key} ${node}`, code: "" },
});
const stage = (id: string) => ({ id, isShown: id === "0" });

const recording = () =>
  ({
    traits: {
      scene: scene("main", "0"),
      rows: ["0", "1", "2"].map(stage),
      functions: [{ name: "main", kind: "Relax" }],
      scripts: { current: null, reference: null },
      selection: { node: "", side: "current" },
      hasScript: true,
      status: { words: "", isError: false },
    } as unknown as ViewerTraits,
    scenes: [
      scene("main", "0"),
      scene("main", "1"),
      scene("main", "1", "0"),
      scene("main", "2"),
      scene("f", "1"),
    ],
    scripts: [{ stage: "1", label: "", text: "one", functions: [], lines: [] }],
    details: [details("main/0/", "a"), details("main/1/", "a")],
  }) satisfies Recording;

test("a stage is shown with its picture, its text and its functions", () => {
  const host = fileHost(recording());
  host.send({ action: "Checkout", stage: "1" });
  assert.equal(host.get("scene").key, "main/1/");
  assert.equal(host.get("scripts").current?.text, "one");
  assert.deepEqual(
    host.get("rows").map((row) => row.isShown),
    [false, true, false],
  );
  assert.deepEqual(host.get("functions"), [
    { name: "main", kind: "Relax" },
    { name: "f", kind: "" },
  ]);
});

test("a comparison is shown where it was recorded, and else it is said that it was not", () => {
  const host = fileHost(recording());
  host.send({ action: "Checkout", stage: "1" });
  host.send({ action: "Compare", reference: "0" });
  assert.equal(host.get("scene").key, "main/1/0");
  host.send({ action: "Compare", reference: "2" });
  assert.equal(host.get("scene").key, "main/1/");
  assert.match(host.get("status").words, /2 and 1 were not recorded as a pair/);
});

test("stepping on from a comparison shows the next stage alone", () => {
  const host = fileHost(recording());
  host.send({ action: "Checkout", stage: "1" });
  host.send({ action: "Compare", reference: "0" });
  host.send({ action: "Checkout", stage: "0" });
  assert.equal(host.get("scene").key, "main/0/");
  assert.equal(host.get("status").words, "");
});

test("a function is kept past a stage that lacks it, which says so", () => {
  const host = fileHost(recording());
  host.send({ action: "Checkout", stage: "1" });
  host.send({ action: "Focus", function: "f" });
  host.send({ action: "Checkout", stage: "2" });
  const { current, ...scene } = host.get("scene");
  assert.deepEqual([scene.function, current?.stage, current?.svg], ["f", "2", ""]);
  assert.match(current?.error ?? "", /no function 'f'/);
  assert.deepEqual(current?.instead, ["main"]);
  host.send({ action: "Checkout", stage: "1" });
  assert.equal(host.get("scene").key, "f/1/");
});

test("what is said of two results belongs to the pair that was compared", () => {
  const told = recording();
  told.traits = { ...told.traits, status: { ...told.traits.status, verdict: "equal" } };
  const host = fileHost(told);
  host.send({ action: "Checkout", stage: "1" });
  assert.equal(host.get("status").verdict, "");
  host.send({ action: "Checkout", stage: "0" });
  assert.equal(host.get("status").verdict, "equal");
});

test("the details are those of the selected node, in a comparison as without", () => {
  const host = fileHost(recording());
  host.set("selection", { node: "a", side: "current" });
  assert.equal(host.get("details").value, "main/0/ a");
  host.send({ action: "Checkout", stage: "1" });
  assert.equal(host.get("details").value, "main/1/ a");
  host.send({ action: "Compare", reference: "0" });
  assert.deepEqual([host.get("details").key, host.get("details").value], ["main/1/0", "main/1/ a"]);
});

test("a node that the next stage lacks is not selected there", () => {
  const host = fileHost(recording());
  host.set("selection", { node: "b0", side: "current" });
  host.send({ action: "Checkout", stage: "1" });
  assert.equal(host.get("selection").node, "");
});

test("nodes are found by all the words, in every function of the stage", () => {
  const host = fileHost(recording());
  host.send({ action: "Checkout", stage: "1" });
  host.set("search", "B1 add");
  assert.deepEqual(
    host.get("found").nodes.map((one) => [one.function, one.node]),
    [
      ["main", "b1"],
      ["f", "b1"],
    ],
  );
  host.send({ action: "Reveal", function: "f", node: "b1" });
  assert.equal(host.get("scene").key, "f/1/");
  assert.equal(host.get("selection").node, "b1");
});

test("what needs a kernel is not offered", () => {
  const host = fileHost(recording());
  assert.equal(host.offers("Checkout"), true);
  assert.equal(host.offers("Run"), false);
  assert.equal(host.offers("Toggle"), false);
});

import assert from "node:assert/strict";
import test from "node:test";

import { fileHost } from "../src/offline/offline_host";
import type {
  Details,
  Picture,
  RecordedView,
  Recording,
  Scene,
  ToggledView,
  ViewerTraits,
} from "../src/schema";

const picture = (stage: string, names: readonly string[]): Picture => ({
  ...{ stage, label: "", name: "main", svg: "", error: "", note: "", facts: [], dimmed: [] },
  ...{ instead: [], groups: {} },
  nodes: Object.fromEntries(
    names.map((name) => [name, { name, operator: "relax.add", type: "Tensor[(1,)]" }]),
  ) as Picture["nodes"],
});
const scene = (name: string, stage: string, reference = ""): Scene => ({
  ...{ key: `${name}/${stage}/${reference}`, function: name, summary: "" },
  ...{ loops: null, changes: [], legend: [], moved: [], part: "" },
  current: picture(stage, ["a", `b${stage}`]),
  reference: reference ? picture(reference, ["a"]) : null,
});
const STATUS = { words: "", isError: false, verdict: "" } as RecordedView["status"];
const view = (name: string, stage: string, reference = ""): RecordedView => ({
  rows: ["0", "1", "2"].map((id) => ({ id, isShown: id === stage })) as RecordedView["rows"],
  scene: scene(name, stage, reference),
  functions: (stage === "1" ? ["main", "f"] : ["main"]).map((one) => ({
    ...{ name: one, kind: "", words: "", changes: -1 },
  })),
  status: reference ? { ...STATUS, verdict: `${reference} and ${stage} are equal` } : STATUS,
});
/** A view of a stage in which a group was opened, which has a node "in" it. */
const opened = (name: string, id: string, container: string): ToggledView => {
  const base = view(name, id);
  const current = picture(id, ["a", `in ${container}`]);
  return { ...base, container, scene: { ...base.scene, moved: [3, -4], current } };
};
const searched = (...names: string[]) =>
  names.map((node) => ({ node, text: `${node}\nadd`, line: "add", rest: node }));
const details = (key: string, node: string): Details => ({
  ...{ key, node, side: "current", value: `${key} ${node}`, code: "", history: [] },
});
/** What a stage leads to that lacks a function. */
const lacking: RecordedView = {
  ...view("f", "2"),
  scene: { ...scene("f", "2"), current: { ...picture("2", []), error: "gone" } },
};

const recording = () =>
  ({
    traits: {
      ...view("main", "0"),
      scripts: { current: null, reference: null },
      selection: { node: "", side: "current" },
      search: "",
      hasScript: true,
    } as unknown as ViewerTraits,
    views: [
      view("main", "0"),
      view("main", "1"),
      view("main", "1", "0"),
      view("main", "2"),
      view("f", "1"),
      lacking,
    ],
    leads: { "main/0/0": "main/0/", "f/0/": "main/0/" },
    toggled: [opened("main", "0", "group"), opened("main", "0", "other"), opened("main", "0", "+")],
    searched: {
      "main/0/": searched("a", "in group", "in other"),
      "main/1/": searched("a", "b1"),
      "f/1/": searched("b1", "a"),
    },
    mostFound: 3,
    scripts: [
      { stage: "1", label: "", text: "one", functions: [], lines: {}, numpy: [], blame: [] },
    ],
    details: [details("main/0/", "a"), details("main/1/", "a")],
  }) satisfies Recording;

test("a stage is shown with its picture, its text and its functions", () => {
  const host = fileHost(recording());
  host.send({ action: "Checkout", stage: "1", reference: null });
  assert.equal(host.get("scene").key, "main/1/");
  assert.equal(host.get("scripts").current?.text, "one");
  assert.deepEqual(
    host.get("rows").map((row) => row.isShown),
    [false, true, false],
  );
  assert.deepEqual(
    host.get("functions").map(({ name }) => name),
    ["main", "f"],
  );
});

test("a comparison is shown where it was recorded, and else it is said that it was not", () => {
  const host = fileHost(recording());
  host.send({ action: "Checkout", stage: "1", reference: null });
  host.send({ action: "Compare", reference: "0" });
  assert.equal(host.get("scene").key, "main/1/0");
  host.send({ action: "Compare", reference: "2" });
  assert.equal(host.get("scene").key, "main/1/");
  assert.match(host.get("status").words, /2 and 1 were not saved as a pair/);
});

test("what is open stays open beside another stage and in others, where that was recorded", () => {
  const base = recording();
  const beside = { ...view("main", "1", "0"), container: "+" };
  const toggled = [...base.toggled, opened("main", "1", "+"), beside];
  const host = fileHost({ ...base, toggled });
  host.send({ action: "ToggleAll", opens: true });
  host.send({ action: "Checkout", stage: "1", reference: null });
  assert.ok(host.get("scene").current?.nodes["in +"]);
  host.send({ action: "Compare", reference: "0" });
  host.send({ action: "Compare", reference: "" });
  assert.ok(host.get("scene").current?.nodes["in +"]);
  host.send({ action: "Checkout", stage: "2", reference: null });
  assert.equal(host.get("scene").key, "main/2/");
});

test("a view is another one where Python showed another one, which needs no words", () => {
  const host = fileHost(recording());
  host.send({ action: "Checkout", stage: "1", reference: null });
  host.send({ action: "Compare", reference: "0" });
  host.send({ action: "Checkout", stage: "0", reference: null });
  assert.equal(host.get("scene").key, "main/0/");
  assert.equal(host.get("status").words, "");
  host.send({ action: "Reveal", function: "f", node: "", stage: "1" });
  host.send({ action: "Checkout", stage: "0", reference: null });
  assert.equal(host.get("scene").key, "main/0/");
});

test("what Python said of a stage without the function is shown", () => {
  const host = fileHost(recording());
  host.send({ action: "Reveal", function: "f", node: "", stage: "1" });
  host.send({ action: "Checkout", stage: "2", reference: null });
  assert.deepEqual(host.get("scene"), lacking.scene);
  host.send({ action: "Checkout", stage: "1", reference: null });
  assert.equal(host.get("scene").key, "f/1/");
});

test("what there was no room for says where it can be looked at", () => {
  const host = fileHost(recording());
  host.set("hasScript", true);
  host.send({ action: "Checkout", stage: "1", reference: null });
  host.send({ action: "Focus", function: "g" });
  assert.match(host.get("scene").current?.error ?? "", /open the session in irviz/);
  assert.deepEqual(host.get("scene").current?.instead, ["main"]);
  assert.equal(host.get("scripts").current?.text, "one");
  host.send({ action: "Reveal", function: "main", node: "c", stage: "1" });
  assert.equal(host.get("scene").key, "main/1/");
  assert.match(host.get("status").words, /open the session in irviz/);
});

test("what is said of two results belongs to the pair that was compared", () => {
  const host = fileHost(recording());
  host.send({ action: "Checkout", stage: "1", reference: null });
  assert.equal(host.get("status").verdict, "");
  host.send({ action: "Compare", reference: "0" });
  assert.equal(host.get("status").verdict, "0 and 1 are equal");
  host.send({ action: "Checkout", stage: "2", reference: null });
  assert.equal(host.get("status").verdict, "");
});

test("what is said of a stage is said whenever the stage is shown", () => {
  const failed = { ...STATUS, words: "it failed", isError: true };
  const views = recording().views.map((one) =>
    one.scene.current?.stage === "2" ? { ...one, status: failed } : one,
  );
  const host = fileHost({ ...recording(), views });
  host.send({ action: "Checkout", stage: "2", reference: null });
  assert.deepEqual(host.get("status"), failed);
  host.send({ action: "Checkout", stage: "1", reference: null });
  assert.deepEqual(host.get("status"), STATUS);
});

test("the details are those of the selected node, in a comparison as without", () => {
  const host = fileHost(recording());
  host.set("selection", { node: "a", side: "current" });
  assert.equal(host.get("details").value, "main/0/ a");
  host.send({ action: "Checkout", stage: "1", reference: null });
  assert.equal(host.get("details").value, "main/1/ a");
  host.send({ action: "Compare", reference: "0" });
  assert.deepEqual([host.get("details").key, host.get("details").value], ["main/1/0", "main/1/ a"]);
});

test("a node that the next stage lacks is not selected there", () => {
  const host = fileHost(recording());
  host.set("selection", { node: "b0", side: "current" });
  host.send({ action: "Checkout", stage: "1", reference: null });
  assert.equal(host.get("selection").node, "");
});

test("a node is not selected in another function that has one of its name", () => {
  const host = fileHost(recording());
  host.send({ action: "Checkout", stage: "1", reference: null });
  host.set("selection", { node: "a", side: "current" });
  host.send({ action: "Focus", function: "f" });
  assert.equal(host.get("selection").node, "");
});

test("nodes are found in every function of the stage, those of the shown one first", () => {
  const host = fileHost(recording());
  host.send({ action: "Checkout", stage: "1", reference: null });
  host.set("search", "add");
  const found = host.get("found");
  assert.deepEqual(
    found.nodes.map((one) => [one.function, one.line, one.rest]),
    [
      ["main", "add", "a"],
      ["main", "add", "b1"],
      ["f", "add", "b1"],
    ],
  );
  assert.deepEqual([found.words, found.count], ["add", 4]);
  host.send({ action: "Checkout", stage: "0", reference: null });
  assert.deepEqual(
    host.get("found").nodes.map(({ node }) => node),
    ["a", "in group", "in other"],
  );
  host.send({ action: "Checkout", stage: "1", reference: null });
  host.send({ action: "Reveal", function: "f", node: "b1", stage: "" });
  assert.equal(host.get("scene").key, "f/1/");
  assert.equal(host.get("selection").node, "b1");
});

test("a step of a history leads to its node in another stage", () => {
  const host = fileHost(recording());
  host.send({ action: "Reveal", function: "main", node: "b1", stage: "1" });
  assert.equal(host.get("scene").key, "main/1/");
  assert.equal(host.get("selection").node, "b1");
});

test("what needs a kernel is not offered", () => {
  const host = fileHost(recording());
  assert.equal(host.offers("Checkout"), true);
  assert.equal(host.offers("Run"), false);
  assert.equal(host.offers("LookAround"), false);
});

const nodesOf = (host: ReturnType<typeof fileHost>) =>
  Object.keys(host.get("scene").current?.nodes ?? {});
const toggle = (container: string) => ({ action: "Toggle", container, side: "current" }) as const;

test("a group is opened as it was recorded, and closed again in its place", () => {
  const host = fileHost(recording());
  host.send(toggle("group"));
  assert.deepEqual(nodesOf(host), ["a", "in group"]);
  assert.deepEqual(host.get("scene").moved, [3, -4]);
  assert.equal(host.get("scene").key, "main/0/");
  host.send(toggle("group"));
  assert.deepEqual(nodesOf(host), ["a", "b0"]);
  assert.deepEqual(host.get("scene").moved, [-3, 4]);
});

test("another group is opened in the place of the first, and another stage begins anew", () => {
  const host = fileHost(recording());
  host.send(toggle("group"));
  host.send(toggle("other"));
  assert.deepEqual(nodesOf(host), ["a", "in other"]);
  host.send({ action: "Checkout", stage: "1", reference: null });
  host.send({ action: "Checkout", stage: "0", reference: null });
  assert.deepEqual(nodesOf(host), ["a", "b0"]);
  host.send(toggle("other"));
  assert.deepEqual(nodesOf(host), ["a", "in other"]);
});

test("all groups are opened and closed, as far as that was recorded", () => {
  const host = fileHost(recording());
  host.send({ action: "ToggleAll", opens: true });
  assert.deepEqual(nodesOf(host), ["a", "in +"]);
  host.send({ action: "ToggleAll", opens: false });
  assert.deepEqual(nodesOf(host), ["a", "b0"]);
  host.send({ action: "ToggleAll", opens: false });
  assert.match(host.get("status").words, /open the session in irviz/);
});

test("a group that there was no room for says where it can be opened", () => {
  const host = fileHost(recording());
  host.send({ action: "Checkout", stage: "1", reference: null });
  host.send(toggle("group"));
  assert.deepEqual(nodesOf(host), ["a", "b1"]);
  assert.match(host.get("status").words, /open the session in irviz/);
});

test("a node in a closed group is found, and shown by opening the group", () => {
  const host = fileHost(recording());
  host.set("search", "in");
  assert.deepEqual(
    host.get("found").nodes.map(({ node }) => node),
    ["in group", "in other"],
  );
  host.send({ action: "Reveal", function: "main", node: "in other", stage: "" });
  assert.deepEqual(nodesOf(host), ["a", "in other"]);
  assert.equal(host.get("selection").node, "in other");
});

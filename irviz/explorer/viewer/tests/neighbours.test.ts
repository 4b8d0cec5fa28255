import assert from "node:assert/strict";
import test from "node:test";
import { type Arrow, isPale, neighbours, nextNode } from "../src/graph/neighbours";

const EDGES = [
  { source: "x", target: "matmul" },
  { source: "w", target: "matmul" },
  { source: "matmul", target: "relu" },
  { source: "matmul", target: "add" },
];

test("neighbours are producers and consumers", () => {
  assert.deepEqual(neighbours(EDGES, "matmul"), new Set(["x", "w", "relu", "add"]));
  assert.deepEqual(neighbours(EDGES, "relu"), new Set(["matmul"]));
  assert.deepEqual(neighbours(EDGES, ""), new Set());
});

// Drawn upwards: a consumer stands above its producers. `lone` is joined to nothing.
const BOXES = new Map(
  [
    { id: "x", x: 0, y: 300 },
    { id: "w", x: 200, y: 300 },
    { id: "lone", x: 140, y: 240 },
    { id: "matmul", x: 100, y: 200 },
    { id: "relu", x: 400, y: 100 },
    { id: "add", x: 90, y: 0 },
  ].map(({ id, x, y }) => [id, { x, y, width: 40, height: 20 }]),
);
const next = (from: string, arrow: Arrow) => nextNode(BOXES, EDGES, from, arrow);

test("up follows an edge to a consumer, down to a producer", () => {
  assert.equal(next("x", "ArrowUp"), "matmul");
  assert.equal(next("relu", "ArrowDown"), "matmul");
});

test("an edge comes before a nearer node that is joined to nothing", () => {
  assert.equal(next("w", "ArrowUp"), "matmul");
  assert.notEqual(next("matmul", "ArrowDown"), "lone");
});

test("of several edges the one nearest to the arrow's direction is followed", () => {
  assert.equal(next("matmul", "ArrowUp"), "add");
});

test("left and right stay in the row, even past a nearer node above it", () => {
  assert.equal(next("x", "ArrowRight"), "w");
});

test("left and right go to the nearest node, joined or not", () => {
  assert.equal(next("matmul", "ArrowRight"), "lone");
  assert.equal(next("relu", "ArrowLeft"), "matmul");
});

test("a node joined to nothing is left by the nearest node in that direction", () => {
  assert.equal(next("lone", "ArrowUp"), "matmul");
});

test("an arrow that leads nowhere leads to no node", () => {
  assert.equal(next("add", "ArrowUp"), undefined);
  assert.equal(next("x", "ArrowLeft"), undefined);
});

test("an edge to a node that is not drawn is not followed", () => {
  const edges = [{ source: "x", target: "folded away" }];
  assert.equal(nextNode(BOXES, edges, "x", "ArrowDown"), undefined);
});

test("a dimmed node is pale with its label and the edges of its value, not those it uses", () => {
  const dimmed = new Set(["w"]);
  assert.ok(isPale({ node: "w" }, dimmed));
  assert.ok(isPale({ source: "w" }, dimmed));
  assert.ok(!isPale({ node: "matmul" }, dimmed));
  assert.ok(!isPale({ source: "matmul" }, dimmed));
});

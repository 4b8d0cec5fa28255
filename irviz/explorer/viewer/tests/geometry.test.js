import assert from "node:assert/strict";
import test from "node:test";

import * as canvas from "../src/geometry.js";

/** @import { Arrow, View } from "../src/geometry.js" */

const FRAME = { x: 0, y: 0, width: 800, height: 400 };
const PANE = { width: 432, height: 332 };
const CLOSE = 1e-9;

/** Where a point of the graph is seen, in px from the middle of the pane.
 * @type {(view: View, point: [number, number]) => [number, number]} */
const seenAt = ([x, y, scale], [gx, gy]) => [(gx - x) * scale, (gy - y) * scale];

/** @type {(actual: number[], expected: number[]) => void} */
function assertClose(actual, expected) {
  assert.equal(actual.length, expected.length);
  for (const [i, number] of actual.entries()) {
    assert.ok(Math.abs(number - (expected[i] ?? Number.NaN)) < CLOSE, `${actual}`);
  }
}

test("fit shows the whole graph in the middle of the pane, with a margin", () => {
  assertClose(canvas.fit(FRAME, PANE), [400, 200, 0.5]);
});

test("fit takes the tighter of width and height", () => {
  assertClose(canvas.fit(FRAME, { width: 2000, height: 132 }), [400, 200, 0.25]);
});

test("fit never enlarges a small graph", () => {
  assert.equal(canvas.fit({ x: 0, y: 0, width: 10, height: 10 }, PANE)[2], 1);
});

test("fit never goes below the smallest scale, not even in a pane smaller than its margin", () => {
  assert.equal(canvas.fit({ ...FRAME, width: 1e6 }, PANE)[2], 0.02);
  assert.equal(canvas.fit(FRAME, { width: 5, height: 5 })[2], 0.02);
});

test("fit respects a frame that does not begin at 0, 0", () => {
  assertClose(canvas.fit({ ...FRAME, x: -100, y: 50 }, PANE), [300, 250, 0.5]);
});

test("bound keeps the graph under the middle of the pane and the scale within its limits", () => {
  assert.deepEqual(canvas.bound([-50, 900, 100], FRAME), [0, 400, 8]);
  assert.deepEqual(canvas.bound([10, 20, 0.001], FRAME), [10, 20, 0.02]);
});

test("pan moves the picture by as many px as the pointer moved", () => {
  /** @type {[number, number]} */
  const point = [100, 100];
  /** @type {View} */
  const before = [400, 200, 0.5];
  const after = canvas.pan(before, 30, -20);
  const [x, y] = seenAt(before, point);
  assertClose(seenAt(after, point), [x + 30, y - 20]);
});

test("zoom keeps what is under the pointer where it is", () => {
  /** @type {[number, number]} */
  const pointer = [120, -80];
  /** @type {View} */
  const before = [400, 200, 0.5];
  /** @type {[number, number]} */
  const under = [before[0] + pointer[0] / before[2], before[1] + pointer[1] / before[2]];
  const after = canvas.zoom(before, 1.7, pointer);
  assertClose([after[2]], [0.85]);
  assertClose(seenAt(after, under), pointer);
});

test("zoom stops at its limits without drifting", () => {
  assert.deepEqual(canvas.zoom([400, 200, 8], 2, [120, -80]), [400, 200, 8]);
  assert.deepEqual(canvas.zoom([400, 200, 0.02], 0.5, [120, -80]), [400, 200, 0.02]);
});

test("zoom without a pointer keeps the middle", () => {
  assert.deepEqual(canvas.zoom([400, 200, 1], 2), [400, 200, 2]);
});

test("a wheel turned up zooms in, and as much as turning it down zooms out", () => {
  const up = canvas.wheelFactor({ deltaY: -100, deltaMode: 0 });
  const down = canvas.wheelFactor({ deltaY: 100, deltaMode: 0 });
  assert.ok(up > 1.1 && up < 1.5, `${up}`);
  assertClose([up * down], [1]);
});

test("a notch zooms alike whether the browser counts pixels, lines or pages", () => {
  const notches = [
    { deltaY: 100, deltaMode: 0 },
    { deltaY: 3, deltaMode: 1 },
    { deltaY: 1, deltaMode: 2 },
  ];
  const factors = notches.map(canvas.wheelFactor);
  assert.equal(new Set(factors).size, 1);
});

test("a pinch of a few pixels zooms finely", () => {
  const factor = canvas.wheelFactor({ deltaY: -2, deltaMode: 0 });
  assert.ok(factor > 1 && factor < 1.05, `${factor}`);
});

test("reveal leaves a view alone that shows the box already", () => {
  /** @type {View} */
  const view = [400, 200, 0.5];
  assert.deepEqual(canvas.reveal(view, PANE, { x: 380, y: 180, width: 40, height: 20 }), view);
});

test("reveal leaves a fitted graph alone, up to the nodes at its very edge", () => {
  const view = canvas.fit(FRAME, PANE);
  assert.deepEqual(canvas.reveal(view, PANE, { x: 0, y: 0, width: 40, height: 20 }), view);
});

test("reveal moves a view until the whole box is inside the pane, and no further", () => {
  const box = { x: 700, y: 180, width: 60, height: 40 };
  const after = canvas.reveal([200, 200, 1], PANE, box);
  const [right] = seenAt(after, [760, 200]);
  assert.ok(right < PANE.width / 2 && right > PANE.width / 2 - 20, `${right}`);
  assert.deepEqual(after.slice(1), [200, 1]);
});

test("reveal puts a box larger than the pane in its middle", () => {
  const after = canvas.reveal([0, 0, 8], PANE, { x: 100, y: 100, width: 200, height: 100 });
  assert.deepEqual(after, [200, 150, 8]);
});

test("the viewBox has the pane's proportions and the view in its middle", () => {
  assert.equal(canvas.viewBoxOf([400, 200, 0.5], { width: 400, height: 300 }), "0 -100 800 600");
});

const EDGES = [
  { source: "x", target: "matmul" },
  { source: "w", target: "matmul" },
  { source: "matmul", target: "relu" },
  { source: "matmul", target: "add" },
];

test("neighbours are producers and consumers", () => {
  assert.deepEqual(canvas.neighbours(EDGES, "matmul"), new Set(["x", "w", "relu", "add"]));
  assert.deepEqual(canvas.neighbours(EDGES, "relu"), new Set(["matmul"]));
  assert.deepEqual(canvas.neighbours(EDGES, ""), new Set());
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
/** @type {(from: string, arrow: Arrow) => string | undefined} */
const next = (from, arrow) => canvas.nextNode(BOXES, EDGES, from, arrow);

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
  assert.equal(canvas.nextNode(BOXES, edges, "x", "ArrowDown"), undefined);
});

test("a dimmed node is pale with its label and the edges of its value, not those it uses", () => {
  const dimmed = new Set(["w"]);
  assert.ok(canvas.isPale({ node: "w" }, dimmed));
  assert.ok(canvas.isPale({ source: "w", target: "matmul" }, dimmed));
  assert.ok(!canvas.isPale({ node: "matmul" }, dimmed));
  assert.ok(!canvas.isPale({ source: "matmul", target: "w" }, dimmed));
});

test("signs and titles are enlarged where the picture is small, within limits", () => {
  assert.equal(canvas.enlarged(1), 1);
  assert.equal(canvas.enlarged(0.4), 2);
  assert.equal(canvas.enlarged(0.02), 3);
});

import assert from "node:assert/strict";
import test from "node:test";
import { type Movement, movementOf, wheelMovement } from "../src/graph/gestures";
import * as geometry from "../src/graph/viewport";
import { LEGIBLE, type Point, type Rect } from "../src/graph/viewport";
import type { Viewport } from "../src/state";

const FRAME = { x: 0, y: 0, width: 800, height: 400 };
const PANE = { width: 424, height: 324 };
const TOP = { x: 400, y: 10 };
const CLOSE = 1e-9;

/** Where a point of the graph is seen, in px from the middle of the pane. */
const seenAt = ({ x, y, scale }: Viewport, point: Point): Point => ({
  x: (point.x - x) * scale,
  y: (point.y - y) * scale,
});

function assertClose(actual: object, expected: object) {
  for (const [name, number] of Object.entries(expected)) {
    const found = (actual as Record<string, number>)[name] ?? Number.NaN;
    assert.ok(Math.abs(found - number) < CLOSE, `${name}: ${JSON.stringify(actual)}`);
  }
}

test("fit shows the whole picture in the middle of a pane that is large enough", () => {
  const pane = { width: 824, height: 424 };
  assertClose(geometry.fit(FRAME, pane, TOP), { x: 400, y: 200, scale: 1 });
});

test("fit makes a picture smaller as long as its text can be read", () => {
  const pane = { width: 720, height: 1000 };
  assertClose(geometry.fit(FRAME, pane, TOP), { x: 400, y: 200, scale: 0.9 });
});

test("fit makes no picture smaller of which only some margin is out of sight", () => {
  assertClose(geometry.fit(FRAME, { width: 790, height: 390 }, TOP), { x: 400, y: 200, scale: 1 });
  assert.ok(geometry.fit(FRAME, { width: 770, height: 390 }, TOP).scale < 1);
});

test("fit never enlarges a small picture", () => {
  const small = { x: 0, y: 0, width: 10, height: 10 };
  assert.equal(geometry.fit(small, PANE, TOP).scale, 1);
  assert.equal(geometry.fit(small, PANE, TOP, 1, 0, geometry.MOST_FITTED).scale, 2);
});

test("fit never makes text smaller than can be read", () => {
  for (const side of [100, 1e3, 1e4, 1e6]) {
    const frame = { x: 0, y: 0, width: side, height: 1e6 / side };
    const { scale } = geometry.fit(frame, PANE, TOP);
    assert.ok(scale >= LEGIBLE && scale <= 1, `${side}: ${scale}`);
  }
});

test("text is somewhat smaller where then nothing is out of sight", () => {
  const frame = { x: 0, y: 0, width: 560, height: 200 };
  for (const height of [PANE.height, 700]) {
    const { scale } = geometry.fit(frame, { ...PANE, height }, TOP);
    assert.ok(scale < LEGIBLE && scale * frame.width <= PANE.width, `${scale}`);
  }
});

test("in a large pane text stays readable, and of a larger picture as much as can be is seen", () => {
  const frame = { x: 0, y: 0, width: 560, height: 980 };
  const pane = { width: 800, height: 700 };
  assert.equal(geometry.fit(frame, pane, TOP).scale, LEGIBLE);
  assert.equal(geometry.fit({ ...frame, height: 900 }, pane, TOP).scale, 700 / 900); // all of it
  assert.ok(geometry.fit(frame, { ...pane, width: 700 }, TOP).scale < LEGIBLE);
});

test("with larger type pictures are larger too", () => {
  const pane = { width: 2000, height: 2000 };
  assert.equal(geometry.fit(FRAME, pane, TOP, 1.5).scale, 1.5);
  assert.equal(geometry.fit(FRAME, PANE, TOP, 1.5).scale, LEGIBLE * 1.5);
});

test("a picture too high for the pane fits its width and begins at the first node above", () => {
  const frame = { x: 0, y: 0, width: 440, height: 5000 };
  const found = geometry.fit(frame, PANE, { x: 100, y: 20 });
  assertClose(found, { x: 220, scale: 424 / 440 });
  const seen = geometry.visiblePart(found, PANE);
  assert.ok(seen.y <= 0 && seen.y > -20, `${seen.y}`);
});

test("a picture whose first node is below begins there", () => {
  const frame = { x: 0, y: 0, width: 420, height: 5000 };
  const seen = geometry.visiblePart(geometry.fit(frame, PANE, { x: 100, y: 4980 }), PANE);
  const below = seen.y + seen.height - 5000;
  assert.ok(below >= 0 && below < 20, `${below}`);
});

test("a picture too wide to be read in the pane begins where its first node is", () => {
  const frame = { x: 0, y: 0, width: 5000, height: 200 };
  const seen = geometry.visiblePart(geometry.fit(frame, PANE, { x: 3000, y: 10 }), PANE);
  assert.ok(seen.x < 3000 && seen.x + seen.width > 3000, `${seen.x}`);
  const first = geometry.visiblePart(geometry.fit(frame, PANE, { x: 0, y: 10 }), PANE);
  assert.ok(first.x <= 0 && first.x > -20, `${first.x}`);
});

test("bound keeps some of the picture in the pane and the scale within its limits", () => {
  const kept = geometry.bound({ x: -5000, y: 9000, scale: 1 }, FRAME, PANE);
  const seen = geometry.visiblePart(kept, PANE);
  assert.deepEqual([seen.x + seen.width, FRAME.height - seen.y], [96, 96]);
  assert.equal(geometry.bound({ x: 10, y: 20, scale: 100 }, FRAME, PANE).scale, 8);
  const far = geometry.bound({ x: 10, y: 20, scale: 0.001 }, FRAME, PANE);
  assert.equal(far.scale * FRAME.width, PANE.width / 2); // it fills half of the pane
  const small = geometry.bound(
    { x: 10, y: 20, scale: 0.001 },
    { ...TOP, width: 9, height: 9 },
    PANE,
  );
  assert.equal(small.scale, 0.5);
});

test("bound leaves a viewport alone that shows a part of the picture", () => {
  const view = { x: -50, y: 450, scale: 1 };
  assert.deepEqual(geometry.bound(view, FRAME, PANE), view);
});

test("pan moves the picture by as many px as the pointer moved", () => {
  const point = { x: 100, y: 100 };
  const before = { x: 400, y: 200, scale: 0.5 };
  const { x, y } = seenAt(before, point);
  assertClose(seenAt(geometry.pan(before, 30, -20), point), { x: x + 30, y: y - 20 });
});

test("zoom keeps what is under the pointer where it is", () => {
  const pointer = { x: 120, y: -80 };
  const before = { x: 400, y: 200, scale: 0.5 };
  const under = { x: before.x + pointer.x / 0.5, y: before.y + pointer.y / 0.5 };
  const after = geometry.zoom(before, 1.7, pointer);
  assertClose(after, { scale: 0.85 });
  assertClose(seenAt(after, under), pointer);
});

test("zoom stops at its limits without drifting", () => {
  const near = { x: 400, y: 200, scale: 8 };
  assert.deepEqual(geometry.zoom(near, 2, { x: 120, y: -80 }), near);
  const [least] = geometry.scalesOf(FRAME, PANE);
  const far = { ...near, scale: least };
  assert.deepEqual(geometry.zoom(far, 0.5, { x: 120, y: -80 }, [least, 8]), far);
});

test("zoom without a pointer keeps the middle", () => {
  const found = geometry.zoom({ x: 400, y: 200, scale: 1 }, 2);
  assert.deepEqual(found, { x: 400, y: 200, scale: 2 });
});

const STILL = {
  deltaX: 0,
  deltaY: 0,
  deltaMode: 0,
  shiftKey: false,
  ctrlKey: false,
  metaKey: false,
};
const wheelFactor = (turn: Partial<typeof STILL>) => wheelMovement({ ...STILL, ...turn }).factor;

test("a wheel that turns sideways, or with Shift, moves the picture across", () => {
  const across = { dx: -40, factor: 1 };
  assert.deepEqual(wheelMovement({ ...STILL, deltaX: 40, deltaY: 3 }), across);
  assert.deepEqual(wheelMovement({ ...STILL, deltaY: 40, shiftKey: true }), across);
  assert.deepEqual(wheelMovement({ ...STILL, deltaX: 40, shiftKey: true }), across);
  const zoomed = { ...STILL, deltaX: 3, deltaY: 40 };
  assert.deepEqual(wheelMovement(zoomed), { dx: 0, factor: wheelFactor({ deltaY: 40 }) });
  assert.equal(wheelMovement({ ...zoomed, ctrlKey: true, shiftKey: true }).dx, 0);
});

test("a wheel turned up zooms in, and as much as turning it down zooms out", () => {
  const up = wheelFactor({ deltaY: -100, deltaMode: 0 });
  assert.ok(up > 1.1 && up < 1.5, `${up}`);
  assert.ok(Math.abs(up * wheelFactor({ deltaY: 100, deltaMode: 0 }) - 1) < CLOSE);
});

test("a notch zooms alike whether the browser counts pixels, lines or pages", () => {
  const notches = [
    { deltaY: 100, deltaMode: 0 },
    { deltaY: 3, deltaMode: 1 },
    { deltaY: 1, deltaMode: 2 },
  ];
  assert.equal(new Set(notches.map(wheelFactor)).size, 1);
});

test("a pinch on a touchpad zooms finely", () => {
  const factor = wheelFactor({ deltaY: -2, deltaMode: 0 });
  assert.ok(factor > 1 && factor < 1.05, `${factor}`);
});

test("one pointer moves the picture, two also zoom it", () => {
  const [a, b, c] = [
    { x: 10, y: 10 },
    { x: 30, y: 10 },
    { x: 50, y: 10 },
  ];
  const drag: Movement = movementOf([a], [b]);
  assert.deepEqual(drag, { dx: 20, dy: 0, factor: 1, at: b });
  assert.deepEqual(movementOf([a, b], [a, c]), { dx: 10, dy: 0, factor: 2, at: b });
});

test("reveal leaves a viewport alone that shows the box already", () => {
  const view = { x: 400, y: 200, scale: 0.5 };
  const box = { x: 380, y: 180, width: 40, height: 20 };
  assert.deepEqual(geometry.reveal(view, PANE, box), view);
});

test("reveal moves a viewport until the whole box is inside the pane, and no further", () => {
  const box = { x: 700, y: 180, width: 60, height: 40 };
  const after = geometry.reveal({ x: 200, y: 200, scale: 1 }, PANE, box);
  const right = seenAt(after, { x: 760, y: 200 }).x;
  assert.ok(right < PANE.width / 2 && right > PANE.width / 2 - 20, `${right}`);
  assertClose(after, { y: 200, scale: 1 });
});

test("reveal does not move towards a box in a direction in which it is larger than the pane", () => {
  const box = { x: 100, y: 100, width: 200, height: 10 };
  const after = geometry.reveal({ x: 0, y: 0, scale: 8 }, PANE, box);
  assert.equal(after.x, 0);
  assert.ok(after.y > 60, `${after.y}`);
});

test("what is gone to is in the middle, and can be read", () => {
  const box = { x: 700, y: 180, width: 60, height: 40 };
  const small = geometry.centre({ x: 0, y: 0, scale: 0.1 }, PANE, box);
  assert.deepEqual(small, { x: 730, y: 200, scale: LEGIBLE });
  assert.equal(geometry.centre({ x: 0, y: 0, scale: 2 }, PANE, box).scale, 2);
});

test("what is gone to and larger than the pane is seen as a whole", () => {
  const box = { x: 0, y: 0, width: 4000, height: 40 };
  assert.equal(geometry.centre({ x: 0, y: 0, scale: 1 }, PANE, box).scale, 0.1);
});

test("everything is visible where a picture was fitted as a whole, and not after zooming in", () => {
  const pane = { width: 824, height: 424 };
  const whole = geometry.fit(FRAME, pane, TOP);
  assert.ok(geometry.isAllVisible(whole, pane, FRAME));
  assert.ok(!geometry.isAllVisible(geometry.zoom(whole, 1.25), pane, FRAME));
});

test("signs and titles are enlarged where the picture is small, within limits", () => {
  assert.deepEqual([1, 0.4, 0.02].map(geometry.enlarged), [1, 2, 3]);
});

test("a tooltip is below what is pointed at, above it where there is no room, and in the pane", () => {
  const box = { width: 100, height: 50 };
  const part = { x: 10, top: 10, bottom: 40 };
  assert.deepEqual(geometry.beside(part, box, PANE), { x: 10, y: 48 });
  const low = { x: 400, top: 280, bottom: 310 };
  assert.deepEqual(geometry.beside(low, box, PANE), { x: 324, y: 222 });
  assert.deepEqual(geometry.beside(part, box, { width: 90, height: 60 }), { x: 0, y: 10 });
});

test("the rectangle around others holds them all", () => {
  const rects: Rect[] = [
    { x: 0, y: 10, width: 5, height: 5 },
    { x: 20, y: -10, width: 10, height: 5 },
  ];
  assert.deepEqual(geometry.around(rects), { x: 0, y: -10, width: 30, height: 25 });
  assert.equal(geometry.around([]), null);
});

// --- when another scene is shown ---

const SEEN = { x: 100, y: 100, scale: 1 };
const BEFORE = {
  key: "main/1/",
  function: "main",
  isPair: false,
  frame: FRAME,
  fitted: { x: 400, y: 200, scale: 1 },
};
const LARGE_PANE = { width: 1000, height: 500 };
const nextOf = (
  viewport: Viewport | null,
  before: typeof BEFORE,
  after: typeof BEFORE,
  moved: number[],
  seen = SEEN,
) => geometry.nextViewport(viewport, seen, before, after, LARGE_PANE, moved);
const LARGER = { ...FRAME, width: 900, height: 700 };

test("what was opened stays in its place, also where the whole picture was fitted", () => {
  const after = { ...BEFORE, frame: LARGER };
  for (const viewport of [null, SEEN]) {
    const found = nextOf(viewport, BEFORE, after, [30, 200]);
    assert.deepEqual(found, { x: 130, y: 300, scale: 1 });
  }
});

test("the same picture in other colours is seen as before", () => {
  assert.equal(nextOf(null, BEFORE, BEFORE, [0, 0]), null);
  assert.equal(nextOf(SEEN, BEFORE, BEFORE, [0, 0]), SEEN);
});

test("what two stages have in common stays in its place, however large the pictures are", () => {
  const larger = { ...BEFORE, key: "main/2/", frame: LARGER };
  const { x, y, scale } = SEEN;
  const found = nextOf(SEEN, BEFORE, larger, [30, -8]);
  assert.deepEqual(found, { x: x + 30, y: y - 8, scale });
});

test("a step from a fitted picture keeps the scale and what stays, and moves no more than it must", () => {
  const { fitted } = BEFORE;
  const step = (frame: Rect, moved: number[]) => {
    const after = {
      ...BEFORE,
      key: "main/2/",
      frame,
      fitted: geometry.fit(frame, LARGE_PANE, TOP),
    };
    return nextOf(null, BEFORE, after, moved, fitted);
  };
  assert.deepEqual(step({ ...FRAME, width: 700 }, [-30, 5]), { x: 370, y: 205, scale: 1 });
  assert.equal(step(FRAME, [0, 0]), null); // it is fitted still
  const lower = step({ ...FRAME, height: 470 }, [0, 0]); // it reaches below the pane
  assert.ok(
    lower && lower.y > 200 && geometry.isAllVisible(lower, LARGE_PANE, { ...FRAME, height: 470 }),
  );
  assert.equal(step({ ...FRAME, height: 600 }, [0, 0]), null); // seen whole only where it is smaller
  assert.deepEqual(step({ ...FRAME, height: 2000 }, [0, 9]), { x: 400, y: 209, scale: 1 });
});

test("what stays is the selected node, or else the one that was nearest to the middle", () => {
  const box = (x: number, y: number) => ({ x, y, width: 10, height: 10 });
  const before = new Map([
    ["a", box(0, 0)],
    ["b", box(90, 90)],
    ["c", box(100, 100)],
  ]);
  const after = new Map([
    ["a", box(1, 2)],
    ["b", box(95, 93)],
  ]);
  assert.deepEqual(geometry.movedBy(before, after, "", { x: 105, y: 105 }), [5, 3]);
  assert.deepEqual(geometry.movedBy(before, after, "a", { x: 105, y: 105 }), [1, 2]);
  assert.deepEqual(geometry.movedBy(before, new Map(), "a", { x: 0, y: 0 }), []);
});

test("another function, or a picture without anything in common, is fitted anew", () => {
  const other = { ...BEFORE, key: "f/1/", function: "f" };
  assert.equal(nextOf(SEEN, BEFORE, other, [0, 0]), null);
  const larger = { ...BEFORE, key: "main/2/", frame: LARGER };
  assert.equal(nextOf(SEEN, BEFORE, larger, []), null);
});

test("a comparison begins with what fits its panes, and is stepped through in place", () => {
  const pair = { ...BEFORE, key: "main/1/0", isPair: true };
  assert.equal(nextOf(SEEN, BEFORE, pair, [0, 0]), null);
  const next = { ...pair, key: "main/2/1" };
  assert.deepEqual(nextOf(SEEN, pair, next, [0, 0]), SEEN);
});

test("what is shown in the middle leaves no part of the pane empty that the picture can fill", () => {
  const tall = { x: 0, y: 0, width: 300, height: 2000 };
  const last = { x: 150, y: 1990, scale: 1 };
  assert.deepEqual(geometry.filled(last, tall, PANE), { ...last, y: 2000 - PANE.height / 2 });
  assert.equal(geometry.filled({ ...last, y: 900 }, tall, PANE).y, 900);
});

test("a part is in sight while its middle is seen", () => {
  const seen = { x: 100, y: 100, scale: 2 };
  const pane = { width: 200, height: 200 };
  const at = (x: number) => ({ x, y: 90, width: 20, height: 20 });
  assert.ok(geometry.isInSight(at(135), seen, pane));
  assert.ok(!geometry.isInSight(at(145), seen, pane));
});

test("from afar there are names and kinds, closer types, then all of it", () => {
  assert.deepEqual([0.3, 0.6, 0.8, 1].map(geometry.distance), ["far", "middle", "near", "near"]);
});

test("a name that is alone in its box is as large as fits, and in the middle", () => {
  const box = { x: 0, y: 100, width: 200, height: 42 };
  const short = geometry.roomOf(box, 7, 119);
  assert.ok(short.scale > 2 && 7 * 7.9 * short.scale <= 200);
  assert.equal(short.down, 6.5);
  assert.equal(geometry.roomOf(box, 40, 119).scale, 1);
});

test("a key zooms where the nearest node in sight is, or at the middle of the pane", () => {
  const node = (x: number) => ({ x, y: -5, width: 10, height: 10 });
  const seen = { x: 0, y: 0, scale: 1 };
  const pane = { width: 100, height: 100 };
  const nodes = [node(30), node(-25), node(45.5)];
  assert.deepEqual(geometry.nearestMiddle(nodes, seen, pane), { x: -20, y: 0 });
  const { x, y } = geometry.nearestMiddle([node(500)], seen, pane);
  assert.deepEqual({ x, y }, { x: 0, y: 0 });
});

test("from afar names are of one size where three quarters of them have room", () => {
  assert.equal(geometry.commonScale([2.5, 1, 2.2, 2, 2.4]), 2);
  assert.equal(geometry.commonScale([]), 1);
});

test("a picture is fitted down to the scale that is asked for", () => {
  const { scale } = geometry.fit(
    { x: 0, y: 0, width: 10 * PANE.width, height: 10 },
    PANE,
    TOP,
    1,
    0,
  );
  assert.ok(scale * 10 <= 1);
});

test("of parts that are not seen at once, one with most others around it is chosen", () => {
  const frame = { x: 0, y: 0, width: 4000, height: 500 };
  const at = (x: number) => ({ x, y: 200, width: 100, height: 40 });
  const viewport = { x: 0, y: 0, scale: 1 };
  const parts = [at(100), at(2000), at(2120), at(2240), at(3900)];
  const found = geometry.amidMost(parts, viewport, PANE, frame);
  assert.equal(found?.x, 2120);
  assert.equal(geometry.amidMost([], viewport, PANE, frame), null);
});

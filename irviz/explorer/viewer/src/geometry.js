// Where a picture is seen in its pane, as numbers: [x, y, scale] of the canvas's `viewport`.

/** @import { Viewport } from "./messages" */

/** The viewport of a picture that is seen: (x, y) is the graph's point in the middle of the pane.
 * @typedef {[x: number, y: number, scale: number]} View */
/** @typedef {{ width: number, height: number }} Size */
/** @typedef {{ x: number, y: number, width: number, height: number }} Rect */
/** An edge from the node that makes a value to one that uses it, by their ids.
 * @typedef {{ source: string, target: string }} Edge */

/** @type {[number, number]} */
const SCALES = [0.02, 8];
const MARGIN = 32; // px of the pane's width, and height, that a fitted graph leaves free

/** @typedef {"ArrowUp" | "ArrowDown" | "ArrowLeft" | "ArrowRight"} Arrow */
/** @type {Record<Arrow, [dx: number, dy: number]>} */
export const ARROWS = {
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
};

/** @type {(value: number, low: number, high: number) => number} */
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

/** @type {(edge: Edge, id: string) => boolean} */
export const touches = ({ source, target }, id) => source === id || target === id;

/** @type {(rect: Rect) => [x: number, y: number]} */
export const middle = ({ x, y, width, height }) => [x + width / 2, y + height / 2];

/** Show the whole frame in the middle of the pane, never enlarged.
 * @type {(frame: Rect, pane: Size) => View} */
export function fit(frame, pane) {
  const scales = [(pane.width - MARGIN) / frame.width, (pane.height - MARGIN) / frame.height];
  return [...middle(frame), clamp(Math.min(...scales), SCALES[0], 1)];
}

/** Keep the scale within its limits and the middle of the pane over the frame.
 * @type {(view: View, frame: Rect) => View} */
export function bound([x, y, scale], frame) {
  const across = clamp(x, frame.x, frame.x + frame.width);
  const down = clamp(y, frame.y, frame.y + frame.height);
  return [across, down, clamp(scale, ...SCALES)];
}

/** Return what a viewport shows of a frame: all of it where the viewport is "fit".
 * @type {(viewport: Viewport, frame: Rect, pane: Size) => View} */
export const viewOf = (viewport, frame, pane) =>
  viewport.length ? bound(viewport, frame) : fit(frame, pane);

/** How much larger than the rest signs and titles are, so that they can be seen and hit.
 * @type {(scale: number) => number} */
export const enlarged = (scale) => clamp(0.8 / scale, 1, 3);

/** Move the picture by pixels, as a hand that drags it.
 * @type {(view: View, dx: number, dy: number) => View} */
export const pan = ([x, y, scale], dx, dy) => [x - dx / scale, y - dy / scale, scale];

/** Zoom, keeping what lies under the point (px from the middle of the pane) where it is.
 * @type {(view: View, factor: number, point?: [number, number]) => View} */
export function zoom([x, y, scale], factor, [px, py] = [0, 0]) {
  const zoomed = clamp(scale * factor, ...SCALES);
  const kept = 1 / scale - 1 / zoomed;
  return [x + px * kept, y + py * kept, zoomed];
}

/** Turn a wheel event into a zoom factor: a notch counts alike everywhere, a pinch finely.
 * @type {(event: Pick<WheelEvent, "deltaY" | "deltaMode">) => number} */
export const wheelFactor = ({ deltaY, deltaMode }) =>
  Math.exp(clamp(deltaY * ([1, 16, 400][deltaMode] ?? 1), -30, 30) * -0.008);

/** Move the view just enough to show the rect.
 * @type {(view: View, pane: Size, rect: Rect) => View} */
export function reveal([x, y, scale], pane, rect) {
  /** @type {(at: number, seen: number, low: number, length: number) => number} */
  const shift = (at, seen, low, length) => {
    const half = (seen - MARGIN / 2) / 2 / scale;
    return length > 2 * half ? low + length / 2 : clamp(at, low + length - half, low + half);
  };
  return [
    shift(x, pane.width, rect.x, rect.width),
    shift(y, pane.height, rect.y, rect.height),
    scale,
  ];
}

/** @type {(view: View, pane: Size) => string} */
export const viewBoxOf = ([x, y, scale], { width, height }) =>
  [x - width / scale / 2, y - height / scale / 2, width / scale, height / scale].join(" ");

/** Return the ids of the nodes that an edge joins to this one.
 * @type {(edges: readonly Edge[], id: string) => Set<string>} */
export function neighbours(edges, id) {
  const touching = edges.filter((edge) => touches(edge, id));
  return new Set(touching.map(({ source, target }) => (source === id ? target : source)));
}

/** Find the node an arrow key leads to: up and down along edges first, else the nearest.
 * @type {(rects: Map<string, Rect>, edges: readonly Edge[], from: string, arrow: Arrow) =>
 *   string | undefined} */
export function nextNode(rects, edges, from, arrow) {
  const [dx, dy] = ARROWS[arrow];
  const start = rects.get(from);
  if (!start) return undefined;
  const [x0, y0] = middle(start);
  const joined = dy === 0 ? new Set() : neighbours(edges, from);
  const reached = [...rects].map(([id, rect]) => {
    const [x, y] = middle(rect);
    const ahead = (x - x0) * dx + (y - y0) * dy;
    const aside = Math.abs((x - x0) * dy) + Math.abs((y - y0) * dx);
    return { id, ahead, aside, isJoined: joined.has(id), cost: ahead + 2 * aside };
  });
  const found = reached.filter((one) => one.ahead >= 1 && (one.isJoined || one.aside <= one.ahead));
  return found.sort((a, b) => Number(b.isJoined) - Number(a.isJoined) || a.cost - b.cost)[0]?.id;
}

/** Tell whether a part of these nodes is meant, or an edge that carries the value of one.
 * @type {(part: { node?: string, source?: string, target?: string }, dimmed: Set<string>) => boolean} */
export const isPale = ({ node, source }, dimmed) => dimmed.has(node ?? source ?? "");

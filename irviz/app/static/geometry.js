// Where a picture is seen in its pane, as numbers: [x, y, scale] of the canvas's `viewport`.

const SCALES = [0.02, 8];
const MARGIN = 32; // px of the pane's width, and height, that a fitted graph leaves free
export const ARROWS = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
export const touches = ({ source, target }, id) => source === id || target === id;
export const middle = ({ x, y, width, height }) => [x + width / 2, y + height / 2];

/** Show the whole frame in the middle of the pane, never enlarged. */
export function fit(frame, pane) {
  const scales = [(pane.width - MARGIN) / frame.width, (pane.height - MARGIN) / frame.height];
  return [...middle(frame), clamp(Math.min(...scales), SCALES[0], 1)];
}

/** Keep the scale within its limits and the middle of the pane over the frame. */
export function bound([x, y, scale], frame) {
  const across = clamp(x, frame.x, frame.x + frame.width);
  const down = clamp(y, frame.y, frame.y + frame.height);
  return [across, down, clamp(scale, ...SCALES)];
}

/** How much larger than the rest signs and titles are, so that they can be seen and hit. */
export const enlarged = (scale) => clamp(0.8 / scale, 1, 3);

/** Move the picture by pixels, as a hand that drags it. */
export const pan = ([x, y, scale], dx, dy) => [x - dx / scale, y - dy / scale, scale];

/** Zoom, keeping what lies under the point (px from the middle of the pane) where it is. */
export function zoom([x, y, scale], factor, [px, py] = [0, 0]) {
  const zoomed = clamp(scale * factor, ...SCALES);
  const kept = 1 / scale - 1 / zoomed;
  return [x + px * kept, y + py * kept, zoomed];
}

/** Turn a wheel event into a zoom factor: a notch counts alike everywhere, a pinch finely. */
export const wheelFactor = ({ deltaY, deltaMode }) =>
  Math.exp(clamp(deltaY * [1, 16, 400][deltaMode], -30, 30) * -0.008);

/** Move the view just enough to show the box. */
export function reveal([x, y, scale], pane, box) {
  const shift = (at, seen, low, length) => {
    const half = (seen - MARGIN / 2) / 2 / scale;
    return length > 2 * half ? low + length / 2 : clamp(at, low + length - half, low + half);
  };
  return [shift(x, pane.width, box.x, box.width), shift(y, pane.height, box.y, box.height), scale];
}

export const viewBoxOf = ([x, y, scale], { width, height }) =>
  [x - width / scale / 2, y - height / scale / 2, width / scale, height / scale].join(" ");

export function neighbours(edges, id) {
  const touching = edges.filter((edge) => touches(edge, id));
  return new Set(touching.map(({ source, target }) => (source === id ? target : source)));
}

/** Find the node an arrow key leads to: up and down along edges first, else the nearest. */
export function nextNode(boxes, edges, from, arrow) {
  const [dx, dy] = ARROWS[arrow];
  const [x0, y0] = middle(boxes.get(from));
  const joined = dy === 0 ? new Set() : neighbours(edges, from);
  const reached = [...boxes].map(([id, box]) => {
    const [x, y] = middle(box);
    const ahead = (x - x0) * dx + (y - y0) * dy;
    const aside = Math.abs((x - x0) * dy) + Math.abs((y - y0) * dx);
    return { id, ahead, aside, isJoined: joined.has(id), cost: ahead + 2 * aside };
  });
  const found = reached.filter((one) => one.ahead >= 1 && (one.isJoined || one.aside <= one.ahead));
  return found.sort((a, b) => b.isJoined - a.isJoined || a.cost - b.cost)[0]?.id;
}

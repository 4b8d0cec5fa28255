// Where a picture is seen in its pane, as numbers.

import type { Viewport } from "../state";

export interface Point {
  x: number;
  y: number;
}
export interface Size {
  width: number;
  height: number;
}
export interface Rect extends Point, Size {}

const SCALES: readonly [number, number] = [0.02, 8];
/** The scale at which what pictures say of values, in a font of 11 units, is 9 px high. */
export const LEGIBLE = 9 / 11;
/** The scale up to which a picture is enlarged that is fitted. */
export const MOST_FITTED = 2;
/** How much a press of a button or key zooms. */
export const ZOOM_STEP = 1.25;
const [NEARLY, SHRUNK] = [0.9, 0.8]; // of the least scale: better than a part out of sight
const ON_PHONE = 0.65; // the same where points are smaller
const [PHONE, NARROW, LOW] = [480, 720, 600]; // px
const MARGIN = 24; // px of the pane's width, and height, around a part that is gone to
const KEPT = 96; // px of a picture that stay in the pane, however far it is moved
const MOST_COUNTED = 500; // parts, each of which is held against each
const SLACK = 1; // px of a picture that may be out of sight before it is not all visible

const clamp = (value: number, low: number, high: number) => Math.min(Math.max(value, low), high);

export const middle = ({ x, y, width, height }: Rect): Point => ({
  x: x + width / 2,
  y: y + height / 2,
});

/** Return where something is in a picture, which has a margin of its own. */
export const content = (frame: Rect): Rect => inset(frame, MARGIN / 2);

/** Show the whole picture, which has a margin of its own, in the middle of the pane where its text
 * can be read so, or nearly so; else as much of its width as can be read, from
 * `start` on, which is where its first node is. A picture that is a little too large for that is
 * shown as small as it can be read. All type is `type` times as large as usual, and so is the
 * picture. The scale is between `least` and `most`. */
export function fit(
  frame: Rect,
  pane: Size,
  start: Point,
  type = 1,
  least = LEGIBLE * type,
  most = type,
): Viewport {
  const [across, down] = [pane.width / frame.width, pane.height / frame.height];
  // at the largest scale some of the margin may be out of sight
  const isRoomy = isAllVisible({ ...middle(frame), scale: most }, pane, content(frame));
  const whole = isRoomy ? most : Math.min(across, down, most);
  const isSmall = pane.width < NARROW || pane.height < LOW;
  const shrunk = (pane.width < PHONE ? ON_PHONE : SHRUNK) * least;
  if (whole >= (isSmall ? shrunk : NEARLY * least)) return { ...middle(frame), scale: whole };
  const scale = whole >= shrunk ? least : clamp(across, least, most);
  return filled({ ...start, scale }, frame, pane);
}

/** Leave nothing of the pane empty that the picture can fill. */
export function filled({ x, y, scale }: Viewport, frame: Rect, pane: Size): Viewport {
  const keep = (at: number, low: number, length: number, seen: number) => {
    const half = seen / scale / 2;
    return length <= 2 * half ? low + length / 2 : clamp(at, low + half, low + length - half);
  };
  return {
    x: keep(x, frame.x, frame.width, pane.width),
    y: keep(y, frame.y, frame.height, pane.height),
    scale,
  };
}

/** Return the one of some parts around which most of them are seen; of many the first. */
export function amidMost(
  parts: readonly Rect[],
  viewport: Viewport,
  pane: Size,
  frame: Rect,
): Rect | null {
  const seenBeside = (part: Rect) => {
    const there = filled(centre(viewport, pane, part), frame, pane);
    return parts.filter((one) => isAllVisible(there, pane, one)).length;
  };
  const counts = parts.length > MOST_COUNTED ? [] : parts.map(seenBeside);
  return parts[counts.indexOf(Math.max(...counts))] ?? parts[0] ?? null;
}

/** Return the least scale, at which the picture fills half of the pane, and the largest. */
export function scalesOf(frame: Rect, pane: Size): readonly [number, number] {
  const [low, high] = SCALES;
  const whole = Math.min(pane.width / frame.width, pane.height / frame.height, 1);
  return [Math.max(whole / 2, low), high];
}

/** Keep the scale within its limits, and some of the picture in the pane. */
export function bound({ x, y, scale: wanted }: Viewport, frame: Rect, pane: Size): Viewport {
  const scale = clamp(wanted, ...scalesOf(frame, pane));
  const keep = (at: number, low: number, length: number, seen: number) => {
    const beyond = (seen / 2 - Math.min(KEPT, length * scale, seen / 2)) / scale;
    return clamp(at, low - beyond, low + length + beyond);
  };
  return {
    x: keep(x, frame.x, frame.width, pane.width),
    y: keep(y, frame.y, frame.height, pane.height),
    scale,
  };
}

/** How much larger than the rest signs and titles are, so that they can be seen and hit. */
export const enlarged = (scale: number) => clamp(0.8 / scale, 1, 3);

/** Tell from how far a picture is seen: then names and kinds can be read, types too, or all of it. */
export const distance = (scale: number) => (scale < 0.5 ? "far" : scale < 0.65 ? "middle" : "near");

const NAME = { character: 7.9, height: 15, middle: 4.5, most: 2.5 }; // of 13 units, as it is drawn

/** How much larger a name can be in its box, and how far down its middle is then. */
export interface Room {
  scale: number;
  down: number;
}

export function roomOf({ y, width, height }: Rect, length: number, baseline: number): Room {
  const across = (width - 8) / (length * NAME.character);
  const scale = clamp(Math.min(across, (height - 4) / NAME.height), 1, NAME.most);
  return { scale, down: y + height / 2 - (baseline - NAME.middle) };
}

/** Return the scale that three quarters of some names can have. */
export function commonScale(scales: readonly number[]): number {
  const sorted = [...scales].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 4)] ?? 1;
}

/** Move the picture by pixels, as a hand that drags it. */
export const pan = ({ x, y, scale }: Viewport, dx: number, dy: number): Viewport => ({
  x: x - dx / scale,
  y: y - dy / scale,
  scale,
});

/** Zoom, keeping what lies under the point (px from the middle of the pane) where it is. */
export function zoom(
  { x, y, scale }: Viewport,
  factor: number,
  at: Point = { x: 0, y: 0 },
  scales = SCALES,
): Viewport {
  const zoomed = clamp(scale * factor, ...scales);
  const kept = 1 / scale - 1 / zoomed;
  return { x: x + at.x * kept, y: y + at.y * kept, scale: zoomed };
}

/** Move the viewport just enough to show the rect, in each direction in which it has room. */
export function reveal({ x, y, scale }: Viewport, pane: Size, rect: Rect): Viewport {
  const shift = (at: number, seen: number, low: number, length: number) => {
    const half = (seen - MARGIN) / 2 / scale;
    return length > 2 * half ? at : clamp(at, low + length - half, low + half);
  };
  return {
    x: shift(x, pane.width, rect.x, rect.width),
    y: shift(y, pane.height, rect.y, rect.height),
    scale,
  };
}

/** Show the rect in the middle: its text can be read, unless it is larger than the pane. */
export function centre({ scale }: Viewport, pane: Size, rect: Rect): Viewport {
  const most = Math.min(
    (pane.width - MARGIN) / rect.width,
    (pane.height - MARGIN) / rect.height,
    SCALES[1],
  );
  return { ...middle(rect), scale: Math.max(Math.min(Math.max(scale, LEGIBLE), most), SCALES[0]) };
}

/** Return the part of the picture that is seen. */
export const visiblePart = ({ x, y, scale }: Viewport, { width, height }: Size): Rect => ({
  x: x - width / scale / 2,
  y: y - height / scale / 2,
  width: width / scale,
  height: height / scale,
});

/** Tell whether the middle of a part of the picture is seen. */
export function isInSight(rect: Rect, viewport: Viewport, pane: Size): boolean {
  const [{ x, y }, seen] = [middle(rect), visiblePart(viewport, pane)];
  return x >= seen.x && x <= seen.x + seen.width && y >= seen.y && y <= seen.y + seen.height;
}

/** Return the middle of the rect in sight that is nearest to the middle of the pane, or that of the
 * pane where none is in sight. */
export function nearestMiddle(rects: Iterable<Rect>, viewport: Viewport, pane: Size): Point {
  const away = ({ x, y }: Point) => Math.hypot(x - viewport.x, y - viewport.y);
  const middles = [...rects].filter((one) => isInSight(one, viewport, pane)).map(middle);
  const first: Point = middles[0] ?? viewport;
  return middles.reduce((one, other) => (away(other) < away(one) ? other : one), first);
}

/** Tell whether the whole frame is seen. */
export function isAllVisible(viewport: Viewport, pane: Size, frame: Rect): boolean {
  const seen = visiblePart(viewport, pane);
  const slack = SLACK / viewport.scale;
  return (
    seen.x <= frame.x + slack &&
    seen.y <= frame.y + slack &&
    seen.x + seen.width >= frame.x + frame.width - slack &&
    seen.y + seen.height >= frame.y + frame.height - slack
  );
}

const BESIDE = 8; // px between what is pointed at and what is said of it

/** Return the place of a box below a part of the picture, or above it, inside of the pane. */
export function beside(part: { x: number; top: number; bottom: number }, box: Size, pane: Size) {
  const x = Math.max(Math.min(part.x, pane.width - box.width), 0);
  const [below, above] = [part.bottom + BESIDE, part.top - BESIDE - box.height];
  const y = below + box.height <= pane.height ? below : above;
  return { x, y: y >= 0 ? y : Math.max(pane.height - box.height, 0) };
}

/** Return the smallest rect around others, null for none. */
export function around(rects: readonly Rect[]): Rect | null {
  if (!rects.length) return null;
  const x = Math.min(...rects.map((one) => one.x));
  const y = Math.min(...rects.map((one) => one.y));
  const right = Math.max(...rects.map((one) => one.x + one.width));
  const bottom = Math.max(...rects.map((one) => one.y + one.height));
  return { x, y, width: right - x, height: bottom - y };
}

/** What a picture is of, how large it is, and what is seen of it where it is fitted. */
interface Shown {
  key: string;
  function: string;
  /** Whether it is beside another one. */
  isPair: boolean;
  frame: Rect;
  fitted: Viewport;
}

/** Return the viewport for another picture, null to fit it: what is looked at stays in its place.
 * `viewport` is null where the reader did not choose what is `seen` of the picture before; `moved`
 * is how far what stays was moved, [] where that is not known. A picture for which there is room is
 * moved so far that all of it is seen, and fitted if it is seen only then. */
export function nextViewport(
  viewport: Viewport | null,
  seen: Viewport,
  before: Shown,
  after: Shown,
  pane: Size,
  moved: readonly number[],
): Viewport | null {
  const [dx = 0, dy = 0] = moved;
  const { frame, fitted } = after;
  const kept = { x: seen.x + dx, y: seen.y + dy, scale: seen.scale };
  const inner = content(frame);
  const whole = isAllVisible(kept, pane, inner) ? kept : reveal(kept, pane, inner);
  if (before.key === after.key) {
    const isStill = frame.width === before.frame.width && frame.height === before.frame.height;
    if (isStill && !dx && !dy) return viewport;
    if (isAllVisible(whole, pane, inner)) return whole;
    const isNear = fitted.scale >= NEARLY * seen.scale && isAllVisible(fitted, pane, inner);
    return isNear && fitted.scale <= seen.scale ? null : kept;
  }
  const begins = after.isPair && !before.isPair; // each pane has half the room
  if (before.function !== after.function || begins || !moved.length) return null;
  if (viewport) return kept;
  const isSmall = seen.scale < Math.min(fitted.scale, NEARLY * LEGIBLE);
  if (isSmall || before.isPair !== after.isPair) return null;
  const isCut = isAllVisible(fitted, pane, inner) && !isAllVisible(whole, pane, inner);
  return isCut || areSame(whole, fitted) ? null : whole;
}

/** Tell whether two rectangles overlap in more than a border. */
export const overlap = (one: Rect, other: Rect) =>
  one.x < other.x + other.width &&
  other.x < one.x + one.width &&
  one.y < other.y + other.height &&
  other.y < one.y + one.height;

export const inset = ({ x, y, width, height }: Rect, by: number): Rect => ({
  x: x + by,
  y: y + by,
  width: width - 2 * by,
  height: height - 2 * by,
});

export const areSame = (a: Viewport, b: Viewport) =>
  a.x === b.x && a.y === b.y && a.scale === b.scale;

/** Return how far a node that two pictures have was moved: the one that is selected, or the one that
 * was nearest to a point; [] for none. */
export function movedBy(
  before: ReadonlyMap<string, Rect>,
  after: ReadonlyMap<string, Rect>,
  selected: string,
  { x, y }: Point,
): number[] {
  let found: number[] = [];
  let least = Number.POSITIVE_INFINITY;
  for (const [id, rect] of before) {
    const other = after.get(id);
    if (!rect.width || !other?.width) continue; // not measured
    const [from, to] = [middle(rect), middle(other)];
    const away = id === selected ? -1 : Math.hypot(from.x - x, from.y - y);
    if (away < least) [found, least] = [[to.x - from.x, to.y - from.y], away];
  }
  return found;
}

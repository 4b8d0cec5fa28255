// One of the two pictures, as it is seen: read, measured, and moved.

import {
  batch,
  computed,
  type ReadonlySignal,
  type Signal,
  signal,
  untracked,
} from "@preact/signals";
import type { Side } from "../schema";
import type { State, Viewport } from "../state";
import { type DrawnPicture, readPicture } from "./drawn_picture";
import {
  areSame,
  around,
  bound,
  content,
  fit,
  isAllVisible,
  isInSight,
  MOST_FITTED,
  nearestMiddle,
  type Size,
  scalesOf,
  zoom,
} from "./viewport";

export interface PictureView {
  readonly side: Side;
  /** The size of the pane, 0 while it is hidden. */
  readonly size: Signal<Size>;
  /** The picture, null where there is none. */
  readonly picture: ReadonlySignal<DrawnPicture | null>;
  /** Where this picture and the one beside it are, which are seen as one. */
  readonly place: ReadonlySignal<Place | null>;
  /** Why there is no picture, "" where there is one. */
  readonly error: ReadonlySignal<string>;
  /** The nodes that were not in the picture before: they are outlined for a moment. */
  readonly fresh: Signal<readonly string[]>;
  /** What is seen of the picture; null where nothing can be seen. */
  readonly seen: ReadonlySignal<Viewport | null>;
  readonly isAllVisible: ReadonlySignal<boolean>;
  /** Move both pictures. */
  move(viewport: Viewport): void;
  /** Zoom both pictures: around the selected node, if it is in sight. */
  zoom(factor: number): void;
}

const MOST_KEPT = 8;
const LONGEST_KEPT = 4_000_000; // characters of all pictures that are kept

/** Return a function that reads pictures, and knows those that it read last: who steps through
 * stages, or compares and goes back, sees the same ones again. */
function pictureReader() {
  const known = new Map<string, DrawnPicture>();
  return (text: string): DrawnPicture => {
    const picture = known.get(text) ?? readPicture(text);
    known.delete(text);
    known.set(text, picture); // the latest one is the last
    let length = [...known.keys()].reduce((sum, one) => sum + one.length, 0);
    for (const oldest of known.keys()) {
      if (oldest === text || (known.size <= MOST_KEPT && length <= LONGEST_KEPT)) break;
      length -= oldest.length;
      known.delete(oldest);
    }
    return picture;
  };
}

export const LARGE_TYPE = 18 / 13; // as much larger as the rest is: see viewer.css

/** Make all type larger, or as it was; what is seen of the picture follows. */
export function toggleLargeType(state: State) {
  const isLarge = !state.isLarge.peek();
  const viewport = state.viewport.peek();
  const factor = isLarge ? LARGE_TYPE : 1 / LARGE_TYPE;
  batch(() => {
    state.isLarge.value = isLarge;
    if (viewport) state.viewport.value = { ...viewport, scale: viewport.scale * factor };
  });
}

/** Where a picture is, where one begins to look at it, and how large its names can be. */
export type Place = Pick<DrawnPicture, "frame" | "start" | "nameScale">;

/** Return what is seen of a picture in a pane. */
export function seenOf(state: State, picture: Place, pane: Size): Viewport {
  const viewport = state.viewport.value;
  return viewport ? bound(viewport, picture.frame, pane) : fittedOf(state, picture, pane);
}

/** Return what is seen of a picture that is fitted. */
export function fittedOf(state: State, { frame, start }: Place, pane: Size): Viewport {
  const type = state.isLarge.value ? LARGE_TYPE : 1;
  return state.fitsAll.value
    ? fit(frame, pane, start, type, 0, MOST_FITTED * type)
    : fit(frame, pane, start, type);
}

interface ReadPicture {
  picture: ReadonlySignal<DrawnPicture | null>;
  error: ReadonlySignal<string>;
}

/** Read the picture of a side whenever it changes. */
function readSide(state: State, side: Side): ReadPicture {
  const svg = computed(() => state.scene.value[side]?.svg ?? "");
  const readOnce = pictureReader();
  const read = computed(() => {
    if (!svg.value) return { picture: null, why: "" };
    try {
      return { picture: readOnce(svg.value), why: "" };
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      return { picture: null, why: `Cannot draw this graph: ${why}` };
    }
  });
  return {
    picture: computed(() => read.value.picture),
    error: computed(() => read.value.why || (state.scene.value[side]?.error ?? "")),
  };
}

/** Make the views of both sides: at the same place of both, at one scale. */
export function createPictureViews(state: State): Record<Side, PictureView> {
  const reads = { reference: readSide(state, "reference"), current: readSide(state, "current") };
  const place = computed<Place | null>(() => {
    const drawn = [reads.current, reads.reference].flatMap((one) => one.picture.value ?? []);
    const [first, frame] = [drawn[0], around(drawn.map((one) => one.frame))];
    const nameScale = () => Math.max(...drawn.map((one) => one.nameScale()));
    return first && frame ? { frame, start: first.start, nameScale } : null;
  });
  const view = (side: Side) => createPictureView(state, side, reads[side], place);
  return { reference: view("reference"), current: view("current") };
}

function createPictureView(
  state: State,
  side: Side,
  { picture, error }: ReadPicture,
  place: ReadonlySignal<Place | null>,
): PictureView {
  const size = signal<Size>({ width: 0, height: 0 });
  const seen = computed(() => {
    const [both, pane] = [place.value, size.value];
    if (!picture.value || !both || (!pane.width && !pane.height)) return null;
    return seenOf(state, both, pane);
  });
  const move = (viewport: Viewport) => {
    const [both, pane] = [place.peek(), size.peek()];
    if (!both) return;
    const next = bound(viewport, both.frame, pane);
    // else an effect that moves them would do so again at each *Fit*
    const fitted = untracked(() => fittedOf(state, both, pane));
    state.viewport.value = areSame(next, fitted) ? null : next;
  };
  return {
    ...{ side, size, picture, place, error, seen, move },
    fresh: signal([]),
    isAllVisible: computed(() => {
      const [drawn, viewport] = [picture.value, seen.value];
      return !drawn || !viewport || isAllVisible(viewport, size.value, content(drawn.frame));
    }),
    zoom(factor) {
      const [drawn, both, viewport] = [picture.peek(), place.peek(), seen.peek()];
      if (!drawn || !both || !viewport) return;
      const { node, side: where } = state.selection.peek();
      const rect = where === side ? drawn.rects().get(node) : undefined;
      const isShown = rect && isInSight(rect, viewport, size.peek());
      const rects = isShown ? [rect] : drawn.rects().values();
      const { x, y } = nearestMiddle(rects, viewport, size.peek());
      const { scale } = viewport;
      const at = { x: (x - viewport.x) * scale, y: (y - viewport.y) * scale };
      move(zoom(viewport, factor, at, scalesOf(both.frame, size.peek())));
    },
  };
}

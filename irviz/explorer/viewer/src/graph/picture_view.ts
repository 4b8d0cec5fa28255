// One of the two pictures, as it is seen: read, measured, and moved.

import { batch, computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { Side } from "../schema";
import type { State, Viewport } from "../state";
import { type DrawnPicture, readPicture } from "./drawn_picture";
import {
  areSame,
  bound,
  content,
  fit,
  isAllVisible,
  isInSight,
  MOST_FITTED,
  middle,
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

type Drawn = Pick<DrawnPicture, "frame" | "start">;

/** Return what is seen of a picture in a pane. */
export function seenOf(state: State, picture: Drawn, pane: Size): Viewport {
  const viewport = state.viewport.value;
  return viewport ? bound(viewport, picture.frame, pane) : fittedOf(state, picture, pane);
}

/** Return what is seen of a picture that is fitted. */
export function fittedOf(state: State, { frame, start }: Drawn, pane: Size): Viewport {
  const type = state.isLarge.value ? LARGE_TYPE : 1;
  return state.fitsAll.value
    ? fit(frame, pane, start, type, 0, MOST_FITTED * type)
    : fit(frame, pane, start, type);
}

/** Make the view of a side. What is seen of it begins where the picture `beside` it begins. */
export function createPictureView(
  state: State,
  side: Side,
  beside?: ReadonlySignal<DrawnPicture | null>,
): PictureView {
  const size = signal<Size>({ width: 0, height: 0 });
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
  const picture = computed(() => read.value.picture);
  const error = computed(() => read.value.why || (state.scene.value[side]?.error ?? ""));
  const fitted = computed<Drawn | null>(() => {
    const [own, other] = [picture.value, beside?.value];
    return own && { frame: own.frame, start: (other ?? own).start };
  });
  const seen = computed(() => {
    const [drawn, pane] = [fitted.value, size.value];
    if (!drawn || (!pane.width && !pane.height)) return null;
    return seenOf(state, drawn, pane);
  });
  const move = (viewport: Viewport) => {
    const [drawn, pane] = [fitted.value, size.peek()];
    if (!drawn) return;
    const next = bound(viewport, drawn.frame, pane);
    state.viewport.value = areSame(next, fittedOf(state, drawn, pane)) ? null : next;
  };
  return {
    ...{ side, size, picture, error, seen, move },
    fresh: signal([]),
    isAllVisible: computed(() => {
      const [drawn, viewport] = [picture.value, seen.value];
      return !drawn || !viewport || isAllVisible(viewport, size.value, content(drawn.frame));
    }),
    zoom(factor) {
      const [drawn, viewport] = [picture.peek(), seen.peek()];
      if (!drawn || !viewport) return;
      const { node, side: where } = state.selection.peek();
      const rect = where === side ? drawn.rects().get(node) : undefined;
      const isShown = rect && isInSight(rect, viewport, size.peek());
      const { x, y } = isShown ? middle(rect) : viewport;
      const { scale } = viewport;
      const at = { x: (x - viewport.x) * scale, y: (y - viewport.y) * scale };
      move(zoom(viewport, factor, at, scalesOf(drawn.frame, size.peek())));
    },
  };
}

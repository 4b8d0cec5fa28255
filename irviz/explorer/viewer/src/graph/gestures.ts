// Wheel, drag and pinch, as movements of a picture.

import type { Point } from "./viewport";

const CLICK_SLACK = 4; // px a pointer may move and still click

/** Where a gesture leads: the picture is moved by px, and zoomed around a point of the window. */
export interface Movement {
  dx: number;
  dy: number;
  factor: number;
  at: Point;
}

type Wheel = Pick<
  WheelEvent,
  "deltaX" | "deltaY" | "deltaMode" | "shiftKey" | "ctrlKey" | "metaKey"
>;

/** What a turn of the wheel does: sideways, or with Shift, it moves the picture across. Otherwise it
 * zooms: a notch counts alike everywhere, a pinch finely. */
export function wheelMovement(event: Wheel): Pick<Movement, "dx" | "factor"> {
  const { deltaX, deltaY, shiftKey } = event;
  const unit = [1, 16, 400][event.deltaMode] ?? 1;
  const isAcross = shiftKey || Math.abs(deltaX) > Math.abs(deltaY);
  if (isAcross && !event.ctrlKey && !event.metaKey) {
    return { dx: -(deltaX || deltaY) * unit, factor: 1 }; // not each browser turns it for Shift
  }
  return { dx: 0, factor: Math.exp(Math.min(Math.max(deltaY * unit, -30), 30) * -0.008) };
}

/** Return the movement of a picture that one or two pointers hold, from where they were. */
export function movementOf(from: readonly Point[], to: readonly Point[]): Movement {
  const middle = ([a, b]: readonly Point[]): Point =>
    a && b ? { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 } : (a ?? { x: 0, y: 0 });
  const distance = ([a, b]: readonly Point[]) => (a && b ? Math.hypot(a.x - b.x, a.y - b.y) : 1);
  const [start, at] = [middle(from), middle(to)];
  const factor = distance(to) / (distance(from) || 1);
  return { dx: at.x - start.x, dy: at.y - start.y, factor, at };
}

/** Call `move` with each movement; return what tells whether a click ended a drag. */
export function followGestures(
  element: HTMLElement,
  ended: AbortSignal,
  isWheelMeant: (event: WheelEvent) => boolean,
  move: (movement: Movement) => void,
): () => boolean {
  const held = new Map<number, Point>();
  let start: Point = { x: 0, y: 0 };
  let isDragged = false;
  const options = { signal: ended, passive: false };

  const place = ({ clientX, clientY }: MouseEvent): Point => ({ x: clientX, y: clientY });
  element.addEventListener(
    "pointerdown",
    (event) => {
      if (event.button !== 0 || held.size === 2) return;
      if (!held.size) {
        start = place(event);
        isDragged = false;
      }
      held.set(event.pointerId, place(event));
    },
    options,
  );
  element.addEventListener(
    "pointermove",
    (event) => {
      const now = place(event);
      if (!held.has(event.pointerId)) return;
      if (event.pointerType === "mouse" && event.buttons !== 1) return release(event);
      const isClick = held.size === 1 && Math.hypot(now.x - start.x, now.y - start.y) < CLICK_SLACK;
      if (!isDragged && isClick) return;
      if (!isDragged) element.setPointerCapture(event.pointerId);
      isDragged = true;
      const from = [...held.values()];
      held.set(event.pointerId, now);
      move(movementOf(from, [...held.values()]));
    },
    options,
  );
  const release = (event: PointerEvent) => {
    held.delete(event.pointerId);
  };
  element.addEventListener("pointerup", release, options);
  element.addEventListener("pointercancel", release, options);
  element.addEventListener(
    "wheel",
    (event) => {
      if (!isWheelMeant(event)) return;
      event.preventDefault();
      move({ dy: 0, at: place(event), ...wheelMovement(event) });
    },
    options,
  );
  return () => isDragged;
}

// Where the overview map stands: it must not hide what is looked at.

import type { Viewport } from "../state";
import { inset, overlap, type Rect, type Size, visiblePart } from "./viewport";

const LABEL = 20; // units of the picture around a node that its label takes

/** The corners of the pane, in the order in which the map prefers them. */
const CORNERS = ["bottom right", "top right", "bottom left", "top left"] as const;

type Corner = (typeof CORNERS)[number];

/** A corner, and whether nodes lie under the map there. */
interface MapPlace {
  corner: Corner;
  isOver: boolean;
}

export const usualPlace: MapPlace = { corner: CORNERS[0], isOver: false };

/** Return where a map of this size stands: where it is, if no node lies under it there, else in the
 * first corner without any, else where it is again. */
export function placeOfMap(
  nodes: readonly Rect[],
  seen: Viewport,
  pane: Size,
  map: Size,
  now: Corner,
): MapPlace {
  const part = visiblePart(seen, pane);
  const [width, height] = [map.width / seen.scale, map.height / seen.scale];
  const isOver = (corner: Corner) => {
    const left = corner.endsWith("left") ? part.x : part.x + part.width - width;
    const top = corner.startsWith("top") ? part.y : part.y + part.height - height;
    const box = { x: left, y: top, width, height };
    return nodes.some((one) => overlap(inset(one, -LABEL), box));
  };
  const free = [now, ...CORNERS].find((corner) => !isOver(corner));
  return { corner: free ?? now, isOver: free === undefined };
}

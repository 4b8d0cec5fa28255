// The groups that are open around something, as values.

import type { Picture } from "../schema";
import { around, type Point, type Rect } from "./viewport";

/** An open group that has a name. */
export interface OpenGroup {
  id: string;
  name: string;
}

type Groups = Pick<Picture, "groups">;

/** Return the open groups around one, and it itself, from the outermost one. */
export function groupsAround({ groups }: Groups, innermost: string): OpenGroup[] {
  const found: OpenGroup[] = [];
  let id = innermost;
  for (let group = groups[id]; group; group = groups[id]) {
    if (group.name) found.unshift({ id, name: group.name });
    id = group.parent;
  }
  return found;
}

/** Return the nodes that are drawn in an open group. */
export function nodesIn(picture: Pick<Picture, "groups" | "nodes">, group: string): string[] {
  const isAround = ({ id }: OpenGroup) => id === group;
  const around = (node: string) => groupsAround(picture, picture.nodes[node]?.group ?? "");
  return Object.keys(picture.nodes).filter((node) => around(node).some(isAround));
}

/** Return the open groups that were not open before, without those inside of one of them. */
export function newlyOpen(before: Groups, now: Groups): string[] {
  const isNew = ({ id }: OpenGroup) => !Object.hasOwn(before.groups, id);
  const outermost = Object.keys(now.groups).map((id) => groupsAround(now, id).find(isNew)?.id);
  return [...new Set(outermost)].filter((id) => id !== undefined);
}

/** Return where each open group is: around all nodes in it. */
export function groupRects(
  picture: Pick<Picture, "groups" | "nodes">,
  places: ReadonlyMap<string, Rect>,
): Map<string, Rect> {
  const inside = new Map<string, Rect[]>();
  for (const [node, rect] of places) {
    for (const { id } of groupsAround(picture, picture.nodes[node]?.group ?? "")) {
      const known = inside.get(id);
      if (known) known.push(rect);
      else inside.set(id, [rect]);
    }
  }
  const rects = new Map<string, Rect>();
  for (const [id, places] of inside) {
    const rect = around(places);
    if (rect) rects.set(id, rect);
  }
  return rects;
}

/** Return the innermost group around a point, "" for none. */
export function groupAt(rects: ReadonlyMap<string, Rect>, { x, y }: Point): string {
  let found = "";
  let least = Number.POSITIVE_INFINITY;
  for (const [id, rect] of rects) {
    const isInside =
      rect.x <= x && x <= rect.x + rect.width && rect.y <= y && y <= rect.y + rect.height;
    const area = rect.width * rect.height;
    if (!isInside || area >= least) continue;
    [found, least] = [id, area];
  }
  return found;
}

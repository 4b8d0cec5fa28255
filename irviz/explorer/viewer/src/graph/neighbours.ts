// Which nodes are beside a node, along the edges and in the picture.

import { middle, type Rect } from "./viewport";

/** An edge from the node that makes a value to one that uses it, by their ids. */
export interface Edge {
  source: string;
  target: string;
}

/** The ways that arrow keys lead. */
export const ARROWS = {
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
} as const satisfies Record<string, readonly [dx: number, dy: number]>;
export type Arrow = keyof typeof ARROWS;

/** Return the ids of the nodes that edges join to this one. */
export const neighbours = (edges: readonly Edge[], id: string): Set<string> =>
  new Set(
    edges
      .filter(({ source, target }) => source === id || target === id)
      .map(({ source, target }) => (source === id ? target : source)),
  );

/** Find the node an arrow key leads to: up and down along edges first, else the nearest. */
export function nextNode(
  rects: ReadonlyMap<string, Rect>,
  edges: readonly Edge[],
  from: string,
  arrow: Arrow,
): string | undefined {
  const [dx, dy] = ARROWS[arrow];
  const start = rects.get(from);
  if (!start) return undefined;
  const { x: x0, y: y0 } = middle(start);
  const joined = dy === 0 ? new Set<string>() : neighbours(edges, from);
  const reached = [...rects].map(([id, rect]) => {
    const { x, y } = middle(rect);
    const ahead = (x - x0) * dx + (y - y0) * dy;
    const aside = Math.abs((x - x0) * dy) + Math.abs((y - y0) * dx);
    return { id, ahead, aside, isJoined: joined.has(id), cost: ahead + 2 * aside };
  });
  const found = reached.filter((one) => one.ahead >= 1 && (one.isJoined || one.aside <= one.ahead));
  return found.sort((a, b) => Number(b.isJoined) - Number(a.isJoined) || a.cost - b.cost)[0]?.id;
}

/** Tell whether a part of these nodes is meant, or an edge that carries the value of one. */
export const isPale = (
  { node, source }: { node?: string | undefined; source?: string | undefined },
  dimmed: ReadonlySet<string>,
) => dimmed.has(node ?? source ?? "");

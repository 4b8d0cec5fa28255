// What corresponds in two stages that are compared, and what is new in a stage.

import type { NodeFacts, Picture, Scene, Side } from "../schema";

const otherSide = (side: Side): Side => (side === "current" ? "reference" : "current");

/** Return what a node became in the other picture, or what it was there. */
export function counterparts(scene: Scene, node: string, side: Side): string[] {
  const other = otherSide(side);
  if (!node || !scene[other]) return [];
  const changes = scene.changes.filter((one) => one[side].includes(node));
  if (changes.length) return [...new Set(changes.flatMap((one) => one[other]))];
  // of the same name, but not what became of another node
  const isOther = scene.changes.some((one) => one[other].includes(node));
  return node in scene[other].nodes && !isOther ? [node] : [];
}

const isAlike = (a: NodeFacts, b: NodeFacts) =>
  a.kind === b.kind && a.operator === b.operator && a.type === b.type;

/** Return the nodes of a picture that another one lacks, or has in another form; none where the
 * pictures have nothing in common. */
export function newNodes(before: Picture, after: Picture): string[] {
  const ids = Object.keys(after.nodes);
  if (!ids.some((id) => id in before.nodes)) return [];
  return ids.filter((id) => {
    const [known, now] = [before.nodes[id], after.nodes[id]];
    return !known || !now || !isAlike(known, now);
  });
}

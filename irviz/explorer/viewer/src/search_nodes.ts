// Search for nodes in a saved file, as `model/graph/graph.py` does it in a session.

import type { SearchedNode } from "./schema";

/** Return the nodes with every word; those come first whose name or callee the first word begins. */
export function searchNodes(nodes: readonly SearchedNode[], words: string): SearchedNode[] {
  const split = words.toLowerCase().split(/\s+/).filter(Boolean);
  const [first, ...others] = split.map((word) => word.replace(/^relax\./, ""));
  if (first === undefined) return [];
  const rank = ({ text }: SearchedNode) => {
    const names = text.split("\n").slice(0, 2);
    return names.includes(first) ? 0 : names.some((name) => name.startsWith(first)) ? 1 : 2;
  };
  return nodes
    .filter(({ text }) => [first, ...others].every((word) => text.includes(word)))
    .sort((one, other) => rank(one) - rank(other));
}

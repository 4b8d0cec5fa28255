// Search for nodes and groups in a saved file, as `model/graph/search_nodes.py` does it in a session.

import type { SearchedNode } from "../schema";

/** Return a text in lower case, then without brackets before lists, then without spaces. */
const searched = (text: string) => {
  const lower = text.toLowerCase();
  return `${lower}\n${lower.replace(/=[([]/g, "=")}\n${lower.replaceAll(", ", ",")}`;
};

const termsOf = (words: string) =>
  words
    .toLowerCase()
    .split(/\s+/)
    .filter(Boolean)
    .map((word) => word.replace(/^relax\./, ""))
    .map((word) => (/^\d+([x×]\d+)+$/.test(word) ? word.replace(/[x×]/g, ",") : word));

/** A word anywhere in a line that is no attribute, or at the beginning of a word. */
function occurrence(word: string): RegExp {
  const literal = word.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
  return new RegExp(`^[^=\\n]*${literal}[^=\\n]*$|(?<!\\p{L})${literal}`, "mu");
}

/** Return the nodes with every word, in the order of `search_nodes`. */
export function searchNodes(nodes: readonly SearchedNode[], words: string): SearchedNode[] {
  const [first, ...others] = termsOf(words);
  if (first === undefined) return [];
  const rank = (text: string) => {
    const names = text.split("\n").slice(0, 2);
    if (names.includes(first)) return 0;
    return (names[1] ? 1 : 3) + (names.some((name) => name.startsWith(first)) ? 0 : 1);
  };
  const lookedFor = [first, ...others].map(occurrence);
  return nodes
    .map((node) => ({ node, text: searched(node.text) }))
    .filter(({ text }) => lookedFor.every((one) => one.test(text)))
    .sort((one, other) => rank(one.text) - rank(other.text))
    .map(({ node }) => node);
}

/** Return the lines of a node's text that have words which are not in what is shown of it. */
export function otherMatches(line: string, text: string, words: string): string {
  const shown = searched(line);
  const other = termsOf(words).filter((word) => !shown.includes(word));
  const more = text.split("\n").filter((one) => other.some((word) => searched(one).includes(word)));
  return more.join("  ");
}

import assert from "node:assert/strict";
import test from "node:test";

import { searchNodes, withMatch } from "../src/offline_search";
import { cases, lines, nodes } from "./search_cases.json" with { type: "json" };

test("a file finds the nodes that Python finds, in its order", () => {
  const searched = nodes.map(([node = "", , , , text = ""]) => ({ node, text, line: "" }));
  for (const [words, found] of cases as [string, string[]][]) {
    const names = searchNodes(searched, words).map(({ node }) => node);
    assert.deepEqual(names, found, words);
  }
});

test("what was found by words that are not shown shows them", () => {
  for (const [line = "", text = "", words = "", shown] of lines) {
    assert.equal(withMatch({ node: "", text, line }, words), shown);
  }
});

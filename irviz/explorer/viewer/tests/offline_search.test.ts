import assert from "node:assert/strict";
import test from "node:test";

import { otherMatches, searchNodes } from "../src/offline/offline_search";
import { cases, groups, lines, nodes } from "./search_cases.json" with { type: "json" };

test("a file finds the groups and nodes that Python finds, in its order", () => {
  const searched = [...groups, ...nodes].map((one) => ({
    ...{ node: one[0] ?? "", text: one.at(-1) ?? "", line: "", rest: "" },
  }));
  for (const [words, found] of cases as [string, string[]][]) {
    const names = searchNodes(searched, words).map(({ node }) => node);
    assert.deepEqual(names, found, words);
  }
});

test("a word begins as one of the words of an attribute does", () => {
  const text = "lv\nnn.conv2d\nlv\n\nTensor[(1, 8)]\nconv-1.x\npadding=(1, 1)";
  const found = (words: string) =>
    searchNodes([{ node: "lv", text, line: "", rest: "" }], words).length;
  for (const words of ["pad", "padding=1", "onv2d", "conv-1.x", "1, 1", "ensor"])
    assert.equal(found(words), 1, words);
  assert.equal(found("add"), 0);
});

test("what was found by words that are not shown shows them", () => {
  for (const [line = "", text = "", words = "", shown] of lines) {
    assert.equal(otherMatches(line, text, words), shown);
  }
});

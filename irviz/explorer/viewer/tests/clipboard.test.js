import assert from "node:assert/strict";
import test from "node:test";

import { copy } from "../src/clipboard.js";

test("a text is copied by the page's clipboard", async () => {
  /** @type {string[]} */
  const copied = [];
  const clipboard = { writeText: async (/** @type {string} */ text) => void copied.push(text) };
  const root = /** @type {Element} */ ({});
  assert.equal(await copy("mod = 1", root, clipboard), true);
  assert.deepEqual(copied, ["mod = 1"]);
});

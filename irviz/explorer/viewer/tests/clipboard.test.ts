import assert from "node:assert/strict";
import test from "node:test";

import { copy } from "../src/controls/clipboard";

test("a text is copied by the page's clipboard", async () => {
  const copied: string[] = [];
  const clipboard = { writeText: async (text: string) => void copied.push(text) };
  const root = {} as Element;
  assert.equal(await copy("mod = 1", root, clipboard), true);
  assert.deepEqual(copied, ["mod = 1"]);
});

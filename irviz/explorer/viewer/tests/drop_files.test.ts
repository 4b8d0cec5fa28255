import assert from "node:assert/strict";
import test from "node:test";

import { refusal } from "../src/controls/drop_files";

test("a dropped file is sent alone, and only if a server passes it on", () => {
  const one = { name: "a.py", size: 10 };
  assert.equal(refusal([one]), "");
  assert.match(refusal([one, { name: "b.py", size: 1 }]), /one file/);
  assert.match(refusal([{ name: "big.onnx", size: 9 * 2 ** 20 }]), /irviz.explore\("big.onnx"\)/);
});

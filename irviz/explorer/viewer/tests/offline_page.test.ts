import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { restored, unpack } from "../src/offline/offline_page";

test("a recording is unpacked, with each value in its place", async () => {
  const packed = {
    recording: { scenes: [{ $: 1 }, { $: 0 }, { $: 2 }], traits: { title: "a" } },
    values: ["x", "</script>", { first: { $: 0 }, second: [{ $: 1 }] }],
  };
  const text = gzipSync(JSON.stringify(packed)).toString("base64");
  assert.deepEqual(await unpack(`\n${text}\n`), {
    scenes: ["</script>", "x", { first: "x", second: ["</script>"] }],
    traits: { title: "a" },
  });
});

test("what is damaged is refused", async () => {
  await assert.rejects(unpack("H4sIAAAA"));
  await assert.rejects(unpack("not base64!"));
});

test("nodes whose names look like numbers of texts stay what they are", () => {
  const nodes = JSON.parse('{"$": {"name": "$"}, "__proto__": {"name": "p"}, "$2": null}');
  assert.deepEqual(restored({ nodes }, ["x"]), { nodes });
});

// Bundles each widget's script and style sheet into one file of static/, which Python reads.
// With --check it writes nothing, and fails when a bundle is not what its sources give.

import { readdir, readFile } from "node:fs/promises";
import { basename } from "node:path";
import { build } from "esbuild";

const isCheck = process.argv.includes("--check");

const { outputFiles } = await build({
  entryPoints: ["loops.ts", "viewer.tsx", "viewer.css"].map((name) => `src/${name}`),
  outdir: "static",
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  jsx: "automatic",
  jsxImportSource: "preact",
  write: !isCheck,
  logLevel: "warning",
});

if (isCheck) {
  const built = new Map(outputFiles?.map(({ path, text }) => [basename(path), text]));
  const stale = [];
  for (const name of new Set([...built.keys(), ...(await readdir("static"))])) {
    const committed = await readFile(`static/${name}`, "utf8").catch(() => undefined);
    if (committed !== built.get(name)) stale.push(`static/${name}`);
  }
  if (stale.length) {
    console.error(`${stale.join(", ")}: not what src/ gives. Run "npm run build" and commit.`);
    process.exitCode = 1;
  }
}

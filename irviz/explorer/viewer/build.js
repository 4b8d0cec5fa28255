// Bundles each widget's script and style sheet into one file of static/, which Python reads.
// With --check it writes nothing, and fails when a bundle is not what its sources give.

import { build } from "esbuild";
import { failIfStale } from "./stale_bundles.js";

const isCheck = process.argv.includes("--check");

const { outputFiles } = await build({
  entryPoints: ["chips.tsx", "pass_choice.tsx", "viewer.tsx", "viewer.css"].map(
    (name) => `src/${name}`,
  ),
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

if (isCheck) await failIfStale(outputFiles ?? []);

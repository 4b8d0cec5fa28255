// Bundles each widget's script and style sheet into one file of static/, which Python reads.
// With --check it writes nothing, and fails when a bundle is not what its sources give.

import { build } from "esbuild";
import { failIfStale } from "./stale_bundles.js";

const isCheck = process.argv.includes("--check");

const { outputFiles } = await build({
  entryPoints: [
    { in: "src/forms/name_chips.tsx", out: "name_chips" },
    { in: "src/forms/pass_picker.tsx", out: "pass_picker" },
    { in: "src/viewer.tsx", out: "viewer" },
    { in: "src/viewer.css", out: "viewer" },
  ],
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

// Bundles the page's script and style sheet into static/, which the page's server serves.
// With --check it writes nothing, and fails when a bundle is not what its sources give.

import { build } from "esbuild";
import { failIfStale } from "../../explorer/viewer/stale_bundles.js";

const isCheck = process.argv.includes("--check");

/** @type {import("esbuild").BuildOptions} */
const common = {
  outdir: "static",
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "eof",
  write: !isCheck,
  logLevel: "warning",
};
const pages = await build({
  ...common,
  entryPoints: ["src/page.ts", "src/page.css"],
  loader: { ".svg": "dataurl" },
  inject: ["src/amd_define.ts"], // anywidget is an AMD module
  alias: { "sanitize-html": "./src/sanitize.ts" },
});
const starts = await build({ ...common, entryPoints: ["src/start.ts"] });

if (isCheck) await failIfStale([...(pages.outputFiles ?? []), ...(starts.outputFiles ?? [])]);

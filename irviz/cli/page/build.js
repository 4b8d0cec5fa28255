// Bundles the page's script and style sheet into static/, which the page's server serves.
// With --check it writes nothing, and fails when a bundle is not what its sources give.

import { readdir, readFile } from "node:fs/promises";
import { basename } from "node:path";
import { build } from "esbuild";

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
  loader: { ".woff2": "dataurl", ".svg": "dataurl" },
  inject: ["src/define.ts"], // anywidget is an AMD module
  alias: { "sanitize-html": "./src/sanitize.ts" },
});
const starts = await build({ ...common, entryPoints: ["src/start.ts"] });

if (isCheck) {
  const files = [...(pages.outputFiles ?? []), ...(starts.outputFiles ?? [])];
  const built = new Map(files.map(({ path, text }) => [basename(path), text]));
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

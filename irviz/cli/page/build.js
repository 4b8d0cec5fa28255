// Bundles the page's script and style sheet into static/, which the page's server serves.
// With --check it writes nothing, and fails when a bundle is not what its sources give.

import { readdir, readFile } from "node:fs/promises";
import { basename } from "node:path";
import { build } from "esbuild";

const isCheck = process.argv.includes("--check");

const { outputFiles } = await build({
  entryPoints: ["src/page.ts", "src/page.css"],
  outdir: "static",
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  loader: { ".woff2": "dataurl", ".svg": "dataurl" },
  inject: ["src/define.ts"], // anywidget is an AMD module
  alias: { "sanitize-html": "./src/sanitize.ts" },
  legalComments: "eof",
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

// Tells whether the bundles of static/ are what the sources give, for each npm package of irviz.

import { readdir, readFile } from "node:fs/promises";
import { basename } from "node:path";

/**
 * Make the process fail if a file of static/ is not among those that were built just now.
 *
 * @param {readonly { path: string, text: string }[]} outputFiles
 */
export async function failIfStale(outputFiles) {
  const built = new Map(outputFiles.map(({ path, text }) => [basename(path), text]));
  const stale = [];
  for (const name of new Set([...built.keys(), ...(await readdir("static"))])) {
    const committed = await readFile(`static/${name}`, "utf8").catch(() => undefined);
    if (committed !== built.get(name)) stale.push(`static/${name}`);
  }
  if (!stale.length) return;
  console.error(`${stale.join(", ")}: not what src/ gives. Run "npm run build" and commit.`);
  process.exitCode = 1;
}

// The rows of the tree of stages as values: which there are, what hides them, how they are joined.

/** @import { Heading, StageRow } from "./messages" */

/** The heading of a pass that recorded stages are inside of; `count` of them are hidden by it.
 * @typedef {{ key: string, depth: number, isBranch: boolean, name: string, isFolded: boolean,
 *   count: number }} HeadingItem */
/** @typedef {{ key: string, depth: number, isBranch: boolean, stage: StageRow }} StageItem */
/** One line of the tree.
 * @typedef {HeadingItem | StageItem} Item */
/** What stands in a column left of a line: "branch" and "end" join it to the line of its parent.
 * @typedef {"none" | "line" | "branch" | "end"} Guide */

const MOST_BYTES = 8 * 2 ** 20; // what a server passes on to the kernel in one message

/** Tell whether a stage is listed where those that changed nothing are hidden: the tree stays one.
 * @type {(row: StageRow) => boolean} */
const isStep = (row) => !row.isSame || row.isShown || row.isBranch;

/** @type {(row: StageRow, heading: Heading) => string} */
const keyOf = (row, heading) => `${row.id}/${heading.depth}`;

/** Return the lines of the tree; a heading stands before the first line that is kept inside of it.
 * @type {(rows: readonly StageRow[], hidesSame: boolean, folded: ReadonlySet<string>) => Item[]} */
export function treeItems(rows, hidesSame, folded) {
  /** @type {Item[]} */
  const items = [];
  /** @type {HeadingItem[]} */
  let waiting = []; // headings before rows that are hidden
  /** @type {HeadingItem | null} */
  let fold = null; // the folded heading that rows are inside of
  for (const row of rows) {
    const outermost = row.headings[0]?.depth ?? row.depth;
    const own = row.headings.map((heading, index) => {
      const key = keyOf(row, heading);
      const isBranch = row.isBranch && index === 0;
      return { key, ...heading, isBranch, isFolded: folded.has(key), count: 0 };
    });
    waiting = [...waiting.filter(({ depth }) => depth < outermost), ...own];
    if (hidesSame && !isStep(row)) continue;
    const isBranch = row.isBranch && !own.length;
    const stage = { key: row.id, depth: row.depth, isBranch, stage: row };
    for (const item of [...waiting, stage]) {
      if (fold && item.depth > fold.depth) {
        if ("stage" in item) fold.count += 1;
        continue;
      }
      fold = "name" in item && item.isFolded ? item : null;
      items.push(item);
    }
    waiting = [];
  }
  return items;
}

/** Return the keys of the headings that a stage is inside of.
 * @type {(rows: readonly StageRow[], id: string) => string[]} */
export function headingsAround(rows, id) {
  /** @type {{ key: string, depth: number }[]} */
  let open = [];
  for (const row of rows) {
    const outermost = row.headings[0]?.depth ?? row.depth;
    const own = row.headings.map((heading) => ({ key: keyOf(row, heading), depth: heading.depth }));
    open = [...open.filter(({ depth }) => depth < outermost), ...own];
    if (row.id === id) return open.map(({ key }) => key);
  }
  return [];
}

/** Return what stands left of each line, column by column: a branch is joined to its parent.
 * @type {(items: readonly Item[]) => Guide[][]} */
export function guidesOf(items) {
  /** @type {boolean[]} */
  const isJoined = []; // by column: whether a branch further down is joined there
  return items
    .toReversed()
    .map(({ depth, isBranch }) => {
      const guides = Array.from({ length: depth }, (_, column) => {
        if (isBranch && column === depth - 1) return isJoined[column] ? "branch" : "end";
        return isJoined[column] ? "line" : "none";
      });
      isJoined.length = depth;
      if (isBranch) isJoined[depth - 1] = true;
      return guides;
    })
    .reverse();
}

/** Return the line `by` lines away from the one with this key, undefined past the ends.
 * @type {(items: readonly Item[], key: string, by: number) => Item | undefined} */
export function neighbour(items, key, by) {
  const at = items.findIndex((item) => item.key === key);
  return items[Math.max(at, 0) + by];
}

/** Say why a dropped file cannot be sent to the kernel, or "" when it can.
 * @type {(files: readonly Pick<File, "name" | "size">[]) => string} */
export function refusal(files) {
  const [file] = files;
  if (!file || files.length > 1) return "drop one file at a time";
  if (file.size > MOST_BYTES) {
    return `${file.name} has more than 8 MB: open it with irviz.explore("${file.name}")`;
  }
  return "";
}

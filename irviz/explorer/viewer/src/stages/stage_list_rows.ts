// The rows of the list of stages as values: which there are, what hides them, how they are joined.

import type { Heading, StageRow } from "../schema";

interface Row {
  key: string;
  depth: number;
  isBranch: boolean;
}
/** The heading of a pass that recorded stages are inside of; `count` of them are hidden by it. */
export interface HeadingItem extends Row {
  name: string;
  isFolded: boolean;
  count: number;
}
export interface StageItem extends Row {
  stage: StageRow;
}
export type Item = HeadingItem | StageItem;

/** What stands in a column left of a line: "branch" and "end" join it to the line of its parent. */
export type Guide = "none" | "line" | "branch" | "end";

/** What is hidden: headings that are folded, by key, and stages that do not fit. */
interface Hidden {
  hidesSame: boolean;
  words: string;
  folded: ReadonlySet<string>;
  /** The stage that the shown one is compared with. */
  reference?: string | undefined;
}

/** Tell whether a stage is listed where those that changed nothing are hidden: the tree stays one. */
const isStep = (row: StageRow, reference?: string) =>
  !row.isSame || row.isShown || row.isBranch || row.id === reference;

/** Tell whether a stage's number or label has the words of the filter. */
function fits({ id, label }: StageRow, words: string): boolean {
  const wanted = words.trim().toLowerCase();
  return !wanted || id === wanted || label.toLowerCase().includes(wanted);
}

const keyOf = (row: StageRow, heading: Heading) => `${row.id}/${heading.depth}`;

/** Return the lines of the tree; a heading stands before the first line that is kept inside of it. */
export function stageListItems(rows: readonly StageRow[], hidden: Hidden): Item[] {
  const { hidesSame, words, folded, reference } = hidden;
  const items: Item[] = [];
  let waiting: HeadingItem[] = []; // headings before rows that are hidden
  let fold: HeadingItem | null = null; // the folded heading that rows are inside of
  for (const row of rows) {
    const outermost = row.headings[0]?.depth ?? row.depth;
    const own = row.headings.map((heading, index) => {
      const key = keyOf(row, heading);
      const isBranch = row.isBranch && index === 0;
      const isFolded = folded.has(key) && !words.trim(); // what was found is seen
      return { key, ...heading, isBranch, isFolded, count: 0 };
    });
    waiting = [...waiting.filter(({ depth }) => depth < outermost), ...own];
    if ((hidesSame && !isStep(row, reference)) || !fits(row, words)) continue;
    const isBranch = row.isBranch && !own.length;
    const stage: StageItem = { key: row.id, depth: row.depth, isBranch, stage: row };
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

/** Return the keys of the headings that a stage is inside of. */
export function headingsAround(rows: readonly StageRow[], id: string): string[] {
  let open: { key: string; depth: number }[] = [];
  for (const row of rows) {
    const outermost = row.headings[0]?.depth ?? row.depth;
    const own = row.headings.map((heading) => ({ key: keyOf(row, heading), depth: heading.depth }));
    open = [...open.filter(({ depth }) => depth < outermost), ...own];
    if (row.id === id) return open.map(({ key }) => key);
  }
  return [];
}

/** Return what stands left of each line, column by column: a branch is joined to its parent. */
export function guidesOf(items: readonly Item[]): Guide[][] {
  const isJoined: boolean[] = []; // by column: whether a branch further down is joined there
  return items
    .toReversed()
    .map(({ depth, isBranch }) => {
      const guides = Array.from({ length: depth }, (_, column): Guide => {
        if (isBranch && column === depth - 1) return isJoined[column] ? "branch" : "end";
        return isJoined[column] ? "line" : "none";
      });
      isJoined.length = depth;
      if (isBranch) isJoined[depth - 1] = true;
      return guides;
    })
    .reverse();
}

/** Return the line `by` lines away from the one with this key, undefined past the ends. */
export function neighbour(items: readonly Item[], key: string, by: number): Item | undefined {
  const at = items.findIndex((item) => item.key === key);
  return items[Math.max(at, 0) + by];
}

/** Return the id of the stage `by` stages away from one, as they are listed. */
export function stageBeside(items: readonly Item[], from: string, by: number): string | undefined {
  const stages = items.flatMap((item) => ("stage" in item ? [item.stage] : []));
  const at = stages.findIndex(({ id }) => id === from);
  return stages[at + by]?.id;
}

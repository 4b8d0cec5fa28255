// Compares two scripts by lines first, and by characters only within lines that differ.

import { Change, type DiffConfig, diff, presentableDiff } from "@codemirror/merge";
import type { LinePair } from "./aligned_lines";

const MAX_LINES = 0xd800; // lines become characters, of which these many stand alone
const LIMITS: DiffConfig = { scanLimit: 2000, timeout: 200 };
const MAX_REFINED = 20_000; // characters of both sides, above which a stretch differs as a whole
const MAX_REFINED_IN_ALL = 400_000;

/** A text, cut into what is compared: `keys` are equal for lines that belong together. */
interface LinesWithKeys {
  text: string;
  keys: readonly string[];
}

/** How two texts differ, and which lines of what differs belong together. */
interface LineDiff {
  changes: readonly Change[];
  pairs: readonly LinePair[];
}

/** Return how two texts differ. Characters alone would match any two lines that are alike. */
export function lineDiff(before: LinesWithKeys, after: LinesWithKeys): LineDiff {
  const codes = new Map<string, string>();
  const a = { codes: coded(before.keys, codes), starts: startsOf(before.text) };
  const b = { codes: coded(after.keys, codes), starts: startsOf(after.text) };
  if (codes.size >= MAX_LINES) {
    return { changes: diff(before.text, after.text, LIMITS), pairs: [] };
  }
  let refined = 0;
  const found: Change[] = [];
  const pairs: LinePair[] = [];
  const differ = (fromA: number, toA: number, fromB: number, toB: number) => {
    const [start, end] = [at(a.starts, fromA), at(a.starts, toA)];
    const [first, last] = [at(b.starts, fromB), at(b.starts, toB)];
    const [mine, theirs] = [before.text.slice(start, end), after.text.slice(first, last)];
    if (mine === theirs) return;
    const size = mine.length + theirs.length;
    if (!mine || !theirs || size > MAX_REFINED || refined > MAX_REFINED_IN_ALL) {
      found.push(new Change(start, end, first, last));
      return;
    }
    refined += size;
    for (const one of presentableDiff(mine, theirs, LIMITS)) {
      const [from, to] = [start + one.fromA, start + one.toA];
      found.push(new Change(from, to, first + one.fromB, first + one.toB));
    }
  };
  let [lineA, lineB] = [0, 0];
  const pairsUntil = (endA: number) => {
    for (; lineA < endA; lineA += 1, lineB += 1) {
      const known = found.length;
      differ(lineA, lineA + 1, lineB, lineB + 1);
      if (found.length > known) pairs.push([at(a.starts, lineA), at(b.starts, lineB)]);
    }
  };
  for (const { fromA, toA, fromB, toB } of diff(a.codes, b.codes, LIMITS)) {
    pairsUntil(fromA);
    differ(fromA, toA, fromB, toB);
    [lineA, lineB] = [toA, toB];
  }
  pairsUntil(a.codes.length);
  return { changes: found, pairs };
}

/** Write each key as one character. */
function coded(keys: readonly string[], codes: Map<string, string>): string {
  return keys
    .map((key) => {
      const code = codes.get(key) ?? String.fromCharCode(codes.size);
      codes.set(key, code);
      return code;
    })
    .join("");
}

/** Return where each line begins, and where the last one ends. */
function startsOf(text: string): number[] {
  const starts = [0];
  for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", end + 1)) {
    starts.push(end + 1);
  }
  return [...starts, text.length];
}

const at = (starts: readonly number[], line: number) => starts[line] ?? starts.at(-1) ?? 0;

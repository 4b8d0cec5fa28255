// The functions of a module as NumPy, in one text: which lines belong to which of TVMScript.

import type { Script } from "../schema";
import { functionNamed, indexScript, type Lines, type ScriptIndex } from "./script_lines";

/** NumPy as a text with functions; `origins` has for each of its lines, from 1, the line of
 * TVMScript that it was made of, 0 for none. */
export interface NumPyIndex extends ScriptIndex {
  origins: readonly number[];
}

const GAP = 2; // empty lines between functions

/** Return the NumPy of a script, null where that has none. */
export function indexNumPy(index: ScriptIndex): NumPyIndex | null {
  const { numpy, label, stage } = index.script;
  if (!numpy.length) return null;
  const functions: Script["functions"] = [];
  const texts: string[] = [];
  const origins = [0];
  for (const one of numpy) {
    const first = texts.length + 1;
    const lines = one.text.split("\n");
    const start = functionNamed(index, one.function)?.def ?? 0;
    if (one.function) {
      functions.push({ name: one.function, first, last: first + lines.length - 1 });
    }
    for (const [at, line] of lines.entries()) {
      const offset = one.lines[at] ?? -1;
      origins[texts.length + 1] = start && offset >= 0 ? start + offset : 0;
      texts.push(line);
    }
    for (let empty = 0; empty < GAP; empty += 1) texts.push("");
  }
  const text = `${texts.join("\n").trimEnd()}\n`;
  return {
    ...indexScript({ stage, label, text, functions, lines: {}, numpy: [], blame: [] }),
    origins,
  };
}

/** Return the lines of a node in TVMScript: a block of a PrimFunc has those that are inside it. */
export function linesOfNode(index: ScriptIndex, line: number): Lines {
  const isBlock = /^\s*with /.test(index.lines[line - 1] ?? "");
  return { first: line, last: (isBlock && index.blocks.get(line)) || line };
}

/** Return the lines of NumPy that were made of lines of TVMScript. */
export function madeOf({ origins }: NumPyIndex, { first, last }: Lines): number[] {
  if (first < 1) return [];
  return [...origins.keys()].filter((line) => {
    const origin = origins[line] ?? 0;
    return first <= origin && origin <= last;
  });
}

// Which line of TVMScript belongs to which node and function; lines are counted from 1.

import type { BlockLines, NodeFacts, Picture, Script, ScriptFunction } from "../schema";

/** What can be gone to from a place in the text: where a function is defined. */
export interface Link {
  from: number;
  to: number;
  name: string;
  isDefinition: boolean;
}

/** Lines of a text; `last` is before `first` where there is none. */
export interface Lines {
  first: number;
  last: number;
}

/** A node of a function. */
interface Place {
  function: string;
  node: string;
}

/** Where functions and nodes are in a script. */
export interface ScriptIndex {
  script: Script;
  lines: readonly string[];
  /** The functions in the order of the text, with the line of their `def`. */
  functions: readonly (ScriptFunction & { def: number })[];
  /** The last line of what is indented more than a line, by that line. */
  blocks: ReadonlyMap<number, number>;
  byLine: ReadonlyMap<number, readonly Place[]>;
  byNode: ReadonlyMap<string, number>;
}

const nodeKey = (name: string, node: string) => `${name}\0${node}`;

export function indexScript(script: Script): ScriptIndex {
  const lines = script.text.split("\n");
  const byLine = new Map<number, Place[]>();
  const byNode = new Map<string, number>();
  for (const [name, nodes] of Object.entries(script.lines)) {
    for (const [node, line] of Object.entries(nodes)) {
      byNode.set(nodeKey(name, node), line);
      const before = byLine.get(line);
      if (before) before.push({ function: name, node });
      else byLine.set(line, [{ function: name, node }]);
    }
  }
  const functions = script.functions.map((one) => {
    const last = lastWritten(lines, one.first, one.last);
    return { ...one, last, def: definition(lines, one.first, last) };
  });
  functions.sort((one, other) => one.first - other.first);
  return { script, lines, functions, blocks: blocksOf(lines), byLine, byNode };
}

/** Return for each line that begins a block where that ends. */
export function blocksOf(lines: readonly string[]): Map<number, number> {
  const blocks = new Map<number, number>();
  const open: { line: number; indent: number }[] = [];
  let last = 0; // the last line that is not blank
  const close = (indent: number) => {
    for (let one = open.at(-1); one && one.indent >= indent; one = open.at(-1)) {
      if (last > one.line) blocks.set(one.line, last);
      open.pop();
    }
  };
  for (const [at, text] of lines.entries()) {
    const indent = text.search(/\S/);
    if (indent < 0) continue;
    close(indent);
    open.push({ line: at + 1, indent });
    last = at + 1;
  }
  close(0);
  return blocks;
}

/** Return the last line that is not blank. */
function lastWritten(lines: readonly string[], first: number, last: number): number {
  let end = Math.min(last, lines.length);
  while (end > first && !lines[end - 1]?.trim()) end -= 1;
  return end;
}

/** Return the line of `def`, which decorators may precede. */
function definition(lines: readonly string[], first: number, last: number): number {
  for (let line = first; line <= last; line += 1) {
    if (/^\s*def /.test(lines[line - 1] ?? "")) return line;
  }
  return first;
}

export const functionNamed = (index: ScriptIndex, name: string) =>
  index.functions.find((one) => one.name === name);

/** Return the line of a drawn node, 0 if it has none. */
export function lineOf(
  index: ScriptIndex,
  blocks: BlockLines,
  facts: NodeFacts | undefined,
): number {
  if (!facts) return 0;
  const { function: name, inner } = facts;
  const line = index.byNode.get(nodeKey(name, inner));
  return line ?? blocks[index.script.stage]?.[name]?.[inner] ?? 0;
}

/** Return what is bound on a line; of several the one that a word names, as parameters have one line. */
export function nodeOn(index: ScriptIndex, line: number, word: string): Place | undefined {
  const found = index.byLine.get(line) ?? [];
  return found.length > 1 ? found.find((one) => one.node.split("#")[0] === word) : found[0];
}

/** Return the id of a node in a picture, "" if it is not drawn there. */
export function drawnId(picture: Picture | null, place: Place | undefined): string {
  if (!picture || !place) return "";
  const own = picture.nodes[place.node];
  if (own?.function === place.function && own.inner === place.node) return place.node;
  for (const [id, facts] of Object.entries(picture.nodes)) {
    if (facts.function === place.function && facts.inner === place.node) return id;
  }
  return "";
}

/** Comments, strings and so on, in a line. A string that is not closed ends with its line. */
export const TOKENS = new RegExp(
  [
    "(?<comment>#.*)",
    `(?<string>[fr]?"(?:[^"\\\\]|\\\\.)*"?|'(?:[^'\\\\]|\\\\.)*'?)`,
    "(?<decorator>@[\\w.]+)",
    "(?<number>\\b(?:\\d[\\w.]*(?:(?<=e)[+-]\\d+)?|True|False|None)\\b)",
    "(?<keyword>\\b(?:and|as|assert|class|def|elif|else|for|from|if|import|in|is|not|or|return|while|with)\\b)",
    "(?<function>\\b[A-Za-z_]\\w*(?=\\())",
  ].join("|"),
  "g",
);

const LONGEST = 20_000; // characters of a line in which names are looked for
/** Return the id of what is drawn for a line, "" for nothing: what is bound on it, or the block of a
 * PrimFunc that it belongs to. A word chooses where several have the line. */
export function drawnOn(
  index: ScriptIndex,
  blocks: BlockLines,
  picture: Picture | null,
  line: number,
  word: string,
): string {
  if (picture?.stage !== index.script.stage) return "";
  const nodes = Object.entries(picture.nodes)
    .map(([id, facts]) => ({ id, name: facts.inner, first: lineOf(index, blocks, facts) }))
    .filter(({ first }) => first > 0);
  const here = nodes.filter(({ first }) => first === line);
  if (here.length > 1) return here.find(({ name }) => name.split("#")[0] === word)?.id ?? "";
  if (here[0]) return here[0].id;
  const around = nodes.filter(
    ({ first }) =>
      first < line &&
      line <= (index.blocks.get(first) ?? 0) &&
      /^\s*with /.test(index.lines[first - 1] ?? ""),
  );
  return around.at(-1)?.id ?? "";
}

const NAMES = /\bcls\.(\w+)|\bcall(?:_dps)?_packed\("([^"\\]+)"|\bdef (\w+)/dg;

/** Return the names of the module's functions in a line: in calls, and the one that it defines. */
export function linksIn(text: string, isFunction: (name: string) => boolean): Link[] {
  const links: Link[] = [];
  for (const match of text.slice(0, LONGEST).matchAll(NAMES)) {
    const group = match.slice(1).findIndex((name) => name !== undefined) + 1;
    const name = match[group];
    const place = match.indices?.[group];
    if (!name || !place || !isFunction(name)) continue;
    const from = group === 1 ? match.index : place[0]; // with `cls.`, which is clicked as well
    links.push({ from, to: place[1], name, isDefinition: group === 3 });
  }
  return links;
}

/** Return for each line what it has in common with its like in another stage: its node, or text.
 *
 * A node whose name is not in the line has a number, which another stage gives to another node. */
export function lineKeys(index: ScriptIndex): string[] {
  const keys = [...index.lines];
  for (const [line, [first]] of index.byLine) {
    if (!first || !hasName(index.lines[line - 1] ?? "", first.node)) continue;
    keys[line - 1] = nodeKey(first.function, first.node);
  }
  for (const { name, def } of index.functions) keys[def - 1] = `def\0${name}`;
  return keys;
}

/** Tell whether a line has a name, and not only a longer one. */
function hasName(line: string, name: string): boolean {
  for (let at = line.indexOf(name); at >= 0; at = line.indexOf(name, at + 1)) {
    const [before, after] = [line[at - 1] ?? " ", line[at + name.length] ?? " "];
    if (!/\w/.test(before + after)) return true;
  }
  return false;
}

/** Return the lines of changed nodes in a picture, in order. */
export function linesOf(
  index: ScriptIndex,
  blocks: BlockLines,
  picture: Picture | null,
  ids: readonly string[],
): number[] {
  const lines = ids.map((id) => lineOf(index, blocks, picture?.nodes[id])).filter(Boolean);
  return lines.sort((one, other) => one - other);
}

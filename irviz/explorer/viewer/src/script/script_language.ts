// The look of TVMScript: its colours, and what can be folded.
// Tokens of a line tell all of its colours, as TVM prints no text that is longer than a line. A
// grammar of Python is 67 kB, and would have to read all lines above what is seen.

import { codeFolding, foldEffect, foldGutter, foldKeymap, foldService } from "@codemirror/language";
import type { EditorState, Extension, StateEffect } from "@codemirror/state";
import {
  Decoration,
  type DecorationSet,
  type EditorView,
  keymap,
  MatchDecorator,
  ViewPlugin,
  type ViewUpdate,
} from "@codemirror/view";
import { type ScriptIndex, TOKENS } from "./script_lines";

const marks = new Map<string, Decoration>();

function markOf(token: string): Decoration {
  const mark = marks.get(token) ?? Decoration.mark({ class: `irviz-code-${token}` });
  marks.set(token, mark);
  return mark;
}

const tokens = new MatchDecorator({
  regexp: TOKENS,
  decorate(add, from, to, match) {
    const [token] = Object.entries(match.groups ?? {}).find(([, text]) => text !== undefined) ?? [];
    if (token) add(from, to, markOf(token));
  },
});

export const colours: Extension = ViewPlugin.fromClass(
  class {
    marks: DecorationSet;
    constructor(view: EditorView) {
      this.marks = tokens.createDeco(view);
    }
    update(update: ViewUpdate) {
      this.marks = tokens.updateDeco(update, this.marks);
    }
  },
  { decorations: (plugin) => plugin.marks },
);

/** Return what folding hides: all behind a line, up to the end of another one. */
const foldedRange = (state: EditorState, first: number, last: number) => ({
  from: state.doc.line(first).to,
  to: state.doc.line(last).to,
});

export const folding = ({ blocks }: ScriptIndex): Extension => [
  codeFolding({ placeholderText: "…" }),
  foldGutter({ openText: "▾", closedText: "▸" }),
  keymap.of(foldKeymap),
  foldService.of((state, start) => {
    const first = state.doc.lineAt(start).number;
    const last = blocks.get(first);
    return last ? foldedRange(state, first, last) : null;
  }),
];

/** Return what folds all functions but one; for null nothing. */
export function foldOthers(
  index: ScriptIndex,
  state: EditorState,
  shown: string | null,
): StateEffect<unknown>[] {
  if (shown === null) return [];
  return index.functions
    .filter((one) => one.name !== shown && one.last > one.def)
    .map((one) => foldEffect.of(foldedRange(state, one.def, one.last)));
}

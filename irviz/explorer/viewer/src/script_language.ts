// TVMScript is Python: its colours, and what can be folded.

import { pythonLanguage } from "@codemirror/lang-python";
import {
  codeFolding,
  foldEffect,
  foldGutter,
  foldKeymap,
  foldService,
  syntaxHighlighting,
} from "@codemirror/language";
import type { EditorState, Extension, StateEffect } from "@codemirror/state";
import { keymap } from "@codemirror/view";
import { tagHighlighter, tags } from "@lezer/highlight";
import type { ScriptIndex } from "./script_lines";

const MAX_PARSED = 4_000_000; // characters; parsing goes on in the background, and takes memory

const classes = tagHighlighter([
  { tag: tags.keyword, class: "irviz-code-keyword" },
  { tag: [tags.string, tags.special(tags.string)], class: "irviz-code-string" },
  { tag: [tags.number, tags.bool, tags.null], class: "irviz-code-number" },
  { tag: tags.comment, class: "irviz-code-comment" },
  { tag: tags.meta, class: "irviz-code-decorator" },
  {
    tag: [tags.function(tags.variableName), tags.function(tags.propertyName)],
    class: "irviz-code-function",
  },
  { tag: tags.propertyName, class: "irviz-code-property" },
]);

/** Colours, by classes. */
export const language = (length: number): Extension =>
  length <= MAX_PARSED ? [pythonLanguage, syntaxHighlighting(classes)] : [];

/** Return what folding hides of a function: all behind its `def`. */
function foldedRange(state: EditorState, { def, last }: { def: number; last: number }) {
  return { from: state.doc.line(def).to, to: state.doc.line(last).to };
}

/** Functions can be folded before the text is parsed, loops and blocks after it. */
export function folding(index: ScriptIndex): Extension {
  const functions = new Map(index.functions.map((one) => [one.def, one]));
  return [
    codeFolding({ placeholderText: "…" }),
    foldGutter({ openText: "▾", closedText: "▸" }),
    keymap.of(foldKeymap),
    foldService.of((state, start) => {
      const found = functions.get(state.doc.lineAt(start).number);
      return found && found.last > found.def ? foldedRange(state, found) : null;
    }),
  ];
}

/** Return what folds all functions but one; for null nothing. */
export function foldOthers(
  index: ScriptIndex,
  state: EditorState,
  shown: string | null,
): StateEffect<unknown>[] {
  if (shown === null) return [];
  return index.functions
    .filter((one) => one.name !== shown && one.last > one.def)
    .map((one) => foldEffect.of(foldedRange(state, one)));
}

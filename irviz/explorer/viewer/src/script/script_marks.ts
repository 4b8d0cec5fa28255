// What is marked in the text: the lines of nodes, and the names of functions, which are links.

import { type Extension, RangeSetBuilder, StateEffect, StateField } from "@codemirror/state";
import {
  Decoration,
  type DecorationSet,
  EditorView,
  ViewPlugin,
  type ViewUpdate,
} from "@codemirror/view";
import { linksIn, type ScriptIndex } from "./script_lines";

/** The lines that are marked; 0 is none. */
interface MarkedLines {
  selected: readonly number[];
  hovered: readonly number[];
}

export const markLines = StateEffect.define<MarkedLines>();

const SELECTED = Decoration.line({
  class: "irviz-script-selected",
  attributes: { "aria-current": "true" },
});
const HOVERED = Decoration.line({ class: "irviz-script-hovered" });

export const markedLines: Extension = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, transaction) {
    for (const effect of transaction.effects) {
      if (!effect.is(markLines)) continue;
      const { doc } = transaction.state;
      const { selected, hovered } = effect.value;
      const lines = new Map(hovered.map((line) => [line, HOVERED]));
      for (const line of selected) lines.set(line, SELECTED);
      const shown = [...lines].filter(([line]) => line > 0 && line <= doc.lines);
      marks = Decoration.set(
        shown.map(([line, mark]) => mark.range(doc.line(line).from)),
        true,
      );
    }
    return marks;
  },
  provide: (field) => EditorView.decorations.from(field),
});

const titled = (title: string) =>
  Decoration.mark({ class: "irviz-script-link", attributes: { title } });

/** Marks the names of functions in the part of the text that is seen. */
export function links(index: ScriptIndex): Extension {
  const names = new Set(index.functions.map((one) => one.name));
  const build = (view: EditorView): DecorationSet => {
    const marks = new RangeSetBuilder<Decoration>();
    let done = -1; // a long line can be seen in several parts
    for (const { from, to } of view.visibleRanges) {
      for (let at = Math.max(from, done + 1); at <= to; at = done + 1) {
        const line = view.state.doc.lineAt(at);
        for (const link of linksIn(line.text, (name) => names.has(name))) {
          const words = link.isDefinition ? "Show the graph of" : "Go to the definition of";
          marks.add(line.from + link.from, line.from + link.to, titled(`${words} ${link.name}`));
        }
        done = line.to;
      }
    }
    return marks.finish();
  };
  return ViewPlugin.fromClass(
    class {
      marks: DecorationSet;
      constructor(view: EditorView) {
        this.marks = build(view);
      }
      update(update: ViewUpdate) {
        if (update.docChanged || update.viewportChanged) this.marks = build(update.view);
      }
    },
    { decorations: (plugin) => plugin.marks },
  );
}

const MAX_INDENT = 60;
const HANGING = 4; // characters by which what is wrapped is indented more

/** Wraps long lines below their own indentation. */
export const wrapping: Extension = [
  EditorView.lineWrapping,
  ViewPlugin.fromClass(
    class {
      marks: DecorationSet;
      constructor(view: EditorView) {
        this.marks = indented(view);
      }
      update(update: ViewUpdate) {
        if (update.docChanged || update.viewportChanged) this.marks = indented(update.view);
      }
    },
    { decorations: (plugin) => plugin.marks },
  ),
];

function indented(view: EditorView): DecorationSet {
  const marks = new RangeSetBuilder<Decoration>();
  const { doc } = view.state;
  const last = doc.lineAt(view.viewport.to).number;
  for (let number = doc.lineAt(view.viewport.from).number; number <= last; number += 1) {
    const line = doc.line(number);
    const width = line.text.search(/\S|$/) + HANGING;
    const style = `padding-inline-start: calc(${width}ch + 6px); text-indent: -${width}ch`;
    if (width < MAX_INDENT)
      marks.add(line.from, line.from, Decoration.line({ attributes: { style } }));
  }
  return marks.finish();
}

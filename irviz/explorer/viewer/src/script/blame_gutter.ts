// Which pass changed each line last, as a column beside the text.

import type { Extension } from "@codemirror/state";
import { type EditorView, GutterMarker, gutter, type KeyBinding } from "@codemirror/view";
import type { BlamedLine } from "../schema";

/** What the column does, and how it names a stage. */
export interface BlameActions {
  labelOf(stage: string): string;
  goTo(line: BlamedLine): void;
}

class StageMark extends GutterMarker {
  constructor(
    private readonly words: string,
    private readonly title: string,
    private readonly isOwn: boolean,
  ) {
    super();
  }
  override eq(other: StageMark) {
    return other.words === this.words && other.title === this.title && other.isOwn === this.isOwn;
  }
  override toDOM() {
    const mark = document.createElement("span");
    mark.className = this.isOwn ? "irviz-blamed irviz-blamed-own" : "irviz-blamed";
    mark.textContent = this.words;
    mark.title = this.title;
    return mark;
  }
}

/** Return the column of a text, and its key; lines of one pass that follow each other have its name
 * once. */
export function blameGutter(
  lines: readonly BlamedLine[],
  shown: string,
  { labelOf, goTo }: BlameActions,
): [Extension, KeyBinding[]] {
  const marks = lines.map(({ stage }, at) => {
    if (!stage) return null;
    const label = `${stage} ${labelOf(stage)}`;
    const words = lines[at - 1]?.stage === stage ? "" : label;
    return new StageMark(words, `Changed last by ${label}: click to go there`, stage === shown);
  });
  const lineAt = (view: EditorView, from: number) => view.state.doc.lineAt(from).number - 1;
  const go = (view: EditorView, from: number) => {
    const line = lines[lineAt(view, from)];
    if (line?.stage) goTo(line);
    return true;
  };
  const column = gutter({
    class: "irviz-blame",
    lineMarker: (view, { from }) => marks[lineAt(view, from)] ?? null,
    domEventHandlers: { click: (view, { from }) => go(view, from) },
  });
  return [column, [{ key: "Alt-Enter", run: (view) => go(view, view.state.selection.main.head) }]];
}

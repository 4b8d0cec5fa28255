// The editors that show TVMScript: one, or two side by side with what differs, or both in one.

import { standardKeymap } from "@codemirror/commands";
import { foldedRanges, unfoldAll, unfoldEffect } from "@codemirror/language";
import {
  type Chunk,
  getChunks,
  getOriginalDoc,
  MergeView,
  mergeViewSiblings,
  uncollapseUnchanged,
  unifiedMergeView,
} from "@codemirror/merge";
import { search, searchKeymap } from "@codemirror/search";
import { EditorState, type Extension, type Text } from "@codemirror/state";
import {
  EditorView,
  highlightSpecialChars,
  type KeyBinding,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import type { Side } from "../schema";
import { aligned, keepApart } from "./aligned_lines";
import { type BlameActions, blameGutter } from "./blame_gutter";
import { lineDiff } from "./line_diff";
import { colours, folding, foldOthers } from "./script_language";
import { type Lines, type Link, lineKeys, linksIn, type ScriptIndex } from "./script_lines";
import { links, markedLines, wrapping } from "./script_marks";

/** What is asked for with the pointer or with Enter: a line, a word in it, perhaps a link. */
export interface TextPlace {
  side: Side;
  line: number;
  word: string;
  link: Link | undefined;
}

interface EditorActions {
  choose(place: TextPlace): void;
  /** The pointer is on a line, or on none. */
  point(place: TextPlace | null): void;
}

interface EditorOptions {
  /** Two texts are side by side, else in one. */
  isWide: boolean;
  /** Of two texts only what differs is shown. */
  isCollapsed: boolean;
  /** All functions but this one are folded, null for none of them. */
  unfolded: string | null;
  /** Long lines are wrapped, as those of two texts always are. */
  isWrapped: boolean;
  /** The pass that changed each line last is shown beside a text by itself. */
  blame: BlameActions | null;
}

/** A text that is shown, and its editor. */
interface ShownText {
  index: ScriptIndex;
  view: EditorView;
}

export interface ScriptEditor {
  /** The reference has no editor of its own where both texts are in one. */
  texts: { current: ShownText; reference: (Omit<ShownText, "view"> & Partial<ShownText>) | null };
  /** Where the texts differ. */
  stretches: readonly Record<Side, Lines>[];
  scroller: HTMLElement;
  close(): void;
}

const COLLAPSED = { margin: 3, minSize: 6 };

/** Show a script, beside what it is compared with if there is such. */
export function openEditor(
  parent: HTMLElement,
  current: ScriptIndex,
  reference: ScriptIndex | null,
  options: EditorOptions,
  actions: EditorActions,
): ScriptEditor {
  if (!reference) return openOne(parent, current, options, actions);
  const original = reference.script.text;
  const { changes, pairs } = lineDiff(
    { text: original, keys: lineKeys(reference) },
    { text: current.script.text, keys: lineKeys(current) },
  );
  const override = () => changes;
  const collapse = options.isCollapsed && { collapseUnchanged: COLLAPSED };
  const how = { diffConfig: { override }, ...collapse };
  const extend = (index: ScriptIndex, side: Side) => [extensions(index, side, actions), wrapping];
  const after = { doc: current.script.text, extensions: extend(current, "current") };
  if (options.isWide) {
    const before = { doc: original, extensions: extend(reference, "reference") };
    const own = aligned(pairs);
    for (const one of [before, after]) one.extensions.push(own);
    const merge = new MergeView({ a: before, b: after, parent, ...how });
    keepApart(merge);
    const texts = {
      current: { index: current, view: merge.b },
      reference: { index: reference, view: merge.a },
    };
    const stretches = stretchesOf(merge.b.state, merge.a.state.doc);
    return { texts, stretches, scroller: merge.dom, close: () => merge.destroy() };
  }
  const both = unifiedMergeView({ original, mergeControls: false, ...how });
  after.extensions.push(both);
  const view = new EditorView({ ...after, parent });
  const texts = { current: { index: current, view }, reference: { index: reference } };
  const stretches = stretchesOf(view.state, getOriginalDoc(view.state));
  return { texts, stretches, scroller: view.scrollDOM, close: () => view.destroy() };
}

/** Show a text by itself, in TVMScript or in another language. */
export function openOne(
  parent: HTMLElement,
  index: ScriptIndex,
  { unfolded, isWrapped, blame }: Omit<EditorOptions, "isWide" | "isCollapsed">,
  actions: EditorActions,
  language = "TVMScript",
): ScriptEditor {
  const { stage, blame: lines } = index.script;
  const [column, keys] = blame && lines.length ? blameGutter(lines, stage, blame) : [[], []];
  const own = [column, extensions(index, "current", actions, language, keys), folding(index)];
  const state = EditorState.create({
    doc: index.script.text,
    extensions: isWrapped ? [own, wrapping] : own,
  });
  const folded = state.update({ effects: foldOthers(index, state, unfolded) });
  const view = new EditorView({ state: folded.state, parent });
  const texts = { current: { index, view }, reference: null };
  return { texts, stretches: [], scroller: view.scrollDOM, close: () => view.destroy() };
}

function stretchesOf(state: EditorState, original: Text): Record<Side, Lines>[] {
  const chunks = getChunks(state)?.chunks ?? [];
  const lines = (doc: Text, from: number, to: number): Lines => {
    const first = doc.lineAt(Math.min(from, doc.length)).number;
    return { first, last: to > from ? doc.lineAt(Math.min(to - 1, doc.length)).number : first - 1 };
  };
  return chunks.map(({ fromA, toA, fromB, toB }) => ({
    reference: lines(original, fromA, toA),
    current: lines(state.doc, fromB, toB),
  }));
}

/** Fold all functions but one, null for none; a comparison has none that are folded. */
export function fold({ texts }: ScriptEditor, unfolded: string | null): void {
  const { index, view } = texts.current;
  if (texts.reference) return;
  unfoldAll(view);
  view.dispatch({ effects: foldOthers(index, view.state, unfolded) });
}

/** Return the line at the upper edge. */
export function topLine({ texts, scroller }: ScriptEditor): number {
  const { view } = texts.current;
  const top = scroller.getBoundingClientRect().top - view.documentTop;
  return view.state.doc.lineAt(view.lineBlockAtHeight(top + 1).from).number;
}

function extensions(
  index: ScriptIndex,
  side: Side,
  actions: EditorActions,
  language = "TVMScript",
  keys: readonly KeyBinding[] = [],
): Extension {
  const { label } = index.script;
  const placeAt = (view: EditorView, position: number): TextPlace => {
    const line = view.state.doc.lineAt(position);
    const column = position - line.from;
    const found = linksIn(line.text, (name) => index.functions.some((one) => one.name === name));
    const link = found.find((one) => one.from <= column && column < one.to);
    const word = view.state.wordAt(position);
    return {
      side,
      line: line.number,
      word: word ? view.state.sliceDoc(word.from, word.to) : "",
      link,
    };
  };
  const placeUnder = (view: EditorView, { x, y }: MouseEvent): TextPlace | null => {
    const position = view.posAtCoords({ x, y });
    return position === null ? null : placeAt(view, position);
  };
  return [
    lineNumbers(),
    highlightSpecialChars(),
    EditorState.readOnly.of(true),
    EditorView.contentAttributes.of({
      "aria-label": `${language} of ${label}`,
      "aria-readonly": "true",
      inputmode: "none",
      tabindex: "0", // said to those who do not count what can be edited
    }),
    search({ top: true }),
    keymap.of([
      { key: "Enter", run: (view) => chooseAtCaret(view) },
      ...keys,
      ...searchKeymap,
      ...standardKeymap,
    ]),
    markedLines,
    links(index),
    colours,
    EditorView.domEventHandlers({
      click(event, view) {
        if (!view.state.selection.main.empty) return;
        const place = placeUnder(view, event);
        if (place) actions.choose(place);
      },
      mousemove(event, view) {
        if (event.buttons === 0) actions.point(placeUnder(view, event));
      },
      mouseleave: () => actions.point(null),
    }),
  ];

  function chooseAtCaret(view: EditorView): boolean {
    actions.choose(placeAt(view, view.state.selection.main.head));
    return true;
  }
}

const SETTLING = 12; // frames in which lines above may get other heights as they are drawn
const settling = new WeakMap<HTMLElement, AbortController>(); // by what scrolls

/** Scroll to a line, which is opened if it is folded; a line that is seen stays where it is. */
export function showLine(
  { texts, scroller }: ScriptEditor,
  side: Side,
  line: number,
  y: "center" | "start" = "center",
): void {
  const view = texts[side]?.view;
  if (!view || line < 1 || line > view.state.doc.lines) return;
  const position = view.state.doc.line(line).from;
  open(view, position);
  const block = view.lineBlockAt(position);
  const frame = scroller.getBoundingClientRect();
  const top = view.documentTop + block.top - frame.top;
  const isSeen = top >= 0 && top + block.height <= frame.height;
  if (isSeen && y === "center") return;
  view.dispatch({ effects: EditorView.scrollIntoView(position, { y, yMargin: 4 }) });
  keepInSight(view, scroller, position, y);
}

/** Scroll again where spacers between compared texts move a line away, until the reader scrolls. */
function keepInSight(
  view: EditorView,
  scroller: HTMLElement,
  position: number,
  y: "center" | "start",
): void {
  const done = new AbortController();
  const stop = () => done.abort();
  settling.get(scroller)?.abort();
  settling.set(scroller, done);
  for (const event of ["wheel", "pointerdown", "keydown"]) {
    scroller.addEventListener(event, stop, { signal: done.signal, passive: true });
  }
  let left = SETTLING;
  let before = view.lineBlockAt(position).top;
  const look = () => {
    if (done.signal.aborted || !view.dom.isConnected || !left) return stop();
    left -= 1;
    const { top } = view.lineBlockAt(position);
    if (Math.abs(top - before) > 1) {
      before = top;
      view.dispatch({ effects: EditorView.scrollIntoView(position, { y, yMargin: 4 }) });
    }
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}

/** Open what hides a place: folded code, or lines that do not differ. */
function open(view: EditorView, position: number): void {
  const effects: ReturnType<typeof unfoldEffect.of>[] = [];
  foldedRanges(view.state).between(position, position, (from, to) => {
    if (from < position) effects.push(unfoldEffect.of({ from, to }));
  });
  if (effects.length) view.dispatch({ effects });
  const block = view.lineBlockAt(position);
  const found = getChunks(view.state);
  if (!found || block.to === view.state.doc.lineAt(block.from).to) return;
  view.dispatch({ effects: uncollapseUnchanged.of(block.from) });
  const pair = mergeViewSiblings(view);
  if (!pair) return;
  const isA = pair.a === view;
  const other = isA ? pair.b : pair.a;
  const there = inOther(found.chunks, block.from, isA);
  other.dispatch({ effects: uncollapseUnchanged.of(there) });
}

/** Return where a place outside of all chunks is in the other text. */
function inOther(chunks: readonly Chunk[], position: number, isA: boolean): number {
  let shift = 0;
  for (const { fromA, toA, fromB, toB } of chunks) {
    if ((isA ? fromA : fromB) >= position) break;
    shift = isA ? toB - toA : toA - toB;
  }
  return position + shift;
}

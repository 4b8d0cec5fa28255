// Lines that belong together, at one height in two texts side by side.
//
// MergeView aligns texts where a stretch that differs begins and ends. Inside of a long one, such as
// a block whose lines are all indented otherwise, lines would drift apart where one of two is wrapped.

import { getChunks, type MergeView, mergeViewSiblings } from "@codemirror/merge";
import { type Extension, RangeSetBuilder, StateEffect, StateField } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, WidgetType } from "@codemirror/view";

/** Where two lines begin that belong together, in the text before and after. */
export type LinePair = readonly [before: number, after: number];

const SLACK = 1; // px by which lines may be apart

/** The space above a line that makes it as low as the other of its pair. */
class Gap extends WidgetType {
  constructor(readonly height: number) {
    super();
  }

  override eq(other: Gap) {
    return this.height === other.height;
  }

  override toDOM() {
    const element = document.createElement("div");
    element.className = "irviz-line-gap";
    element.style.height = `${this.height}px`;
    return element;
  }

  override get estimatedHeight() {
    return this.height;
  }

  override ignoreEvent() {
    return true;
  }
}

const setGaps = StateEffect.define<DecorationSet>();
const gaps = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update: (known, { effects }) =>
    effects.reduce((now, one) => (one.is(setGaps) ? one.value : now), known),
  provide: (field) => EditorView.decorations.from(field),
});

/** Empty widgets where lines are equal again, which is where MergeView adds and removes spacers.
 *
 * They give these lines heights of their own. Without them, each spacer that is added far from what
 * was in sight makes CodeMirror estimate the lines around it anew, and the texts drift apart. */
const setEnds = StateEffect.define<readonly number[]>();
const ends = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update: (known, { effects }) =>
    effects.reduce(
      (now, one) => (one.is(setEnds) ? Decoration.set(one.value.map(emptyAt)) : now),
      known,
    ),
  provide: (field) => EditorView.decorations.from(field),
});
const emptyAt = (position: number) =>
  Decoration.widget({ widget: new Gap(0), block: true, side: -2 }).range(position);

/** Return what both editors of a MergeView need for their pairs of lines to be aligned. */
export function aligned(pairs: readonly LinePair[]): Extension {
  let isWaiting = false;
  const align = (view: EditorView) => {
    if (view.dom.isConnected) alignLines(view, pairs);
    isWaiting = false; // what MergeView does at once in return moves no line of a pair
  };
  return [
    gaps,
    ends,
    EditorView.updateListener.of(({ view, heightChanged, viewportChanged }) => {
      if (isWaiting || !(heightChanged || viewportChanged)) return;
      isWaiting = true;
      requestAnimationFrame(() => align(view));
    }),
  ];
}

/** Keep the lines after all that differs apart from the others, which are estimated. */
export function keepApart({ a, b, chunks }: MergeView): void {
  const keep = (view: EditorView, found: readonly number[]) => {
    const positions = [...new Set(found)].filter((one) => one <= view.state.doc.length);
    view.dispatch({ effects: setEnds.of(positions) });
  };
  const [ofA, ofB] = [chunks.map(({ toA }) => toA), chunks.map(({ toB }) => toB)];
  keep(a, ofA);
  keep(b, ofB);
}

/** Align the pairs of lines that are in sight; those inside of one stretch that differs matter. */
function alignLines(view: EditorView, pairs: readonly LinePair[]): void {
  const [both, found] = [mergeViewSiblings(view), getChunks(view.state)];
  if (!both || !found) return;
  const [mine, theirs] = [new Side(both.a), new Side(both.b)];
  let at = 0;
  for (const { fromA, endA, fromB } of found.chunks) {
    mine.begin(fromA);
    theirs.begin(fromB);
    for (; at < pairs.length; at += 1) {
      const [before, after] = pairs[at] ?? [0, 0];
      if (before >= endA) break;
      if (before < fromA) continue;
      const isSeen = mine.sees(before) && theirs.sees(after);
      const lower = isSeen ? mine.topOf(before) - theirs.topOf(after) : 0;
      mine.add(before, isSeen ? Math.max(0, -lower) : null);
      theirs.add(after, isSeen ? Math.max(0, lower) : null);
    }
  }
  mine.show();
  theirs.show();
}

/** The gaps of one text, while they are found anew from its beginning on. */
class Side {
  private readonly found = new RangeSetBuilder<Decoration>();
  private readonly known: ReadonlyMap<number, Gap>;
  private start = 0;
  private shift = 0; // of lines from here on, by gaps of this stretch that are other than they were
  private isOther = false;

  constructor(private readonly view: EditorView) {
    const known = new Map<number, Gap>();
    for (const one = view.state.field(gaps).iter(); one.value; one.next()) {
      known.set(one.from, one.value.spec.widget);
    }
    this.known = known;
  }

  begin(position: number) {
    this.start = this.view.lineBlockAt(position).top;
    this.shift = 0;
  }

  sees = (position: number) =>
    this.view.viewport.from <= position && position <= this.view.viewport.to;

  /** How far below the beginning of the stretch a line is, without the gap above it. */
  topOf = (position: number) => this.view.lineBlockAt(position).top - this.start + this.shift;

  /** Add a gap above a line; null leaves it as it is. */
  add(position: number, height: number | null) {
    const old = this.known.get(position)?.height ?? 0;
    const isKept = height === null || Math.abs(height - old) <= SLACK;
    const now = isKept ? old : height > SLACK ? height : 0;
    this.shift += now - old;
    this.isOther ||= now !== old;
    if (now) {
      const widget = Decoration.widget({ widget: new Gap(now), block: true, side: -1 });
      this.found.add(position, position, widget);
    }
  }

  show() {
    if (this.isOther) this.view.dispatch({ effects: setGaps.of(this.found.finish()) });
  }
}

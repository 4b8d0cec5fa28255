// The graph of what is looked at, or the graphs of two stages that are compared.

import { effect, signal, untracked, useSignalEffect } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { SideMark } from "../controls/before_after_badge";
import type { Change, Scene, Side } from "../schema";
import { useAwaitedStage } from "../stages/pending_stage";
import type { State, Viewport } from "../state";
import { ChangeBar } from "./change_bar";
import { newNodes } from "./counterparts";
import type { DrawnPicture } from "./drawn_picture";
import { FunctionTable } from "./function_table";
import { Legend } from "./legend";
import { groupAt, groupRects, newlyOpen, nodesIn } from "./open_groups";
import { PicturePane } from "./picture_pane";
import {
  createPictureViews,
  fittedOf,
  LARGE_TYPE,
  type PictureView,
  type Place,
  seenOf,
} from "./picture_view";
import {
  amidMost,
  around,
  centre,
  filled,
  fit,
  isInSight,
  middle,
  movedBy,
  nextViewport,
  type Rect,
  reveal,
} from "./viewport";
import { ZoomBar } from "./zoom_bar";

/** The scale from which on names can be read, as they are enlarged from afar. */
const NAMED = 0.45;
const FRAME = 20; // units between the frame of a group and the nodes in it

type Views = Record<Side, PictureView>;

export function GraphPane({ state }: { state: State }) {
  const views: Views = useMemo(() => createPictureViews(state), [state]);
  useEffect(() => followScenes(state, views), [state, views]);
  useEffect(() => {
    state.zoom.value = (factor) =>
      (views.current.picture.peek() ? views.current : views.reference).zoom(factor);
    return () => {
      state.zoom.value = null;
    };
  }, [state, views]);
  // at once, and not after the next frame: a key that fits the picture may come before it
  useEffect(() => effect(() => showChange(state, views)), [state, views]);
  useSignalEffect(() => {
    views.current.size.value; // a pane that becomes smaller shows less
    requestAnimationFrame(() => {
      const viewport = state.viewport.peek();
      if (state.isComparing.peek() && viewport && viewport === unchosen.get(state)) {
        state.viewport.value = null; // what was shown of the changes is elsewhere now
        showChanges(state, views, changesOf(state, views));
      }
      keepInSight(state, views);
    });
  });
  useEffect(() => followGroups(state, views.current), [state, views]);
  const scene = state.scene.value;
  const sides: Side[] = scene.reference ? ["reference", "current"] : ["current"];
  const isOutdated = useAwaitedStage(state) !== undefined;
  const isLost = isFunctionLost(scene) && state.functions.value.length > 0;
  return (
    <section class="irviz-graph-pane" aria-label="Graph">
      {scene.reference && !isLost ? (
        <div class="irviz-graph-head">
          <ChangeBar state={state} />
        </div>
      ) : null}
      {isLost ? <FunctionTable state={state} /> : null}
      <div class={isOutdated ? "irviz-pictures irviz-outdated" : "irviz-pictures"} hidden={isLost}>
        {sides.map((side) => (
          <div key={side} class="irviz-picture">
            <Caption scene={scene} side={side} />
            <PicturePane state={state} view={views[side]} hasMap={side === "current"} />
          </div>
        ))}
      </div>
      <div class="irviz-graph-foot">
        <ZoomBar state={state} view={views.current} />
        <Legend state={state} />
      </div>
    </section>
  );
}

/** Tell whether no stage that is shown has the function that is looked at. */
const isFunctionLost = ({ current, reference }: Scene) =>
  current !== null && current.instead.length > 0 && !current.svg && !reference?.svg;

/** Say which stage a picture is of, and what is to be known of it. */
export function Caption({ scene, side }: { scene: Scene; side: Side }) {
  const picture = scene[side];
  if (!picture) return null;
  return (
    <div class="irviz-caption">
      {scene.reference ? <SideMark side={side} /> : null}
      <b>
        {picture.stage} {picture.label}
      </b>
      {picture.facts.map((fact) => (
        <span key={fact}>{fact}</span>
      ))}
      {picture.note ? <em>{picture.note}</em> : null}
    </div>
  );
}

/** What was looked at last. */
interface Looked {
  scene: Scene;
  side: Side;
  picture: DrawnPicture;
  place: Place;
}

/** Kept while a viewer shows the text alone, and has no pane of this kind. */
const lookedAt = new WeakMap<State, Looked>();
/** What the reader did not choose to see: what was shown of a change, or stayed in its place. */
const unchosen = new WeakMap<State, Viewport>();

/** Keep what is looked at in its place when the scene changes, and show what is new in it. */
const followScenes = (state: State, views: Views) =>
  effect(() => {
    const scene = state.scene.value;
    const side: Side = views.current.picture.value ? "current" : "reference";
    const { picture, place } = views[side];
    if (!picture.value || !place.value) return;
    const after = { scene, side, picture: picture.value, place: place.value };
    const before = lookedAt.get(state);
    lookedAt.set(state, after);
    if (before && before.scene !== scene) untracked(() => change(state, views, before, after));
  });

function change(state: State, views: Views, before: Looked, after: Looked) {
  const [{ scene: then }, { scene: now }] = [before, after];
  const chosen = state.viewport.peek();
  const viewport = chosen === unchosen.get(state) ? null : chosen;
  const pane = views[before.side].size.peek();
  const seen = seenOf(state, before.place, pane);
  const isOther = then.key !== now.key;
  if (isOther && state.fitsAll.peek() && fittedOf(state, after.place, pane).scale < NAMED)
    state.fitsAll.value = false; // too much to be seen at once, which was not asked for
  const fits = state.wantsFit.peek() || (isOther && !viewport && state.fitsAll.peek());
  const shownOf = ({ scene, place }: Looked) => ({
    ...scene,
    isPair: scene.reference !== null,
    frame: place.frame,
    fitted: fittedOf(state, place, pane),
  });
  const { node } = state.selection.peek();
  const rects = [before.picture.rects(), after.picture.rects()] as const;
  const moved = isOther ? movedBy(...rects, node, seen) : now.moved;
  const next = fits
    ? null
    : nextViewport(viewport, seen, shownOf(before), shownOf(after), pane, moved);
  state.viewport.value = next;
  if (next && !viewport && isOther) unchosen.set(state, next);
  state.wantsFit.value = false;
  if (isOther) state.change.value = -1;
  // when the pictures are in the page, which their effects see to
  requestAnimationFrame(() => {
    // what is selected may go out of sight for a group that the reader has just opened
    if (isOther || !showOpened(state, views.current, then, now))
      keepInSight(state, views, viewport ? [] : fresh);
    if (isOther && now.reference) showChanges(state, views, changesOf(state, views));
  });
  const isStep = isOther && then.function === now.function && !then.reference && !now.reference;
  const [old, shown] = [then.current, now.current];
  const fresh = isStep && old && shown ? newNodes(old, shown) : [];
  views.current.fresh.value = fresh;
}

/** Move a picture just enough to show the groups that were opened in it; tell whether any were. */
function showOpened(state: State, view: PictureView, then: Scene, now: Scene): boolean {
  const [drawn, seen] = [view.picture.peek(), view.seen.peek()];
  if (!then.current || !now.current || !drawn || !seen || then.part !== now.part) return false;
  const outer = newlyOpen(then.current, now.current);
  if (outer.length > 1) {
    // all were opened: what was in the middle may be far away
    const selected = drawn.rects().get(state.selection.peek().node);
    const start = selected ? middle(selected) : drawn.start;
    const type = state.isLarge.peek() ? LARGE_TYPE : 1;
    view.move(fit(drawn.frame, view.size.peek(), start, type, NAMED * type));
    return true;
  }
  const rects = groupRects(now.current, drawn.rects());
  const nodes = around(outer.flatMap((id) => rects.get(id) ?? []));
  if (!nodes || !state.viewport.peek()) return false;
  const { x, y, width, height } = nodes;
  const [left, top] = [x - FRAME, y - FRAME];
  const rect = { x: left, y: top, width: width + 2 * FRAME, height: height + 2 * FRAME };
  view.move(reveal(seen, view.size.peek(), rect));
  return true;
}

/** Fit the pictures where nothing of what is selected can be seen, or else of what differs or is
 * fresh, or else of all nodes. */
function keepInSight(state: State, views: Views, fresh: readonly string[] = []) {
  const { node, side } = state.selection.peek();
  const view = node ? views[side] : views.current;
  const known = view.picture.peek()?.rects();
  const [seen, selected] = [view.seen.peek(), known?.get(node)];
  if (!known || !seen) return;
  const changes = [...changesOf(state, views), ...fresh.flatMap((id) => known.get(id) ?? [])];
  const wanted = selected ? [selected] : changes.length ? changes : [...known.values()];
  if (wanted.length && !wanted.some((rect) => isInSight(rect, seen, view.size.peek()))) {
    state.viewport.value = null;
    if (selected) showRect(views, selected);
    else showChanges(state, views, changes);
  }
}

/** Show the change that was gone to in the middle of both pictures, where it cannot be read. */
function showChange(state: State, views: Views) {
  const place = state.change.value;
  const found = state.scene.peek().changes[place];
  if (!found) return;
  showRect(views, placeOf(views, found), NAMED);
}

const changesOf = (state: State, views: Views) =>
  state.scene.peek().changes.flatMap((one) => placeOf(views, one) ?? []);

/** Show all changes where the pictures are not seen whole, or as many as there is room for. */
function showChanges(state: State, views: Views, changes: readonly Rect[]) {
  const every = around(changes);
  const { seen, size, place } = views.current;
  const [viewport, pane, frame] = [seen.peek(), size.peek(), place.peek()?.frame];
  if (!every || !viewport || !frame || state.viewport.peek()) return;
  const hasRoom =
    every.width * viewport.scale <= pane.width && every.height * viewport.scale <= pane.height;
  showRect(views, hasRoom ? every : amidMost(changes, viewport, pane, frame));
  const shown = state.viewport.peek();
  if (shown) unchosen.set(state, shown);
}

/** Tell which group is in the middle, and show the one that is asked for. */
function followGroups(state: State, view: PictureView) {
  const rects = signal<ReadonlyMap<string, Rect>>(new Map());
  const stops = [
    effect(() => {
      const [picture, drawn] = [state.scene.value.current, view.picture.value];
      const hasGroups = picture && Object.values(picture.groups).some(({ name }) => name);
      // when the picture is in the page, which its effects see to
      const frame = requestAnimationFrame(() => {
        rects.value = hasGroups && drawn ? groupRects(picture, drawn.rects()) : new Map();
      });
      return () => cancelAnimationFrame(frame);
    }),
    effect(() => {
      const [known, seen] = [rects.value, view.seen.value];
      state.centreGroup.value = seen ? groupAt(known, seen) : "";
    }),
    effect(() => {
      const group = state.wantedGroup.value;
      if (!group) return;
      state.wantedGroup.value = "";
      const [rect, seen] = [rects.peek().get(group), view.seen.peek()];
      if (rect && seen) view.move(centre(seen, view.size.peek(), rect));
      const scene = state.scene.peek().current;
      if (scene) view.fresh.value = nodesIn(scene, group);
    }),
  ];
  return () => {
    for (const stop of stops) stop();
    state.centreGroup.value = "";
  };
}

/** Where the nodes of a change are, in both pictures. */
function placeOf(views: Views, change: Change): Rect | null {
  const rects = (["reference", "current"] as const).flatMap((side) => {
    const known = views[side].picture.peek()?.rects();
    return change[side].flatMap((id) => known?.get(id) ?? []);
  });
  return around(rects);
}

/** Show a part in the middle, unless all is seen already, at this scale at least. */
function showRect(views: Views, rect: Rect | null, least = 0) {
  const view = views.current.seen.peek() ? views.current : views.reference;
  const [seen, frame] = [view.seen.peek(), view.place.peek()?.frame];
  if (!seen || !frame || !rect || (view.isAllVisible.peek() && seen.scale >= least)) return;
  const pane = view.size.peek();
  view.move(filled(centre(seen, pane, rect), frame, pane));
}

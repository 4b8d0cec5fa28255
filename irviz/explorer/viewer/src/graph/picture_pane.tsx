// A picture that is moved, pointed at and selected in.

import { computed, effect, signal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { State, Viewport } from "../state";
import { counterparts } from "./counterparts";
import {
  type DrawnEdge,
  type DrawnPicture,
  endsOf,
  partAt,
  showPale,
  wordsAt,
} from "./drawn_picture";
import { followGestures } from "./gestures";
import { ARROWS, type Arrow, nextNode } from "./neighbours";
import { OtherFunctions } from "./other_functions";
import { OverviewMap } from "./overview_map";
import { createMarks } from "./picture_marks";
import type { PictureView } from "./picture_view";
import { type Pointed, Tooltip } from "./tooltip";
import {
  centre,
  distance,
  enlarged,
  isAllVisible,
  LEGIBLE,
  pan,
  reveal,
  scalesOf,
  zoom,
} from "./viewport";

const TOOLTIP_AFTER = 60; // ms
const LARGE = 140; // px of the height of a part that a tooltip does not avoid
const POINTER = 12; // px of the pointer's height
const SETTLED_AFTER = 150; // ms
const PAN_STEP = 60; // px
const MOST_BESIDE = 1.25; // how much larger names are beside the marks of changes

/** By what a node was selected: "" where that was done elsewhere, as in a list. */
type Means = "pointer" | "key" | "";

interface Props {
  state: State;
  view: PictureView;
  hasMap: boolean;
}

export function PicturePane({ state, view, hasMap }: Props) {
  const element = useRef<HTMLDivElement>(null);
  const layer = useRef<HTMLDivElement>(null);
  const pointed = useMemo(() => signal<Pointed | null>(null), []);
  useEffect(() => {
    if (!element.current || !layer.current) return;
    const ended = new AbortController();
    drive(state, view, element.current, layer.current, pointed, ended.signal);
    return () => ended.abort();
  }, [state, view, pointed]);
  const picture = state.scene.value[view.side];
  return (
    <div
      ref={element}
      class="irviz-canvas"
      role="application"
      aria-roledescription="graph"
      aria-label={picture?.name || "graph"}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: an application takes keys
      tabIndex={0}
      data-lm-suppress-shortcuts="true"
    >
      <div ref={layer} class={`irviz-canvas-layer${state.can("Toggle") ? "" : " irviz-fixed"}`} />
      {view.error.value ? (
        <div class="irviz-canvas-error" role="alert">
          <p>{view.error}</p>
          <OtherFunctions state={state} names={picture?.instead ?? []} />
        </div>
      ) : null}
      {hasMap ? <OverviewMap state={state} view={view} /> : null}
      <Tooltip pointed={pointed} size={view.size} />
      <LiveWords state={state} view={view} />
    </div>
  );
}

/** Say to a screen reader which node is selected. */
function LiveWords({ state, view }: Omit<Props, "hasMap">) {
  const { node, side } = state.selection.value;
  const scene = state.scene.value;
  const facts = side === view.side ? scene[side]?.nodes[node] : undefined;
  const isChanged = scene.changes.some((one) => one[view.side].includes(node));
  const words = facts ? [facts.name || facts.kind, facts.type, isChanged ? "changed" : ""] : [];
  return (
    <div class="irviz-canvas-live" aria-live="polite">
      {words.filter(Boolean).join(", ")}
    </div>
  );
}

/** Connect a picture's element with the state. */
function drive(
  state: State,
  view: PictureView,
  element: HTMLElement,
  layer: HTMLElement,
  pointed: { value: Pointed | null },
  ended: AbortSignal,
) {
  const { side } = view;
  const marks = computed(() => view.picture.value && createMarks(view.picture.value));
  const followed = signal<DrawnEdge | null>(null); // the edge that is pointed at
  let isMoving = false; // by the wheel or a drag: what comes below the pointer is not pointed at yet
  type Passed = Pick<PointerEvent, "target" | "clientX" | "clientY"> & { isStill: boolean };
  let passed: Passed | null = null;
  let pointer: Pick<PointerEvent, "clientX" | "clientY"> | null = null; // where it was last
  let isEngaged = false; // the plain wheel zooms
  let selectedBy: Means = ""; // the last time, until that is shown

  const run = (act: () => void) => ended.addEventListener("abort", effect(act));
  const drawn = () => (view.seen.value ? view.picture.value : null);
  const sizes = new ResizeObserver(([entry]) => {
    if (entry) view.size.value = entry.contentRect;
  });
  sizes.observe(element);
  view.size.value = { width: element.clientWidth, height: element.clientHeight };
  ended.addEventListener("abort", () => sizes.disconnect());

  // --- what is drawn ---

  run(() => {
    const [picture, drawnOver] = [view.picture.value, marks.value];
    followed.value = passed = null;
    layer.replaceChildren(...(picture && drawnOver ? [picture.svg, drawnOver.svg] : []));
  });
  let settled: number | undefined;
  let shown: { picture: DrawnPicture | null; viewport: Viewport } | null = null;
  const settle = () => {
    isMoving = false;
    if (passed) point(passed);
    passed = null;
    const [picture, seen] = [view.picture.peek(), view.seen.peek()];
    if (!picture || !seen) return;
    picture.enlarge(enlarged(seen.scale));
    const from = distance(seen.scale);
    if (from === "middle") picture.scaleNames(MOST_BESIDE, false);
    else if (from === "far") picture.scaleNames(view.place.peek()?.nameScale() ?? 1, true);
    element.dataset.distance = from;
  };
  ended.addEventListener("abort", () => clearTimeout(settled));
  run(() => {
    const [picture, viewport] = [view.picture.value, view.seen.value];
    if (!picture || !viewport) return;
    const { width, height } = view.size.value;
    const { x, y, scale } = viewport;
    const move = `translate3d(${width / 2 - x * scale}px, ${height / 2 - y * scale}px, 0)`;
    layer.style.transform = `${move} scale(${scale})`;
    if (shown && shown.viewport !== viewport) hidePointed(); // its node is elsewhere now
    clearTimeout(settled);
    if (shown?.picture !== picture) settle();
    else settled = window.setTimeout(settle, SETTLED_AFTER);
    shown = { picture, viewport };
  });
  run(() => {
    const dimmed = state.scene.value[side]?.dimmed;
    const picture = view.picture.value;
    if (picture && dimmed) showPale(picture, dimmed);
  });
  run(() => {
    const { node, side: where } = state.hovered.value;
    const ids = where === side ? [node] : counterparts(state.scene.value, node, where);
    marks.value?.hover(ids);
  });
  run(() => {
    const { node, side: where } = state.selection.value;
    const ids = where === side ? [node] : counterparts(state.scene.value, node, where);
    marks.value?.select(ids);
  });
  run(() => marks.value?.follow(followed.value));
  run(() => {
    const change = state.scene.value.changes[state.change.value];
    marks.value?.outline("pulse", change?.[side] ?? []);
  });
  run(() => {
    const { changes, loops } = state.scene.value; // of a PrimFunc: its picture has no marks
    marks.value?.outline("changed", loops ? changes.flatMap((one) => one[side]) : []);
  });
  run(() => marks.value?.outline("new", view.fresh.value));
  run(() => {
    const { node } = state.selection.value; // which has an outline of its own
    const hits = side === "current" ? state.hits.value : [];
    marks.value?.outline(
      "found",
      hits.filter((id) => id !== node),
    );
  });
  run(() => marks.value?.outline("preview", side === "current" ? state.marked.value : []));
  let known = state.selection.peek(); // what was selected before is not gone to
  let isAwaited = false; // selected, and not shown yet: it may be in the next picture
  let by: Means = "";
  run(() => {
    const selection = state.selection.value;
    const picture = drawn();
    if (selection !== known) {
      isAwaited = selection.side === side;
      by = selectedBy;
      selectedBy = "";
      known = selection;
    }
    const isDrawn = picture?.nodes.has(selection.node);
    const [seen, rect] = [view.seen.peek(), isDrawn && picture?.rects().get(selection.node)];
    if (!isAwaited || !seen || !rect) return;
    isAwaited = false;
    // what was not pointed at is looked for: it must be large enough to be found
    const pane = view.size.peek();
    const isSmall = seen.scale < LEGIBLE && by !== "pointer";
    const isAway = by === "" && !isAllVisible(seen, pane, rect);
    const next = (isSmall || isAway ? centre : reveal)(seen, pane, rect);
    if (next.x !== seen.x || next.y !== seen.y || next.scale !== seen.scale) glide(next);
  });

  // --- what is done ---

  /** Move at once, but seen to move. */
  const glide = (viewport: Viewport) => {
    layer.classList.add("irviz-glides");
    view.move(viewport);
  };
  const move = (viewport: Viewport) => {
    layer.classList.remove("irviz-glides");
    hidePointed();
    view.move(viewport);
  };
  const select = (node: string, means: Means) => {
    selectedBy = means;
    state.select(node, side);
  };
  const wasDragged = followGestures(
    element,
    ended,
    (event) => event.ctrlKey || event.metaKey || isEngaged || state.height.value === 0,
    ({ dx, dy, factor, at }) => {
      const [seen, frame] = [view.seen.peek(), view.picture.peek()?.frame];
      if (!seen || !frame) return;
      const { left, top, width, height } = element.getBoundingClientRect();
      const middle = { x: at.x - left - width / 2, y: at.y - top - height / 2 };
      isMoving = true;
      move(zoom(pan(seen, dx, dy), factor, middle, scalesOf(frame, { width, height })));
    },
  );

  const toggle = (container: string) => state.ask({ action: "Toggle", container, side });
  /** Open or close a group, or go to the PrimFunc that is called. */
  const open = (node: string) => {
    const facts = state.scene.peek()[side]?.nodes[node];
    if (facts?.isOpenable || view.picture.peek()?.toggles.has(node)) toggle(node);
    else if (facts?.source) state.ask({ action: "Focus", function: facts.source });
  };
  const follow = (arrow: Arrow, isPanning: boolean) => {
    const [dx, dy] = ARROWS[arrow];
    const [seen, picture, { node }] = [view.seen.peek(), drawn(), state.selection.peek()];
    if (!seen || !picture) return;
    if (isPanning) move(pan(seen, -PAN_STEP * dx, -PAN_STEP * dy));
    else if (!picture.nodes.has(node)) selectAt(0);
    else select(nextNode(picture.rects(), picture.edges, node, arrow) ?? node, "key");
  };
  const selectAt = (place: number) => {
    const { nodes, users } = drawn() ?? {};
    const own = [...(nodes?.keys() ?? [])].filter((id) => !users?.has(id));
    select(own.at(place) ?? "", "key");
  };
  const keys: Record<string, (event: KeyboardEvent) => void> = {
    Home: () => selectAt(0),
    End: () => selectAt(-1),
    Enter({ shiftKey }) {
      const { node } = state.selection.peek();
      if (!node) return;
      const container = state.scene.peek()[side]?.nodes[node]?.group;
      if (!shiftKey) open(node);
      else if (container) toggle(container);
    },
    ArrowUp: ({ shiftKey }) => follow("ArrowUp", shiftKey),
    ArrowDown: ({ shiftKey }) => follow("ArrowDown", shiftKey),
    ArrowLeft: ({ shiftKey }) => follow("ArrowLeft", shiftKey),
    ArrowRight: ({ shiftKey }) => follow("ArrowRight", shiftKey),
  };

  let timer: number | undefined;
  const hidePointed = () => {
    clearTimeout(timer);
    pointed.value = null;
  };
  ended.addEventListener("abort", hidePointed);
  const listen = <Type extends keyof HTMLElementEventMap>(
    type: Type,
    listener: (event: HTMLElementEventMap[Type]) => void,
  ) => element.addEventListener(type, listener, { signal: ended });

  const hover = (node: string) => {
    const known = state.hovered.peek();
    if (known.node !== node || (node && known.side !== side)) state.hovered.value = { node, side };
  };
  const point = ({ target, clientX, clientY, isStill }: Passed) => {
    const picture = view.picture.peek();
    const { node, edge } = partAt(picture, target);
    hover(node);
    followed.value = edge;
    hidePointed();
    const words = picture ? wordsAt(picture, edge?.element ?? target) : "";
    const ends = picture && edge ? endsOf(picture, edge) : "";
    if (isStill || (!node && !words)) return; // the picture moved, and not the pointer
    timer = window.setTimeout(() => {
      const { left, top } = element.getBoundingClientRect();
      const part = (picture?.nodes.get(node) ?? (target as Element)).getBoundingClientRect();
      const isLarge = edge || part.height > LARGE; // it is said where the pointer is
      const from = (isLarge ? clientY : part.top) - top;
      const to = (isLarge ? clientY + POINTER : part.bottom) - top;
      const facts = state.scene.peek()[side]?.nodes[node];
      pointed.value = { x: clientX - left, top: from, bottom: to, facts, ends, words };
    }, TOOLTIP_AFTER);
  };
  listen("pointermove", ({ clientX, clientY }) => {
    pointer = { clientX, clientY };
  });
  listen("pointerover", ({ target, clientX, clientY, buttons, pointerType }) => {
    if (buttons || pointerType === "touch") return;
    const isStill = clientX === pointer?.clientX && clientY === pointer.clientY;
    const at = { target, clientX, clientY, isStill };
    if (isMoving) passed = at;
    else point(at);
  });
  listen("pointerleave", () => {
    passed = pointer = null;
    hover("");
    followed.value = null;
    hidePointed();
  });
  listen("pointerdown", () => {
    isEngaged = true;
    element.classList.add("irviz-engaged"); // from now on the plain wheel zooms
    hidePointed();
  });
  const disengage = () => {
    isEngaged = false;
    element.classList.remove("irviz-engaged");
    hidePointed();
  };
  listen("blur", disengage);
  listen("click", (event) => {
    if (wasDragged()) return;
    const { node, toggle: sign, edge } = partAt(view.picture.peek(), event.target);
    if (sign) toggle(sign);
    else select(node || (edge?.source ?? ""), "pointer");
  });
  listen("dblclick", (event) => {
    const { node, toggle: sign } = partAt(view.picture.peek(), event.target);
    if (node && !sign) open(node);
  });
  listen("contextmenu", (event) => {
    if (event.shiftKey) return; // the browser's own menu
    const at = { x: event.clientX, y: event.clientY };
    const pointedAt = partAt(view.picture.peek(), event.target);
    let node = pointedAt.node || pointedAt.toggle; // the sign of a closed group is its node's
    if (event.target === element && event.button !== 2) {
      node = state.selection.peek().node; // by its key
      const rect = picturePlace(node);
      if (rect) Object.assign(at, { x: rect.left + rect.width / 2, y: rect.bottom });
    }
    if (!view.picture.peek()?.nodes.has(node)) return;
    event.preventDefault();
    event.stopPropagation(); // JupyterLab has a menu of its own
    hidePointed();
    select(node, "pointer");
    state.menu.value = { ...at, node, side };
  });
  const picturePlace = (node: string) =>
    view.picture.peek()?.nodes.get(node)?.getBoundingClientRect();
  listen("keydown", (event) => {
    if (event.key === "Escape") disengage(); // and more, elsewhere
    const act = keys[event.key];
    if (!act || !drawn() || event.ctrlKey || event.metaKey || event.altKey) return;
    act(event);
    event.preventDefault();
  });
}

// The state of the viewer in the page: Python's traits as signals, and what only the page knows.

import { batch, computed, effect, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { changeOf } from "./graph/change_steps";
import { beginning, type Place, stepTo, type Visits, visit } from "./page/back_forward";
import {
  type PaneName,
  type Picture,
  type Scene,
  type Selection,
  type Side,
  type StageRow,
  TRAITS,
  type ViewerMessage,
  type ViewerTraits,
} from "./schema";
import type { Host, WritableTraits } from "./viewer_host";

/** Where a picture is seen: (x, y) is its point in the middle of the pane. */
export interface Viewport {
  x: number;
  y: number;
  scale: number;
}

/** What is shown in the middle: the graph, the loops of a PrimFunc, the text, or one above the text. */
export type Layout = "graph" | "loops" | "split" | "text";

export const hasText = (layout: Layout) => layout === "split" || layout === "text";

/** How wide the viewer is: the limits are those of the container queries in viewer.css. */
type Width = "wide" | "medium" | "narrow";

/** What can be done with a node is asked for at a place of the window, in px. */
interface MenuRequest {
  x: number;
  y: number;
  node: string;
  side: Side;
}

/** An entry of a menu; `isChecked` is undefined where it is no choice. */
export interface MenuItem {
  label: string;
  hint?: string;
  isChecked?: boolean;
  isDisabled?: boolean;
  isSeparate?: boolean;
  run(): void;
}

/** A menu that is open: at a point of the window, below what it belongs to. */
export interface Menu {
  label: string;
  x: number;
  y: number;
  items: MenuItem[];
}

type Shared = { [Name in keyof ViewerTraits]: ReadonlySignal<ViewerTraits[Name]> };

export interface State extends Shared {
  readonly host: Host;
  /** The hovered node, "" for none, and in which picture. */
  readonly hovered: Signal<{ node: string; side: Side }>;
  /** Both pictures are seen through the same viewport; null fits the picture. */
  readonly viewport: Signal<Viewport | null>;
  /** Zoom the pictures by a factor; null where none is shown. */
  readonly zoom: Signal<((factor: number) => void) | null>;
  /** A fitted picture is all seen, however small its text is then, and enlarged where it has room. */
  readonly fitsAll: Signal<boolean>;
  readonly layout: ReadonlySignal<Layout>;
  /** Show something else in the middle. A PrimFunc's loops are shown until its graph is chosen. */
  choose(layout: Layout): void;
  /** The change that was gone to last, by its place in the scene's list; -1 for none. */
  readonly change: Signal<number>;
  /** The change that is looked at: it was gone to, or a node of it was selected since. */
  readonly changeAt: Signal<number>;
  /** The loops and blocks that the last clicks chose, null once the schedule has them. */
  readonly wantedLoops: Signal<readonly string[] | null>;
  /** The innermost open group in the middle of the pane, "" for none. */
  readonly centreGroup: Signal<string>;
  /** The open group that is to be brought into the picture, "" for none. */
  readonly wantedGroup: Signal<string>;
  /** Whether the next pictures are fitted, whatever was seen of those before. */
  readonly wantsFit: Signal<boolean>;
  /** What is written in the search field; it is searched after a pause. */
  readonly query: Signal<string>;
  /** What the picture shows of the nodes that are found. */
  readonly hits: ReadonlySignal<readonly string[]>;
  readonly isHelpOpen: Signal<boolean>;
  /** Whether the flame graph of the passes is shown. */
  readonly areTimesOpen: Signal<boolean>;
  readonly isInspectorOpen: Signal<boolean>;
  /** Whether what the run gives is shown over the graph. */
  readonly wantsAnswer: Signal<boolean>;
  readonly isLarge: Signal<boolean>;
  readonly isFull: Signal<boolean>;
  /** The node whose menu is asked for, and where; null for none. */
  readonly menu: Signal<MenuRequest | null>;
  readonly openMenu: Signal<Menu | null>;
  /** The stage that was asked for and is not shown yet, "" for none. */
  readonly asked: Signal<string>;
  /** Whether stages that changed nothing are left out. */
  readonly hidesSame: Signal<boolean>;
  /** The stage whose label is edited, "" for none. */
  readonly renamed: Signal<string>;
  /** The size of the viewer in px, 0 before it is known. */
  readonly size: Signal<{ width: number; height: number }>;
  readonly width: ReadonlySignal<Width>;
  /** Whether the inspector lies over the graph: from the right, or from below where it is narrow. */
  readonly isDrawer: ReadonlySignal<boolean>;
  /** One end of a path that is being chosen, "" for none. */
  readonly pathStart: Signal<string>;
  /** The layer to compare another one with, "" for none. */
  readonly comparedLayer: Signal<string>;
  readonly current: ReadonlySignal<StageRow | undefined>;
  readonly isComparing: ReadonlySignal<boolean>;
  readonly visits: Signal<Visits>;
  set<Name extends keyof WritableTraits>(name: Name, value: WritableTraits[Name]): void;
  select(node: string, side?: Side): void;
  shows(pane: PaneName): boolean;
  /** Tell whether an action can be asked for now. */
  can(action: ViewerMessage["action"]): boolean;
  /** Ask for an action, where it can be asked for. */
  ask(message: ViewerMessage, buffers?: ArrayBuffer[]): void;
  /** The picture of a side, null where there is none. */
  picture(side: Side): Picture | null;
  /** Select a node or group and bring it into the picture, whichever function it is in. */
  reveal(functionName: string, node: string): void;
  /** Go back (-1) or forward (1) to what was looked at. */
  goBack(by: -1 | 1): void;
  /** Show all of the picture; when that is shown, as much of it as can be read, and back. */
  fit(): void;
}

const MEDIUM = 700;
const WIDE = 1100;
/** From this width on two graphs and the inspector stand beside each other. */
const ROOMY = 1600;
const TRAVEL = 3000; // ms that the kernel may take to go back: until then nothing is a new place

const placeOf = ({ function: name, current, reference }: Scene, selection: Selection): Place => ({
  function: name,
  stage: current?.stage ?? "",
  reference: reference?.stage ?? "",
  ...selection,
});

const isSameScene = (one: Place, other: Place) =>
  one.function === other.function && one.stage === other.stage && one.reference === other.reference;

/** Make the state of a viewer, which follows its host until the signal is aborted. */
export function createState(host: Host, ended: AbortSignal): State {
  const traits = new Map<keyof ViewerTraits, Signal<unknown>>();
  for (const name of TRAITS) {
    const shared = signal<unknown>(host.get(name));
    traits.set(name, shared);
    const stop = host.follow(name, () => {
      shared.value = host.get(name);
    });
    ended.addEventListener("abort", stop);
  }
  const shared = Object.fromEntries(traits) as unknown as Shared;
  const set: State["set"] = (name, value) => {
    batch(() => {
      const own = traits.get(name);
      if (own) own.value = value; // at once: the kernel hears of it later
      host.set(name, value);
    });
  };
  const can: State["can"] = (action) => host.offers(action);
  const ask: State["ask"] = (message, buffers) => {
    if (can(message.action)) host.send(message, buffers);
  };
  const select: State["select"] = (node, side = "current") =>
    set("selection", { node, side: node ? side : "current" });
  const picture: State["picture"] = (side) => shared.scene.value[side];
  const wantedGroup = signal("");
  const reveal: State["reveal"] = (functionName, node) => {
    const scene = shared.scene.peek();
    if (scene.function === functionName && Object.hasOwn(scene.current?.groups ?? {}, node)) {
      select("");
      wantedGroup.value = node;
    } else if (scene.function === functionName && scene.current?.nodes[node]) select(node);
    else ask({ action: "Reveal", function: functionName, node, stage: "" });
  };

  const size = signal({ width: 0, height: 0 });
  const width = computed<Width>(() => {
    const px = size.value.width || WIDE;
    return px >= WIDE ? "wide" : px >= MEDIUM ? "medium" : "narrow";
  });
  const isComparing = computed(() => shared.scene.value.reference !== null);
  const isDrawer = computed(
    () => width.value !== "wide" || (isComparing.value && size.value.width < ROOMY),
  );

  const visits = signal<Visits>(beginning);
  let travel: { to: Place; until: number } | null = null;
  ended.addEventListener(
    "abort",
    effect(() => {
      const { scene, selection } = shared;
      const place = placeOf(scene.value, selection.value);
      if (travel && performance.now() < travel.until) {
        const { to } = travel;
        if (!isSameScene(to, place)) return; // on the way
        travel = null;
        if (to.node !== place.node && scene.value[to.side]?.nodes[to.node]) {
          queueMicrotask(() => select(to.node, to.side));
        }
        return;
      }
      travel = null;
      visits.value = visit(visits.peek(), place);
    }),
  );
  const goBack: State["goBack"] = (by) => {
    const next = stepTo(visits.peek(), by);
    const to = next.places[next.at];
    const scene = shared.scene.peek();
    if (!to || next === visits.peek()) return;
    visits.value = next;
    const here = placeOf(scene, { node: "", side: "current" });
    const isThere = isSameScene(to, here);
    if (!isThere) travel = { to, until: performance.now() + TRAVEL };
    if (to.stage !== here.stage || to.reference !== here.reference) {
      ask({ action: "Checkout", stage: to.stage, reference: to.reference });
    }
    if (to.function !== here.function) ask({ action: "Focus", function: to.function });
    if (isThere) select(to.node, to.side);
  };

  const current = computed(() => shared.rows.value.find((row) => row.isShown));
  const asked = signal("");
  ended.addEventListener(
    "abort",
    effect(() => {
      const isKnown = shared.rows.value.some((row) => row.id === asked.peek() && !row.isShown);
      if (!isKnown) asked.value = "";
    }),
  );
  const awaited = computed(() => `${shared.status.value.drawing} ${shared.rows.value.length}`);
  ended.addEventListener(
    "abort",
    awaited.subscribe((now) => {
      // cancelled, or something newer was done: the kernel draws it no more
      if (now.startsWith(" ")) asked.value = "";
    }),
  );

  const change = signal(-1);
  const changeAt = signal(-1);
  ended.addEventListener(
    "abort",
    effect(() => {
      const place = changeOf(shared.scene.value.changes, shared.selection.value);
      changeAt.value = place >= 0 ? place : change.peek();
    }),
  );
  ended.addEventListener(
    "abort",
    effect(() => {
      const place = changeOf(shared.scene.peek().changes, shared.selection.peek());
      changeAt.value = change.value >= 0 ? change.value : place;
    }),
  );

  const wantedLoops = signal<readonly string[] | null>(null);
  const sceneKey = computed(() => shared.scene.value.key);
  const loopsKey = computed(() => shared.schedule.value.chosen?.join());
  ended.addEventListener(
    "abort",
    effect(() => {
      const isOver = wantedLoops.value?.join() === loopsKey.value;
      if (isOver) wantedLoops.value = null;
    }),
  );
  ended.addEventListener(
    "abort",
    sceneKey.subscribe(() => {
      wantedLoops.value = null;
    }),
  );

  const chosen = signal<Layout>(shared.panes.peek().includes("graph") ? "loops" : "text");
  const layout = computed<Layout>(() => {
    const hasNoLoops = shared.scene.value.loops === null;
    return chosen.value === "loops" && hasNoLoops ? "graph" : chosen.value;
  });

  const viewport = signal<Viewport | null>(null);
  const fitsAll = signal(false);
  const query = signal(shared.search.peek());
  const hits = computed(() => {
    const { words, nodes } = shared.found.value;
    const isAnswer = words !== "" && words.trim() === query.value.trim();
    return isAnswer ? [...new Set(nodes.map(({ shown }) => shown).filter(Boolean))] : [];
  });
  return {
    ...shared,
    host,
    hovered: signal({ node: "", side: "current" }),
    viewport,
    zoom: signal(null),
    fitsAll,
    layout,
    choose(wanted) {
      const isGraphOfRelax = wanted === "graph" && shared.scene.peek().loops === null;
      chosen.value = isGraphOfRelax ? "loops" : wanted;
    },
    change,
    changeAt,
    wantedLoops,
    centreGroup: signal(""),
    wantedGroup,
    wantsFit: signal(false),
    query,
    hits,
    isHelpOpen: signal(false),
    areTimesOpen: signal(false),
    isInspectorOpen: signal(true),
    wantsAnswer: signal(false),
    isLarge: signal(false),
    isFull: signal(false),
    menu: signal(null),
    openMenu: signal(null),
    asked,
    hidesSame: signal(false),
    renamed: signal(""),
    size,
    width,
    isDrawer,
    pathStart: signal(""),
    comparedLayer: signal(""),
    current,
    isComparing,
    visits,
    set,
    select,
    shows: (pane) => shared.panes.value.includes(pane),
    can,
    ask,
    picture,
    reveal,
    goBack,
    fit() {
      const isFitted = viewport.peek() === null;
      batch(() => {
        fitsAll.value = !(isFitted && fitsAll.peek());
        viewport.value = null;
      });
    },
  };
}

// The state of the viewer in the page: Python's traits as signals, and what only the page knows.

import { batch, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { Host, WritableTraits } from "./host";
import type { PaneName, Side, ViewerTraits } from "./view_data";

/** Where a picture is seen: (x, y) is its point in the middle of the pane. */
export interface Viewport {
  x: number;
  y: number;
  scale: number;
}

/** What is shown in the middle: the graph, the text, or both. */
export type Layout = "graph" | "split" | "text";

/** What can be done with a node is asked for at a place of the window, in px. */
export interface MenuRequest {
  x: number;
  y: number;
  node: string;
  side: Side;
}

type Shared = { [Name in keyof ViewerTraits]: ReadonlySignal<ViewerTraits[Name]> };

export interface State extends Shared {
  readonly host: Host;
  /** The hovered node, "" for none, and in which picture. */
  readonly hovered: Signal<{ node: string; side: Side }>;
  /** Both pictures are seen through the same viewport; null fits the picture. */
  readonly viewport: Signal<Viewport | null>;
  readonly layout: Signal<Layout>;
  /** The change that was gone to last, by its place in the scene's list; -1 for none. */
  readonly change: Signal<number>;
  /** The node whose menu is open, and where; null for none. */
  readonly menu: Signal<MenuRequest | null>;
  readonly isHelpOpen: Signal<boolean>;
  readonly isInspectorOpen: Signal<boolean>;
  set<Name extends keyof WritableTraits>(name: Name, value: WritableTraits[Name]): void;
  select(node: string, side?: Side): void;
  shows(pane: PaneName): boolean;
}

const TRAITS: readonly (keyof ViewerTraits)[] = [
  ...(["title", "panes", "height", "rows", "canUndo", "canRedo", "functions", "scene"] as const),
  ...(["scripts", "selection", "details", "search", "found", "status", "colours"] as const),
  ...(["colour", "tabs", "tab", "forms", "hasScript", "isDark", "clipboard"] as const),
];

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
  return {
    ...shared,
    host,
    hovered: signal({ node: "", side: "current" }),
    viewport: signal(null),
    layout: signal("graph"),
    change: signal(-1),
    menu: signal(null),
    isHelpOpen: signal(false),
    isInspectorOpen: signal(true),
    set,
    select: (node, side = "current") => set("selection", { node, side: node ? side : "current" }),
    shows: (pane) => shared.panes.value.includes(pane),
  };
}

// What can be done with a node, for the inspector and the menu of a right click.

import { copy } from "../controls/clipboard";
import type { Side } from "../schema";
import type { MenuItem, State } from "../state";

export const usualSteps = 2;

export const showWhole = (state: State) =>
  state.ask({ action: "LookAround", node: "", steps: 0, to: "" });

/** Tell whether the pictures have groups that are closed, and some that are open. */
export function groupsOf(state: State): { areClosed: boolean; areOpen: boolean } {
  const pictures = [state.picture("current"), state.picture("reference")];
  return {
    areClosed: pictures.some((one) =>
      Object.values(one?.nodes ?? {}).some(
        ({ kind, isOpenable }) => isOpenable && kind === "group",
      ),
    ),
    areOpen: pictures.some((one) => Object.values(one?.groups ?? {}).some(({ name }) => name)),
  };
}

/** Open or close all groups; the pictures are fitted then. */
export function toggleAll(state: State, opens: boolean) {
  const { areClosed, areOpen } = groupsOf(state);
  if (!(opens ? areClosed : areOpen) || !state.can("ToggleAll")) return;
  state.wantsFit.value = true;
  state.ask({ action: "ToggleAll", opens });
}

/** What can be done with a node of the picture of a side; what does not apply is left out. */
export function nodeActions(state: State, node: string, side: Side, steps = usualSteps) {
  const facts = state.picture(side)?.nodes[node];
  const start = state.pathStart.value;
  const actions: MenuItem[] = [];
  if (!facts) return actions;
  const add = (label: string, hint: string, run: () => void) => actions.push({ label, hint, run });
  if (state.can("Toggle")) {
    if (facts.isOpenable) {
      add("Open", "Enter", () => state.ask({ action: "Toggle", container: node, side }));
    }
    if (facts.group) {
      const container = facts.group;
      add(`Close ${facts.groupName}`, "⇧Enter", () =>
        state.ask({ action: "Toggle", container, side }),
      );
    }
  }
  if (facts.source && state.can("Focus")) {
    const name = facts.source;
    add(`Go to ${name}`, "Enter", () => state.ask({ action: "Focus", function: name }));
  }
  const { layer } = facts;
  if (layer && state.can("CompareLayers")) {
    const other = state.comparedLayer.value;
    if (other && other !== layer) {
      add(`Compare with ${other}`, layer, () => {
        state.ask({ action: "CompareLayers", layer: other, other: layer });
        state.comparedLayer.value = "";
      });
    } else {
      add("Compare layer", `${layer}, with the next that is chosen`, () => {
        state.comparedLayer.value = layer;
      });
    }
  }
  if (!state.can("LookAround")) return actions;
  if (facts.isOwn) {
    add("Nearby", `${steps} steps`, () => state.ask({ action: "LookAround", node, steps, to: "" }));
    add("Path from here", "", () => {
      state.pathStart.value = node;
    });
    if (start && start !== node) {
      add("Path to here", `from ${start}`, () => {
        state.ask({ action: "LookAround", node: start, steps: 0, to: node });
        state.pathStart.value = "";
      });
    }
  }
  if (state.scene.value.part) {
    add("Whole function", "", () =>
      state.ask({ action: "LookAround", node: "", steps: 0, to: "" }),
    );
  }
  return actions;
}

/** Return the menu of a node: what can be done with it, and what can be copied. */
export function nodeMenu(state: State, node: string, side: Side, root: Element): MenuItem[] {
  const facts = state.picture(side)?.nodes[node];
  if (!facts) return [];
  const items = nodeActions(state, node, side);
  const copied = { name: facts.name, operator: facts.operator, type: facts.type };
  let isSeparate = items.length > 0;
  for (const [what, text] of Object.entries(copied)) {
    if (!text) continue;
    items.push({ label: `Copy ${what}`, isSeparate, run: () => void copy(text, root) });
    isSeparate = false;
  }
  return items;
}

// A session that was recorded for a file: what was recorded can be looked at without a kernel.

import { signal } from "@preact/signals";
import type { Host } from "./host";
import type {
  Details,
  FoundNode,
  Picture,
  RecordedView,
  Recording,
  Scene,
  ViewerMessage,
  ViewerTraits,
} from "./schema";

const OFFERED: readonly ViewerMessage["action"][] = [
  ...(["Checkout", "Compare", "Focus", "Reveal", "Toggle", "Say"] as const),
];
const MOST_FOUND = 200;
const NO_DETAILS: Details = {
  key: "",
  node: "",
  side: "current",
  value: "",
  code: "",
  history: [],
};

const keyOf = (functionName: string, stage: string, reference: string) =>
  `${functionName}/${stage}/${reference}`;

/** Find nodes whose name, operator or type has all the words, in any case. */
function findNodes(scenes: readonly Scene[], stage: string, words: string): FoundNode[] {
  const parts = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (!parts.length) return [];
  const found = scenes
    .filter(({ current, reference }) => current?.stage === stage && !reference)
    .flatMap(({ function: name, current }) =>
      Object.entries(current?.nodes ?? {}).map(([node, facts]) => {
        const line = `${facts.name}  ${facts.operator}  ${facts.type}`;
        return { function: name, node, line };
      }),
    )
    .filter(({ line }) => parts.every((part) => line.toLowerCase().includes(part)));
  const once = new Map(found.map((one) => [JSON.stringify([one.function, one.node]), one]));
  return [...once.values()];
}

/** Return the host of a recording: it looks up scenes, scripts and details by their keys. */
export function fileHost(recording: Recording): Host {
  const traits: ViewerTraits = { ...recording.traits };
  const listeners = new Map<keyof ViewerTraits, Set<() => void>>();
  const views = new Map(recording.views.map((view) => [view.scene.key, view]));
  const every = [...recording.views, ...recording.toggled].map(({ scene }) => scene);
  const scripts = new Map(recording.scripts.map((script) => [script.stage, script]));

  function change<Name extends keyof ViewerTraits>(name: Name, value: ViewerTraits[Name]) {
    traits[name] = value;
    for (const listener of listeners.get(name) ?? []) listener();
  }
  const say = (words: string, isError: boolean) =>
    change("status", { ...traits.status, words, isError });

  function showScripts() {
    const { current, reference } = traits.scene;
    const scriptOf = (stage: string | undefined) =>
      (traits.hasScript && stage !== undefined && scripts.get(stage)) || null;
    change("scripts", {
      current: scriptOf(current?.stage),
      reference: scriptOf(reference?.stage),
    });
  }

  function showDetails() {
    const { node, side } = traits.selection;
    const { current, reference } = traits.scene;
    const stage = traits.scene[side]?.stage ?? "";
    const own = keyOf(traits.scene.function, current?.stage ?? "", reference?.stage ?? "");
    const alone = keyOf(traits.scene.function, stage, ""); // recorded once, however it is compared
    const found =
      recording.details.find((one) => one.key === own && one.node === node && one.side === side) ??
      recording.details.find((one) => one.key === alone && one.node === node);
    change("details", found ? { ...found, key: own, side } : NO_DETAILS);
  }

  /** What was opened or closed, "" for nothing: each container was recorded by itself. */
  let toggled = "";

  function toggle(container: string) {
    const { key, moved } = traits.scene;
    const base = views.get(key)?.scene;
    const next = recording.toggled.find(
      (one) => one.scene.key === key && one.container === container,
    );
    if (toggled === container && base) {
      toggled = "";
      showScene({ ...base, moved: moved.map((one) => -one) });
    } else if (next) {
      showScene(toggled ? { ...next.scene, moved: [] } : next.scene);
      toggled = container;
    } else
      say(
        "This was not saved opened or closed here: to do that, open the session in irviz.",
        false,
      );
  }

  function showScene(scene: Scene) {
    change("scene", scene);
    showScripts();
    const { node, side } = traits.selection;
    if (node && !scene[side]?.nodes[node]) change("selection", { node: "", side: "current" });
    showDetails();
  }

  /** Show a node of the shown stage and function, opening what it is in. */
  function reveal(node: string) {
    if (!traits.scene.current?.nodes[node]) {
      const { key } = traits.scene;
      const within = recording.toggled.find(
        ({ scene }) => scene.key === key && scene.current?.nodes[node],
      );
      if (within) toggle(within.container);
    }
    if (!traits.scene.current?.nodes[node]) return;
    change("selection", { node, side: "current" });
    showDetails();
  }

  /** Show a view, else the one without a comparison; else say that the stage has none. */
  function show(functionName: string, stage: string, reference: string) {
    const known =
      views.get(keyOf(functionName, stage, reference)) ?? views.get(keyOf(functionName, stage, ""));
    const { scene, functions, status } = known ?? lacking(functionName, stage);
    change("status", status);
    if (known && (scene.reference?.stage ?? "") !== reference) {
      say(`Stages ${reference} and ${stage} were not recorded as a pair.`, true);
    }
    change(
      "functions",
      functions.filter(({ name }) => views.has(keyOf(name, stage, ""))),
    );
    change(
      "rows",
      traits.rows.map((row) => ({ ...row, isShown: row.id === stage })),
    );
    toggled = "";
    showScene(scene);
  }

  /** Return what is shown of a stage without a function. */
  function lacking(functionName: string, stage: string): RecordedView {
    const other = recording.views.find(({ scene }) => scene.current?.stage === stage);
    const label = traits.rows.find((row) => row.id === stage)?.label ?? "";
    const error = `This stage has no function '${functionName}', or it was not recorded.`;
    const current: Picture = {
      ...{ stage, label, name: `stage ${stage}`, svg: "", error, note: "", facts: [], dimmed: [] },
      ...{ nodes: {}, groups: {}, instead: other ? [other.scene.function] : [] },
    };
    const scene: Scene = {
      ...{ key: keyOf(functionName, stage, ""), function: functionName, current, reference: null },
      ...{ summary: "", changes: [], legend: [], moved: [], part: "" },
    };
    const status = { ...traits.status, words: "", isError: false, verdict: "" };
    return { scene, functions: other?.functions ?? [], status };
  }

  function search(words: string) {
    const nodes = findNodes(every, traits.scene.current?.stage ?? "", words);
    const errors: string[] = [];
    change("found", {
      words: words.trim(),
      nodes: nodes.slice(0, MOST_FOUND),
      count: nodes.length,
      errors,
    });
  }

  showScripts();
  showDetails();
  return {
    isLive: false,
    connection: signal("none"),
    get: (name) => traits[name],
    set(name, value) {
      change(name, value as never);
      if (name === "selection") showDetails();
      if (name === "hasScript") showScripts();
      if (name === "search") search(value as string);
    },
    follow(name, listener) {
      const all = listeners.get(name) ?? new Set();
      listeners.set(name, all.add(listener));
      return () => all.delete(listener);
    },
    offers: (action) => OFFERED.includes(action),
    send(message) {
      const stage = traits.scene.current?.stage ?? "";
      const reference = traits.scene.reference?.stage ?? "";
      const functionName = traits.scene.function;
      if (message.action === "Checkout") {
        show(functionName, message.stage, message.stage === reference ? "" : reference);
      } else if (message.action === "Compare") show(functionName, stage, message.reference);
      else if (message.action === "Focus") show(message.function, stage, reference);
      else if (message.action === "Reveal") {
        const to = message.stage || stage;
        if (message.function !== functionName || to !== stage) {
          show(message.function, to, to === reference ? "" : reference);
        }
        reveal(message.node);
      } else if (message.action === "Toggle") toggle(message.container);
      else if (message.action === "Say") say(message.words, message.isError);
    },
    mount: async () => () => {},
  };
}

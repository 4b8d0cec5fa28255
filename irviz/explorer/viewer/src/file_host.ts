// A session that was recorded for a file: what was recorded can be looked at without a kernel.

import { signal } from "@preact/signals";
import type { Host } from "./host";
import type { FoundNode, Picture, Recording, Scene, ViewerMessage, ViewerTraits } from "./schema";

const OFFERED: readonly ViewerMessage["action"][] = ["Checkout", "Compare", "Focus", "Reveal"];
const MOST_FOUND = 200;
const NO_DETAILS = { key: "", node: "", side: "current", value: "", code: "" } as const;

const keyOf = (functionName: string, stage: string, reference: string) =>
  `${functionName}/${stage}/${reference}`;

/** Find nodes whose name, operator or type has all the words, in any case. */
function findNodes(scenes: readonly Scene[], stage: string, words: string): FoundNode[] {
  const parts = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (!parts.length) return [];
  return scenes
    .filter(({ current, reference }) => current?.stage === stage && !reference)
    .flatMap(({ function: name, current }) =>
      Object.entries(current?.nodes ?? {}).map(([node, facts]) => {
        const line = `${facts.name}  ${facts.operator}  ${facts.type}`;
        return { function: name, node, line };
      }),
    )
    .filter(({ line }) => parts.every((part) => line.toLowerCase().includes(part)));
}

/** Return the host of a recording: it looks up scenes, scripts and details by their keys. */
export function fileHost(recording: Recording): Host {
  const traits: ViewerTraits = { ...recording.traits };
  const listeners = new Map<keyof ViewerTraits, Set<() => void>>();
  const scenes = new Map(recording.scenes.map((scene) => [scene.key, scene]));
  const scripts = new Map(recording.scripts.map((script) => [script.stage, script]));

  function change<Name extends keyof ViewerTraits>(name: Name, value: ViewerTraits[Name]) {
    traits[name] = value;
    for (const listener of listeners.get(name) ?? []) listener();
  }
  const { key: firstKey } = traits.scene;
  const { verdict } = traits.status;
  const say = (words: string, isError: boolean, key = traits.scene.key) =>
    change("status", {
      ...traits.status,
      ...{ words, isError, verdict: key === firstKey ? verdict : "" },
    });

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

  /** Show a scene, else the one without a comparison; else say that the stage has none. */
  function show(functionName: string, stage: string, reference: string) {
    const known =
      scenes.get(keyOf(functionName, stage, reference)) ??
      scenes.get(keyOf(functionName, stage, ""));
    const scene = known ?? lacking(functionName, stage);
    const isAsked = !known || (scene.reference?.stage ?? "") === reference;
    const words = `Stages ${reference} and ${stage} were not recorded as a pair.`;
    say(isAsked ? "" : words, !isAsked, scene.key);
    const names = recording.scenes
      .filter(({ current }) => current?.stage === stage)
      .map((one) => one.function);
    const kinds = new Map(recording.traits.functions.map((row) => [row.name, row]));
    change(
      "functions",
      [...new Set(names)].map((name) => kinds.get(name) ?? { name, kind: "" }),
    );
    change(
      "rows",
      traits.rows.map((row) => ({ ...row, isShown: row.id === stage })),
    );
    change("scene", scene);
    showScripts();
    const { node, side } = traits.selection;
    if (node && !scene[side]?.nodes[node]) change("selection", { node: "", side: "current" });
    showDetails();
  }

  /** Return what is shown of a stage without a function. */
  function lacking(functionName: string, stage: string): Scene {
    const others = recording.scenes.filter((one) => one.current?.stage === stage && !one.reference);
    const label = traits.rows.find((row) => row.id === stage)?.label ?? "";
    const error = `This stage has no function '${functionName}', or it was not recorded.`;
    const current: Picture = {
      ...{ stage, label, name: `stage ${stage}`, svg: "", error, note: "", facts: [], dimmed: [] },
      ...{ nodes: {}, groups: {}, instead: others.slice(0, 1).map((one) => one.function) },
    };
    return {
      ...{ key: keyOf(functionName, stage, ""), function: functionName, current, reference: null },
      ...{ summary: "", changes: [], legend: [], moved: [], part: "" },
    };
  }

  function search(words: string) {
    const nodes = findNodes(recording.scenes, traits.scene.current?.stage ?? "", words);
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
        show(message.function, stage, reference);
        if (traits.scene.current?.nodes[message.node]) {
          change("selection", { node: message.node, side: "current" });
          showDetails();
        }
      }
    },
    mount: async () => () => {},
  };
}

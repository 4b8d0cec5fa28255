// A session that was recorded for a file: it has what Python answered, which is looked up here.

import { signal } from "@preact/signals";
import type {
  Details,
  Picture,
  RecordedView,
  Recording,
  Scene,
  ToggledView,
  ViewerMessage,
  ViewerTraits,
} from "../schema";
import type { Host } from "../viewer_host";
import { otherMatches, searchNodes } from "./offline_search";

const OFFERED: readonly ViewerMessage["action"][] = [
  ...(["Checkout", "Compare", "Focus", "Reveal", "Toggle", "ToggleAll", "Say"] as const),
];
const NOT_SAVED = "This was not saved: to look at it, open the session in irviz.";
/** The containers of the views in which all groups are open, or closed. */
const [ALL_OPEN, ALL_CLOSED] = ["+", "-"];
const NO_DETAILS: Details = {
  key: "",
  node: "",
  side: "current",
  value: "",
  code: "",
  history: [],
};

/** What is looked at: a function of a stage, beside another stage or "". */
interface Looked {
  function: string;
  stage: string;
  reference: string;
}

const keyOf = (one: Looked) => `${one.function}/${one.stage}/${one.reference}`;

/** Return the host of a recording: it looks up views, scripts and details by their keys. */
export function fileHost(recording: Recording): Host {
  const traits: ViewerTraits = { ...recording.traits };
  const listeners = new Map<keyof ViewerTraits, Set<() => void>>();
  const views = new Map(recording.views.map((view) => [view.scene.key, view]));
  const scripts = new Map(recording.scripts.map((script) => [script.stage, script]));
  /** What is open or closed in the shown view unlike at first, "" for nothing. */
  let container = "";

  function change<Name extends keyof ViewerTraits>(name: Name, value: ViewerTraits[Name]) {
    traits[name] = value;
    for (const listener of listeners.get(name) ?? []) listener();
  }
  const say = (words: string, isError: boolean) =>
    change("status", { ...traits.status, words, isError });

  const looked = (): Looked => ({
    function: traits.scene.function,
    stage: traits.scene.current?.stage ?? "",
    reference: traits.scene.reference?.stage ?? "",
  });

  function showScripts() {
    const { stage, reference } = looked();
    const scriptOf = (id: string) => (traits.hasScript && scripts.get(id)) || null;
    change("scripts", { current: scriptOf(stage), reference: scriptOf(reference) });
  }

  function showDetails() {
    const { node, side } = traits.selection;
    const own = traits.scene.key;
    const stage = traits.scene[side]?.stage ?? "";
    const alone = keyOf({ ...looked(), stage, reference: "" }); // recorded once, however compared
    const found =
      recording.details.find((one) => one.key === own && one.node === node && one.side === side) ??
      recording.details.find((one) => one.key === alone && one.node === node);
    change("details", found ? { ...found, key: own, side } : NO_DETAILS);
  }

  function show(view: RecordedView | ToggledView) {
    const { scene, rows, functions, status } = view;
    const before = traits.scene;
    const back = before.moved.map((one) => -one);
    const moved = !("container" in view) ? back : container ? [] : scene.moved;
    container = "container" in view ? view.container : "";
    change("rows", rows);
    change("functions", functions);
    change("scene", { ...scene, moved: scene.key === before.key ? moved : [] });
    change("status", status);
    showScripts();
    const { node, side } = traits.selection;
    const isKept = scene.function === before.function && scene[side]?.nodes[node];
    if (node && !isKept) change("selection", { node: "", side: "current" });
    showDetails();
    search(traits.search);
  }

  /** Show what is asked for, else the stage by itself; tell whether a picture of it was saved. */
  function go(asked: Looked): boolean {
    const viewOf = (key: string) => views.get(recording.leads[key] ?? key);
    const view = viewOf(keyOf(asked));
    const alone = view ?? viewOf(keyOf({ ...asked, reference: "" }));
    show((alone && withOpen(alone)) ?? unsaved(asked));
    if (alone && !view) {
      say(`Stages ${asked.reference} and ${asked.stage} were not saved as a pair.`, true);
    }
    return alone !== undefined;
  }

  /** Return the view of the same function in which what is open or closed now is so, too. */
  function withOpen(view: RecordedView): RecordedView {
    const { key, function: name } = view.scene;
    const isSame = name === traits.scene.function;
    const isOpen = ({ current }: Scene) => Object.hasOwn(current?.groups ?? {}, container);
    const isAll = container === ALL_OPEN || container === ALL_CLOSED;
    const isAsNow = (one: ToggledView) =>
      one.scene.key === key &&
      one.container === container &&
      (isAll || isOpen(one.scene) === isOpen(traits.scene));
    return (isSame && recording.toggled.find(isAsNow)) || view;
  }

  /** Return what is shown of a stage whose picture there was no room for: its text is there. */
  function unsaved({ function: name, stage }: Looked): RecordedView {
    const other = recording.views.find(({ scene }) => scene.current?.stage === stage);
    const label = traits.rows.find((row) => row.id === stage)?.label ?? "";
    const current: Picture = {
      ...{ stage, label, name: `stage ${stage}`, svg: "", error: NOT_SAVED, note: "", facts: [] },
      ...{ dimmed: [], nodes: {}, groups: {}, instead: other ? [other.scene.function] : [] },
    };
    const key = keyOf({ function: name, stage, reference: "" });
    return {
      rows: traits.rows.map((row) => ({ ...row, isShown: row.id === stage })),
      functions: other?.functions ?? [],
      scene: {
        ...{ key, function: name, current, reference: null, part: "" },
        ...{ summary: "", loops: null, changes: [], legend: [], moved: [] },
      },
      status: { ...traits.status, words: "", isError: false, verdict: "" },
    };
  }

  /** Return the views of what is shown, in each of which one container is opened or closed. */
  const toggledViews = () =>
    recording.toggled.filter(({ scene }) => scene.key === traits.scene.key);

  function toggle(wanted: string) {
    const next = toggledViews().find((one) => one.container === wanted);
    const all = [ALL_OPEN, ALL_CLOSED];
    const isSame = container === wanted;
    const isBack = isSame ? !all.includes(wanted) : all.includes(wanted) && all.includes(container);
    const view = !isSame && next ? next : isBack ? views.get(traits.scene.key) : null;
    if (view) show(view);
    else say(NOT_SAVED, false);
  }

  /** Select a node of the shown stage and function, in a view that has it. */
  function select(node: string) {
    const { key, current } = traits.scene;
    if (!current?.nodes[node]) {
      const base = views.get(key);
      const others = base ? [base, ...toggledViews()] : [];
      const view = others.find(({ scene }) => scene.current?.nodes[node]);
      if (!view) return say(NOT_SAVED, false);
      show(view);
    }
    change("selection", { node, side: "current" });
    showDetails();
  }

  function search(words: string) {
    const { function: shown, stage } = looked();
    const names = traits.functions.map(({ name }) => name).filter((name) => name !== shown);
    const nodes = [shown, ...names].flatMap((name) => {
      const key = keyOf({ function: name, stage, reference: "" });
      const found = searchNodes(recording.searched[key] ?? [], words);
      return found.map((one) => ({ ...one, function: name }));
    });
    const listed = nodes
      .slice(0, recording.mostFound)
      .map(({ function: name, node, line, rest, text }) => {
        const more = otherMatches(`${line} ${rest}`, text, words);
        const isHere = name === shown && traits.scene.current?.nodes[node];
        return {
          function: name,
          node,
          shown: isHere ? node : "",
          line,
          rest: `${rest}  ${more}`.trimEnd(),
        };
      });
    change("found", { words: words.trim(), nodes: listed, count: nodes.length, errors: [] });
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
      const here = looked();
      if (message.action === "Checkout") {
        go({ ...here, stage: message.stage, reference: message.reference ?? here.reference });
      } else if (message.action === "Compare") go({ ...here, reference: message.reference });
      else if (message.action === "Focus") go({ ...here, function: message.function });
      else if (message.action === "Reveal") {
        const name = message.function || here.function;
        const there = { ...here, function: name, stage: message.stage || here.stage };
        const isThere = keyOf(there) === keyOf(here) || go(there);
        if (isThere && message.node) select(message.node);
      } else if (message.action === "Toggle") toggle(message.container);
      else if (message.action === "ToggleAll") toggle(message.opens ? ALL_OPEN : ALL_CLOSED);
      else if (message.action === "Say") say(message.words, message.isError);
    },
    mount: async () => () => {},
  };
}

// The loops of a PrimFunc: its nest as a listing, or the nests of two stages that are compared.

import { useSignal, useSignalEffect } from "@preact/signals";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { readSvg } from "../controls/safe_markup";
import { ChangeBar } from "../graph/change_bar";
import { Caption } from "../graph/graph_pane";
import { LARGE_TYPE } from "../graph/picture_view";
import { NODE } from "../inspector/inspector";
import type { Loops, Side } from "../schema";
import { useAwaitedStage } from "../stages/pending_stage";
import type { State } from "../state";
import { focusSteps, SCHEDULE } from "./schedule_step_menu";

const TYPE = 14 / 11; // as much larger than in a figure
const LEAST_TYPE = 10 / 11; // to which it shrinks so that both sides are seen

const STEPS: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 };

const sideOf = (row: Element): Side => (row.classList.contains("before") ? "reference" : "current");

export function LoopsPane({ state, loops }: { state: State; loops: Loops }) {
  const body = useRef<HTMLDivElement>(null);
  const scene = state.scene.value;
  const picture = useMemo(() => (loops.svg ? readSvg(loops.svg) : null), [loops.svg]);
  const room = useSignal(0);
  const usual = TYPE * (state.isLarge.value ? LARGE_TYPE : 1);
  const { width = 0, height = 0 } = picture?.viewBox.baseVal ?? {};
  const isFitted = room.value > 0 && width > 0;
  const scale = isFitted ? Math.min(usual, Math.max(room.value / width, LEAST_TYPE)) : usual;
  /** The loop or block that was gone to last, by its id. */
  const at = useSignal("");
  const isOutdated = useAwaitedStage(state) !== undefined;

  useLayoutEffect(() => {
    if (!picture) return body.current?.replaceChildren();
    picture.setAttribute("width", `${width * scale}`);
    picture.setAttribute("height", `${height * scale}`);
    body.current?.replaceChildren(picture);
    markSelected();
  }, [picture, scale]);
  useLayoutEffect(() => {
    const pane = body.current?.parentElement;
    if (!pane) return;
    const observer = new ResizeObserver(() => {
      room.value = pane.clientWidth;
    });
    observer.observe(pane);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    state.change.value = -1;
  }, [scene.key]);

  const rows = () => [...(body.current?.querySelectorAll(".row[data-node]") ?? [])];
  const rowsOf = (node: string, side: Side) =>
    rows().filter((row) => row.getAttribute("data-node") === node && sideOf(row) === side);
  const markSelected = () => {
    const { node, side } = state.selection.value;
    const selected = new Set(node ? rowsOf(node, side) : []);
    const { chosen, refused } = state.schedule.value;
    const loops = state.wantedLoops.value ?? chosen;
    const isIn = (ids: readonly string[] | undefined, row: Element) =>
      ids?.includes(row.getAttribute("data-loop") ?? "") ?? false;
    const own = state.can("ChooseLoop") ? loops : [at.value];
    for (const row of rows()) {
      row.classList.toggle("irviz-chosen", selected.has(row));
      row.classList.toggle("irviz-chosen-loop", isIn(own, row));
      row.classList.toggle("irviz-refused-loop", isIn(refused, row));
    }
  };
  useSignalEffect(markSelected);
  useSignalEffect(() => {
    const change = state.scene.peek().changes[state.change.value];
    for (const row of rows()) {
      const isIn = change?.[sideOf(row)].includes(row.getAttribute("data-node") ?? "");
      row.classList.toggle("irviz-of-change", isIn ?? false);
    }
    const side = change?.current.length ? "current" : "reference";
    const [first] = rowsOf(change?.[side][0] ?? "", side);
    first?.scrollIntoView({ block: "center", inline: "nearest" });
  });

  const chooseLoop = (loop: string, adds: boolean) => {
    const before = adds ? (state.wantedLoops.peek() ?? state.schedule.peek().chosen ?? []) : [];
    const others = before.filter((one) => one !== loop);
    const added = loop && !before.includes(loop) ? [loop] : [];
    if (state.can("ChooseLoop")) state.wantedLoops.value = [...others, ...added];
    state.ask({ action: "ChooseLoop", loop, adds });
  };
  /** Select the node of a row, and choose its loop or block: alone, or with those before. */
  const select = (row: Element | undefined, adds: boolean) => {
    const node = row?.getAttribute("data-node");
    if (!row || !node) return;
    state.select(node, sideOf(row));
    const loop = row.getAttribute("data-loop") ?? "";
    at.value = loop;
    chooseLoop(loop, adds);
    const tab = loop && state.can("DoStep") ? SCHEDULE : NODE;
    if ([NODE, SCHEDULE].includes(state.tab.peek())) state.set("tab", tab);
  };
  /** Go to the next loop or block, or of others to the next row that has another node. */
  const step = (by: number, adds: boolean) => {
    const { node, side } = state.selection.peek();
    const every = rows().filter((row) => row.getAttribute("data-node") && sideOf(row) === side);
    const name = every.some((row) => row.hasAttribute("data-loop")) ? "data-loop" : "data-node";
    const idOf = (row: Element | undefined) => row?.getAttribute(name) ?? "";
    const ids = [...new Set(every.map(idOf))].filter(Boolean);
    const own = every.filter((row) => row.getAttribute("data-node") === node && idOf(row));
    const here = own.find((row) => idOf(row) === at.peek()) ?? own[0];
    const next = ids[Math.min(Math.max(ids.indexOf(idOf(here)) + by, 0), ids.length - 1)];
    const row = every.find((one) => idOf(one) === next);
    if (next === undefined) return;
    select(row, adds);
    row?.scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  const press = (event: KeyboardEvent) => {
    const by = STEPS[event.key];
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (by) step(by, event.shiftKey);
    else if (event.key === "Enter" && body.current) {
      state.isInspectorOpen.value = true;
      focusSteps(body.current);
    } else if (event.key === "Escape" && state.schedule.peek().chosen?.length) {
      chooseLoop("", false);
    } else return;
    event.preventDefault();
  };
  return (
    <section class="irviz-graph-pane" aria-label="Loops">
      {scene.reference ? (
        <div class="irviz-graph-head">
          <ChangeBar state={state} />
        </div>
      ) : null}
      {loops.error ? <p class="irviz-nests-error">{loops.error}</p> : null}
      <div
        class={isOutdated ? "irviz-nests irviz-outdated" : "irviz-nests"}
        role="application"
        aria-roledescription="loops"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: an application takes keys
        tabIndex={0}
        aria-label={`loops of ${scene.function}`}
        onKeyDown={press}
        onClick={(event) => {
          const row = (event.target as Element).closest(".row[data-node]") ?? undefined;
          select(row, event.ctrlKey || event.metaKey || event.shiftKey);
          if (row?.hasAttribute("data-loop")) state.isInspectorOpen.value = true;
        }}
      >
        <div
          class="irviz-nests-captions"
          style={scene.reference ? { gridTemplateColumns: `${loops.after * scale}px 1fr` } : {}}
        >
          {scene.reference ? <Caption scene={scene} side="reference" /> : null}
          <Caption scene={scene} side="current" />
        </div>
        <div ref={body} />
      </div>
    </section>
  );
}

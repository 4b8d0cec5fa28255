// The loops of a PrimFunc: its nest as a listing, or the nests of two stages that are compared.

import { useSignalEffect } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { useAwaitedStage } from "./awaited_stage";
import { ChangeBar } from "./change_bar";
import { Caption } from "./graph_pane";
import { readSvg } from "./markup";
import { LARGE_TYPE } from "./picture_view";
import type { Loops, Side } from "./schema";
import type { State } from "./state";

const TYPE = 14 / 11; // as much larger than in a figure

const STEPS: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 };

const sideOf = (row: Element): Side => (row.classList.contains("before") ? "reference" : "current");

export function LoopsPane({ state, loops }: { state: State; loops: Loops }) {
  const body = useRef<HTMLDivElement>(null);
  const scene = state.scene.value;
  const scale = TYPE * (state.isLarge.value ? LARGE_TYPE : 1);
  const isOutdated = useAwaitedStage(state) !== undefined;

  useLayoutEffect(() => {
    if (!loops.svg) return body.current?.replaceChildren();
    const picture = readSvg(loops.svg);
    const { width, height } = picture.viewBox.baseVal;
    picture.setAttribute("width", `${width * scale}`);
    picture.setAttribute("height", `${height * scale}`);
    body.current?.replaceChildren(picture);
    markSelected();
  }, [loops.svg, scale]);
  useLayoutEffect(() => {
    state.change.value = -1;
  }, [scene.key]);

  const rows = () => [...(body.current?.querySelectorAll(".row[data-node]") ?? [])];
  const rowsOf = (node: string, side: Side) =>
    rows().filter((row) => row.getAttribute("data-node") === node && sideOf(row) === side);
  const markSelected = () => {
    const { node, side } = state.selection.value;
    const chosen = new Set(node ? rowsOf(node, side) : []);
    for (const row of rows()) row.classList.toggle("irviz-chosen", chosen.has(row));
  };
  useSignalEffect(markSelected);
  useSignalEffect(() => {
    const change = state.scene.peek().changes[state.change.value];
    const side = change?.current.length ? "current" : "reference";
    const [first] = rowsOf(change?.[side][0] ?? "", side);
    first?.scrollIntoView({ block: "center", inline: "nearest" });
  });

  const select = (row: Element | undefined) => {
    const node = row?.getAttribute("data-node");
    if (row && node) state.select(node, sideOf(row));
  };
  /** Select the node of the next row that has another one. */
  const step = (by: number) => {
    const { node, side } = state.selection.peek();
    const every = rows().filter((row) => row.getAttribute("data-node") && sideOf(row) === side);
    const ids = [...new Set(every.map((row) => row.getAttribute("data-node") ?? ""))];
    const next = ids[Math.min(Math.max(ids.indexOf(node) + by, 0), ids.length - 1)];
    if (next === undefined) return;
    state.select(next, side);
    rowsOf(next, side)[0]?.scrollIntoView({ block: "nearest", inline: "nearest" });
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
        onKeyDown={(event) => {
          const by = STEPS[event.key];
          if (!by || event.altKey || event.ctrlKey || event.metaKey) return;
          event.preventDefault();
          step(by);
        }}
        onClick={({ target }) =>
          select((target as Element).closest(".row[data-node]") ?? undefined)
        }
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

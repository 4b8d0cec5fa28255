// The list of stages: the tree of stages, and the functions of the module.

import { type Signal, useComputed, useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { SIDES, SideMark } from "../controls/before_after_badge";
import { Button } from "../controls/button";
import { Icon } from "../controls/icons";
import { asksForMenu, openContextMenu } from "../controls/menu";
import type { Side, StageRow } from "../schema";
import type { State } from "../state";
import { canDrop, checkout, compareWith, stageMenu, stepStage, visit } from "./stage_actions";
import {
  type Guide,
  guidesOf,
  type HeadingItem,
  headingsAround,
  type Item,
  neighbour,
  type StageItem,
  stageListItems,
} from "./stage_list_rows";

/** The line that the keyboard is at, and the headings that are folded. */
interface Tree {
  at: Signal<string>;
  folded: Signal<ReadonlySet<string>>;
}

function Guides({ guides }: { guides: readonly Guide[] }) {
  return (
    <span class="irviz-guides" aria-hidden="true">
      {guides.map((guide, column) => (
        <i key={column} class={`irviz-guide-${guide}`} />
      ))}
    </span>
  );
}

function NameField({ state, row }: { state: State; row: StageRow }) {
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    field.current?.focus();
    field.current?.select();
  }, []);
  const end = (isMeant: boolean, isByKey: boolean) => {
    if (state.renamed.peek() !== row.id) return;
    const label = field.current?.value.trim() ?? "";
    const line = field.current?.closest<HTMLElement>("[data-stage]");
    if (isByKey) line?.focus({ preventScroll: true });
    state.renamed.value = "";
    if (isMeant && label && label !== row.label) {
      state.ask({ action: "Rename", stage: row.id, label });
    }
  };
  return (
    <input
      ref={field}
      class="irviz-rename"
      aria-label={`Label of stage ${row.id}`}
      defaultValue={row.label}
      onClick={(event) => event.stopPropagation()}
      onBlur={() => end(true, false)}
      onKeyDown={(event) => {
        event.stopPropagation();
        if (event.key === "Enter" || event.key === "Escape") end(event.key === "Enter", true);
      }}
    />
  );
}

function Pin({ state, row, side }: { state: State; row: StageRow; side: Side }) {
  const isReference = state.scene.value.reference?.stage === row.id;
  const isPinned = side === "reference" ? isReference : row.isShown && state.isComparing.value;
  const does = side === "reference" ? "Compare with this stage" : "Show this stage";
  const { letter, when } = SIDES[side];
  return (
    // no tab stop: the tree is one, and its menu has the same
    <button
      type="button"
      tabIndex={-1}
      class="irviz-pin"
      title={isPinned ? `${letter}, ${when}` : `${does}: ${letter}, ${when}`}
      aria-hidden="true"
      data-pinned={isPinned ? "" : undefined}
      onClick={(event) => {
        event.stopPropagation();
        if (side === "reference") compareWith(state, isReference ? "" : row.id);
        else checkout(state, row.id);
      }}
    >
      <SideMark side={side} />
    </button>
  );
}

const MANY = 1000; // changes, for which the bar is full

/** How long the bar of a number of changes is: each ten times as many make it longer alike. */
const shareOf = (changes: number) => Math.min(Math.log(changes + 1) / Math.log(MANY), 1);

interface LineProps<Kind> {
  state: State;
  tree: Tree;
  item: Kind;
  guides: readonly Guide[];
}

function StageLine({ state, tree, item, guides }: LineProps<StageItem>) {
  const row = item.stage;
  const origin = row.parent ? `\nmade from stage ${row.parent}` : "";
  const isAsked = state.asked.value === row.id;
  const { reference } = state.scene.value;
  const side = reference?.stage === row.id ? "reference" : "current";
  const isCompared = reference !== null && (side === "reference" || row.isShown);
  const kinds = [
    isAsked ? "irviz-asked" : "",
    isCompared ? "irviz-compared" : "",
    row.isSame ? "irviz-same" : "",
    row.parent ? "" : "irviz-root",
  ];
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the tree has the keys
    <div
      role="treeitem"
      class={`irviz-stage ${kinds.join(" ")}`}
      aria-level={item.depth + 1}
      aria-selected={row.isShown}
      aria-description={
        isCompared ? `compared: ${SIDES[side].letter}, ${SIDES[side].when}` : undefined
      }
      tabIndex={tree.at.value === item.key ? 0 : -1}
      data-key={item.key}
      data-stage={row.id}
      title={row.title + origin}
      onClick={() => {
        tree.at.value = item.key;
        visit(state, row.id);
      }}
      onDblClick={() => {
        if (state.can("Rename")) state.renamed.value = row.id;
      }}
      onContextMenu={(event) => {
        openContextMenu(state, event, `Stage ${row.id}`, stageMenu(state, row));
      }}
    >
      <Guides guides={guides} />
      <span class="irviz-stage-id">{row.id}</span>
      {state.renamed.value === row.id ? (
        <NameField state={state} row={row} />
      ) : (
        <span class="irviz-stage-label">{row.label}</span>
      )}
      <span class="irviz-stage-end">
        {row.changes > 0 && (
          <span
            class="irviz-delta"
            title={`${row.changes} changes to the stage before`}
            style={{ "--share": shareOf(row.changes) }}
          >
            {row.changes}
          </span>
        )}
        {row.speed && (
          <span
            class="irviz-stage-speed"
            title={`${row.speed} as fast as before the schedule`}
            style={{ "--share": row.share }}
          >
            {row.speed}
          </span>
        )}
        {row.time && <span class="irviz-stage-time">{row.time}</span>}
        {row.verdictKind && (
          <span class={`irviz-stage-verdict irviz-${row.verdictKind}`}>
            <span aria-hidden="true">{row.verdict.split(" ")[0]}</span>
            <span class="irviz-canvas-live">{row.verdict}</span>
          </span>
        )}
        <Pin state={state} row={row} side="reference" />
        <Pin state={state} row={row} side="current" />
      </span>
    </div>
  );
}

function HeadingLine({ tree, item, guides }: LineProps<HeadingItem>) {
  const fold = () => {
    const next = new Set(tree.folded.peek());
    if (!next.delete(item.key)) next.add(item.key);
    tree.folded.value = next;
    tree.at.value = item.key;
  };
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the tree has the keys
    <div
      role="treeitem"
      class="irviz-stage-heading"
      aria-level={item.depth + 1}
      aria-expanded={!item.isFolded}
      aria-selected={false}
      tabIndex={tree.at.value === item.key ? 0 : -1}
      data-key={item.key}
      title={`${item.name}: ${item.isFolded ? "show" : "hide"} the stages that it made`}
      onClick={fold}
    >
      <Guides guides={guides} />
      <Icon name="chevron" />
      <span class="irviz-stage-label">{item.name}</span>
      {item.isFolded && <span class="irviz-delta">{item.count}</span>}
    </div>
  );
}

interface StageTreeProps {
  state: State;
  words: Signal<string>;
  /** Goes to the first or the last stage that is listed. */
  toEnd: { current: (end: 0 | -1) => void };
}
function StageTree({ state, words, toEnd }: StageTreeProps) {
  const list = useRef<HTMLDivElement>(null);
  const tree: Tree = { at: useSignal(""), folded: useSignal<ReadonlySet<string>>(new Set()) };
  const items = useComputed(() =>
    stageListItems(state.rows.value, {
      hidesSame: state.hidesSame.value,
      words: words.value,
      folded: tree.folded.value,
      reference: state.scene.value.reference?.stage,
    }),
  );
  const shown = state.current.value?.id ?? "";

  useLayoutEffect(() => {
    const around = new Set(headingsAround(state.rows.peek(), shown));
    const kept = [...tree.folded.peek()].filter((key) => !around.has(key)); // it is seen
    if (kept.length < tree.folded.peek().size) tree.folded.value = new Set(kept);
    tree.at.value = shown;
    const root = list.current?.getRootNode() as Document | ShadowRoot | undefined;
    const line = list.current?.querySelector<HTMLElement>("[aria-selected=true]");
    // a label that is edited keeps the focus
    const active = root?.activeElement ?? null;
    const isLine = active?.role === "treeitem" && list.current?.contains(active);
    if (isLine) line?.focus({ preventScroll: true });
  }, [shown]);
  useEffect(() => {
    const show = () => {
      // the list only: scrollIntoView would scroll the notebook
      const box = list.current;
      const reference = state.scene.peek().reference?.stage ?? "";
      for (const id of [reference, shown]) {
        const line = box?.querySelector(`[data-stage="${CSS.escape(id)}"]`);
        if (!box || !line) continue;
        const [outer, inner] = [box.getBoundingClientRect(), line.getBoundingClientRect()];
        if (inner.top < outer.top) box.scrollTop -= outer.top - inner.top;
        if (inner.bottom > outer.bottom) box.scrollTop += inner.bottom - outer.bottom;
        if (inner.left < outer.left) box.scrollLeft -= outer.left - inner.left + 32;
        if (inner.right > outer.right) box.scrollLeft += inner.right - outer.right + 32;
      }
    };
    // when all is there that this frame shows: the picture of the stage would be laid out twice
    const frame = requestAnimationFrame(show);
    return () => cancelAnimationFrame(frame);
  }, [shown, state.scene.value.reference?.stage, state.width.value]); // marks make lines longer

  const goTo = (item: Item | undefined) => {
    if (!item) return;
    tree.at.value = item.key;
    const line = [...(list.current?.children ?? [])].find(
      (one) => one instanceof HTMLElement && one.dataset.key === item.key,
    );
    if (line instanceof HTMLElement) line.focus({ preventScroll: true });
    if ("stage" in item) visit(state, item.key);
  };
  toEnd.current = (end) =>
    goTo(
      items
        .peek()
        .filter((item) => "stage" in item)
        .at(end),
    );
  const fold = (item: HeadingItem, isFolded: boolean) => {
    const next = new Set(tree.folded.peek());
    if (isFolded) next.add(item.key);
    else next.delete(item.key);
    tree.folded.value = next;
  };
  const press = (event: KeyboardEvent) => {
    const all = items.peek();
    const item = all.find(({ key }) => key === tree.at.peek());
    const row = item && "stage" in item ? item.stage : undefined;
    const isPlain = !event.altKey && !event.ctrlKey && !event.metaKey;
    if (asksForMenu(event) && row) {
      openContextMenu(state, event, `Stage ${row.id}`, stageMenu(state, row));
    } else if (!isPlain) return;
    else if (event.key === "ArrowDown") goTo(neighbour(all, tree.at.peek(), 1));
    else if (event.key === "ArrowUp") goTo(neighbour(all, tree.at.peek(), -1));
    else if (event.key === "Home") goTo(all[0]);
    else if (event.key === "End") goTo(all.at(-1));
    else if (event.key === "ArrowRight" && item && "name" in item) fold(item, false);
    else if (event.key === "ArrowLeft" && item && "name" in item) fold(item, true);
    else if (event.key === "Enter" && item && "name" in item) fold(item, !item.isFolded);
    else if (event.key === "ArrowRight") stepStage(state, 1);
    else if (event.key === "ArrowLeft") stepStage(state, -1);
    else if (event.key === "F2" && row && state.can("Rename")) state.renamed.value = row.id;
    else if (event.key === "Delete" && row && canDrop(state, row)) {
      state.ask({ action: "Drop", stage: row.id });
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };

  const all = items.value;
  if (!all.some(({ key }) => key === tree.at.value)) tree.at.value = all[0]?.key ?? "";
  const guides = guidesOf(all);
  return (
    <div ref={list} class="irviz-stage-list" role="tree" aria-label="Stages" onKeyDown={press}>
      {all.map((item, index) => {
        const own = guides[index] ?? [];
        const { key } = item;
        if ("stage" in item) {
          return <StageLine key={key} state={state} tree={tree} item={item} guides={own} />;
        }
        return <HeadingLine key={key} state={state} tree={tree} item={item} guides={own} />;
      })}
    </div>
  );
}

function Functions({ state }: { state: State }) {
  const rows = state.functions.value;
  const isLost = !rows.some(({ name }) => name === state.scene.value.function);
  if (rows.length < (isLost ? 1 : 2)) return null;
  return (
    <nav class="irviz-functions" aria-label="Functions">
      <h3>Functions</h3>
      <ul>
        {rows.map(({ name, kind, words, changes }) => (
          <li key={name}>
            <button
              type="button"
              aria-current={name === state.scene.value.function}
              title={[name, kind, words].filter(Boolean).join(", ")}
              disabled={!state.can("Focus")}
              onClick={() => state.ask({ action: "Focus", function: name })}
            >
              <span>{name}</span>
              <small title={changes > 0 ? `${changes} changes to the stage before` : undefined}>
                {changes > 0 ? `Δ ${changes}` : kind}
              </small>
            </button>
          </li>
        ))}
      </ul>
    </nav>
  );
}

export function StageList({ state }: { state: State }) {
  const words = useSignal("");
  const toEnd = useRef<(end: 0 | -1) => void>(() => {});
  const press = (event: KeyboardEvent) => {
    if (event.key === "Enter" || event.key === "ArrowDown") toEnd.current(0);
    else if (event.key === "ArrowUp") toEnd.current(-1);
    else if (event.key === "Escape" && words.peek()) words.value = "";
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const rows = state.rows.value;
  const row = state.current.value;
  const hasSame = rows.some(({ isSame }) => isSame);
  const isComparing = state.isComparing.value;
  const isShut = useSignal(false); // else it would lie over the graph that just came, at the pointer
  const reference = state.scene.value.reference?.stage;
  useLayoutEffect(() => {
    isShut.value = isComparing;
  }, [isComparing, row?.id, reference]);
  return (
    <section
      class="irviz-rail"
      aria-label="Stages and functions"
      data-shut={isShut.value ? "" : undefined}
      onPointerEnter={() => {
        isShut.value = false;
      }}
    >
      <div class="irviz-rail-head">
        <h2>Stages</h2>
        {state.times.value.length > 0 && (
          <Button
            icon="times"
            title="Where the time of the passes went (t)"
            onPress={() => {
              state.areTimesOpen.value = true;
            }}
          />
        )}
        {state.host.isLive && (
          <>
            <Button
              icon="undo"
              title="Undo"
              isDisabled={!state.canUndo.value || !state.can("Undo")}
              onPress={() => state.ask({ action: "Undo" })}
            />
            <Button
              icon="redo"
              title="Redo"
              isDisabled={!state.canRedo.value || !state.can("Redo")}
              onPress={() => state.ask({ action: "Redo" })}
            />
            <Button
              icon="rename"
              title="Rename the shown stage (F2)"
              isDisabled={!row || !state.can("Rename")}
              onPress={() => {
                state.renamed.value = row?.id ?? "";
              }}
            />
            <Button
              icon="drop"
              title="Drop the shown stage and what was made from it (Delete)"
              isDisabled={!row || !canDrop(state, row)}
              onPress={() => row && state.ask({ action: "Drop", stage: row.id })}
            />
          </>
        )}
      </div>
      {(rows.length > 7 || words.value) && (
        <div class="irviz-rail-filter">
          <input
            type="search"
            class="irviz-field"
            placeholder="Filter"
            aria-label="Filter stages"
            value={words}
            title="Find stages: Enter goes to the first, the arrows through all of them"
            onInput={(event) => {
              words.value = event.currentTarget.value;
            }}
            onKeyDown={press}
          />
        </div>
      )}
      {hasSame && (
        <label class="irviz-check" title="Leave out passes that changed nothing">
          <input
            type="checkbox"
            checked={state.hidesSame.value}
            onChange={(event) => {
              state.hidesSame.value = event.currentTarget.checked;
            }}
          />
          hide unchanged passes
        </label>
      )}
      <StageTree state={state} words={words} toEnd={toEnd} />
      <Functions state={state} />
    </section>
  );
}

// The search field, and the nodes and groups that were found.

import { useSignal } from "@preact/signals";
import { useEffect, useId, useLayoutEffect, useRef } from "preact/hooks";
import { Icon } from "../controls/icons";
import type { State } from "../state";

const EDGE = 8; // px between the list and the edge of the viewer
const PAUSE = 120; // ms without a key, after which is searched

export function Search({ state }: { state: State }) {
  const text = state.query;
  const isOpen = useSignal(false);
  const at = useSignal(0);
  const chosen = useSignal(-1); // the place of what was gone to last
  const field = useRef<HTMLInputElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const id = useId(); // several viewers may stand in one page
  const found = state.found.value;
  const words = text.value.trim();
  const isAnswered = found.words.trim() === words;
  const nodes = isAnswered ? found.nodes : [];
  const isShown = isOpen.value && words !== "";

  useEffect(() => {
    const timer = setTimeout(() => {
      if (state.search.peek() !== text.value) state.set("search", text.value);
    }, PAUSE);
    return () => clearTimeout(timer);
  }, [text.value]);
  useEffect(() => {
    at.value = 0;
    chosen.value = -1;
  }, [found.words, found.count]);
  useEffect(() => {
    const [rows, option] = [list.current, list.current?.children[at.value]];
    if (!rows || !(option instanceof HTMLElement)) return;
    rows.scrollTop = Math.min(rows.scrollTop, option.offsetTop);
    const below = option.offsetTop + option.offsetHeight - rows.clientHeight;
    rows.scrollTop = Math.max(rows.scrollTop, below);
  }, [at.value]);

  useLayoutEffect(() => {
    const viewer = box.current?.closest(".irviz-viewer");
    if (!isShown || !box.current || !viewer) return;
    box.current.style.marginLeft = "";
    const beyond = box.current.getBoundingClientRect().right - viewer.getBoundingClientRect().right;
    if (beyond > -EDGE) box.current.style.marginLeft = `${-beyond - EDGE}px`;
  }, [isShown, found, state.width.value]);

  /** Let the keys be those of the graph. */
  const leave = () => {
    const viewer = field.current?.closest<HTMLElement>(".irviz-viewer");
    const next = viewer?.querySelector<HTMLElement>(".irviz-canvas") ?? viewer;
    next?.focus({ preventScroll: true });
  };
  const choose = (place: number) => {
    const next = nodes[place];
    if (!next) return;
    isOpen.value = false;
    chosen.value = place;
    at.value = (place + 1) % nodes.length; // the next time Enter leads on
    state.reveal(next.function, next.node);
  };
  const goBack = () => choose((Math.max(chosen.value, 0) - 1 + nodes.length) % nodes.length);
  /** Mark an entry; a list that is closed is only opened. */
  const mark = (by: 1 | -1) => {
    if (isOpen.value) at.value = Math.max(0, Math.min(at.value + by, nodes.length - 1));
    isOpen.value = true;
  };
  const press = (event: KeyboardEvent) => {
    event.stopPropagation();
    if (event.key === "ArrowDown") mark(1);
    else if (event.key === "ArrowUp") mark(-1);
    else if (event.key === "Enter") event.shiftKey ? goBack() : choose(at.value);
    else if (event.key === "Escape" && isShown) isOpen.value = false;
    else if (event.key === "Escape") {
      text.value = "";
      leave();
    } else return;
    event.preventDefault();
  };
  const place = chosen.value >= 0 && nodes.length ? `${chosen.value + 1}/${nodes.length}` : "";
  const more = found.count > nodes.length ? `, the first ${nodes.length} are listed` : "";
  const count = `${found.count} found${more}`;
  return (
    // biome-ignore lint/a11y/useSemanticElements: <search> is new
    <div class="irviz-search" role="search">
      <Icon name="search" />
      <input
        ref={field}
        class="irviz-field"
        type="search"
        role="combobox"
        placeholder="Find a node  /"
        title="Find a name, operator, layer, attribute or shape (/); Enter goes on, Shift+Enter back"
        aria-label="Find a node"
        aria-expanded={isShown}
        aria-controls={id}
        aria-autocomplete="list"
        aria-activedescendant={isShown && nodes.length ? `${id}-${at.value}` : undefined}
        autoComplete="off"
        spellcheck={false}
        value={text}
        onInput={(event) => {
          text.value = event.currentTarget.value;
          isOpen.value = true;
        }}
        onFocus={() => {
          isOpen.value = true;
        }}
        onBlur={() => {
          isOpen.value = false;
        }}
        onKeyDown={press}
      />
      {place && !isShown ? <small class="irviz-search-place">{place}</small> : null}
      <div ref={box} class="irviz-found" hidden={!isShown}>
        <div ref={list} id={id} role="listbox" aria-label="Nodes that were found">
          {nodes.map((one, index) => (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the keys
            // biome-ignore lint/a11y/useFocusableInteractive: the field keeps the focus
            <div
              key={`${one.function}/${one.node}`}
              id={`${id}-${index}`}
              role="option"
              aria-selected={index === at.value}
              title={`${one.line} ${one.rest}`}
              onPointerDown={(event) => event.preventDefault()} // else the field loses the focus
              onClick={() => {
                choose(index);
                leave();
              }}
            >
              <span>
                {one.line} <i>{one.rest}</i>
              </span>
              {one.function !== state.scene.value.function && <small>{one.function}</small>}
            </div>
          ))}
        </div>
        <p role="status">{isAnswered ? [count, ...found.errors].join("; ") : "searching…"}</p>
      </div>
    </div>
  );
}

// Menus: of buttons, and of what can be done with a node or a stage.

import { useSignalEffect } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { nodeMenu } from "../graph/node_actions";
import type { Menu, MenuItem, State } from "../state";

const MARGIN = 4; // px to the edges of the window

/** Open a menu below the button that was pressed. */
export function openMenuBelow(state: State, event: Event, label: string, items: MenuItem[]) {
  const { left, bottom } = (event.currentTarget as Element).getBoundingClientRect();
  state.openMenu.value = { label, x: left, y: bottom + 2, items };
}

/** Open the menu of what was clicked with the right button, or by the menu key. */
export function openContextMenu(state: State, event: Event, label: string, items: MenuItem[]) {
  if (!items.length) return;
  event.preventDefault();
  event.stopPropagation();
  const { left, top, height } = (event.target as Element).getBoundingClientRect();
  const isMouse = event instanceof MouseEvent && event.clientX > 0;
  const [x, y] = isMouse ? [event.clientX, event.clientY] : [left + 12, top + height];
  state.openMenu.value = { label, x, y, items };
}

/** Tell whether a key asks for the menu of what has the focus. */
export const asksForMenu = ({ key, shiftKey }: KeyboardEvent) =>
  key === "ContextMenu" || (shiftKey && key === "F10");

/** Return which item follows item `at` for a key, undefined where the key leads nowhere. */
export function itemAfter(labels: readonly string[], at: number, key: string): number | undefined {
  const last = labels.length - 1;
  if (key === "ArrowDown") return at >= last ? 0 : at + 1;
  if (key === "ArrowUp") return at <= 0 ? last : at - 1;
  if (key === "Home") return 0;
  if (key === "End") return last;
  if (key.length !== 1) return undefined;
  const words = labels.map((label) => label.toLowerCase());
  for (let step = 1; step <= labels.length; step += 1) {
    const next = (at + step) % labels.length;
    if (words[next]?.startsWith(key.toLowerCase())) return next;
  }
  return undefined;
}

const roleOf = ({ isChecked }: MenuItem) =>
  isChecked === undefined
    ? { role: "menuitem" as const }
    : { role: "menuitemradio" as const, "aria-checked": isChecked };

function OpenMenu({ menu, state }: { menu: Menu; state: State }) {
  const list = useRef<HTMLDivElement>(null);
  const entries = () =>
    [...(list.current?.querySelectorAll<HTMLElement>("[role^=menuitem]") ?? [])].filter(
      (entry) => !entry.hasAttribute("disabled"),
    );
  useLayoutEffect(() => {
    const element = list.current;
    if (!element) return;
    const before = (element.getRootNode() as Document | ShadowRoot).activeElement;
    element.showPopover();
    const { width, height } = element.getBoundingClientRect();
    const x = Math.min(menu.x, innerWidth - width - MARGIN);
    const y = menu.y + height > innerHeight - MARGIN ? innerHeight - height - MARGIN : menu.y;
    element.style.left = `${Math.max(x, MARGIN)}px`;
    element.style.top = `${Math.max(y, MARGIN)}px`;
    const all = entries();
    (all.find((entry) => entry.ariaChecked === "true") ?? all[0])?.focus();
    return () => {
      const root = element.getRootNode() as Document | ShadowRoot;
      const isInside = !root.activeElement || element.contains(root.activeElement);
      if (isInside && before instanceof HTMLElement) before.focus({ preventScroll: true });
    };
  }, [menu]);
  const close = () => {
    if (state.openMenu.peek() === menu) state.openMenu.value = null;
  };
  const press = (event: KeyboardEvent) => {
    event.stopPropagation();
    if (event.key === "Tab") close();
    const all = entries();
    const labels = all.map((entry) => entry.dataset.label ?? "");
    const root = list.current?.getRootNode() as Document | ShadowRoot;
    const next = itemAfter(labels, all.indexOf(root.activeElement as HTMLElement), event.key);
    if (next === undefined || event.key === " ") return;
    event.preventDefault();
    all[next]?.focus();
  };
  return (
    <div
      ref={list}
      class="irviz-menu"
      role="menu"
      tabIndex={-1}
      aria-label={menu.label}
      popover="auto"
      onKeyDown={press}
      onToggle={(event) => {
        if (event.newState === "closed") close();
      }}
    >
      {menu.items.map((item) => (
        <button
          key={item.label}
          type="button"
          {...roleOf(item)}
          class={item.isSeparate ? "irviz-menu-item irviz-separate" : "irviz-menu-item"}
          data-label={item.label}
          tabIndex={-1}
          disabled={item.isDisabled}
          onClick={() => {
            close();
            item.run();
          }}
        >
          <span>{item.label}</span>
          {item.hint && <small>{item.hint}</small>}
        </button>
      ))}
    </div>
  );
}

/** The place of the menu that is open, if one is. */
export function MenuLayer({ state }: { state: State }) {
  const layer = useRef<HTMLDivElement>(null);
  useSignalEffect(() => {
    const asked = state.menu.value;
    if (!asked || !layer.current) return;
    const { node, side, x, y } = asked;
    const items = nodeMenu(state, node, side, layer.current);
    state.menu.value = null;
    if (items.length) state.openMenu.value = { label: `Node ${node}`, x, y, items };
  });
  const menu = state.openMenu.value;
  return <div ref={layer}>{menu && <OpenMenu menu={menu} state={state} />}</div>;
}

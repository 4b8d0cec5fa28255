import assert from "node:assert/strict";
import test from "node:test";
import { itemAfter } from "../src/controls/menu";
import { sizeAfter } from "../src/controls/splitter";
import { KEYS, nameOf, pressKey } from "../src/page/keys";
import { RANGES } from "../src/page/pane_sizes";
import type { State } from "../src/state";

test("each key stands for one thing", () => {
  const all = KEYS.flatMap(({ keys }) => keys);
  assert.equal(new Set(all).size, all.length);
  const none = { altKey: false, shiftKey: false, ctrlKey: false, metaKey: false };
  assert.equal(nameOf({ ...none, key: "ArrowLeft", altKey: true }), "Alt+ArrowLeft");
  assert.equal(nameOf({ ...none, key: "?", shiftKey: true }), "?");
  const skipping = { ...none, key: "ArrowLeft", altKey: true, shiftKey: true };
  assert.equal(nameOf(skipping), "Alt+Shift+ArrowLeft");
  assert.equal(nameOf({ ...none, key: "z", metaKey: true }), "Ctrl+z");
  assert.equal(nameOf({ ...none, key: "Z", ctrlKey: true, shiftKey: true }), "Ctrl+Shift+z");
});

test("keys go round in a menu, and a letter leads to the next item that begins with it", () => {
  const labels = ["Open", "Nearby", "Path from here", "Path to here"];
  assert.equal(itemAfter(labels, 3, "ArrowDown"), 0);
  assert.equal(itemAfter(labels, 0, "ArrowUp"), 3);
  assert.equal(itemAfter(labels, -1, "ArrowDown"), 0);
  assert.equal(itemAfter(labels, 2, "p"), 3);
  assert.equal(itemAfter(labels, 3, "p"), 2);
  assert.equal(itemAfter(labels, 0, "x"), undefined);
  assert.equal(itemAfter(labels, 0, "Escape"), undefined);
});

test("a splitter is moved by keys, within its range", () => {
  const range = RANGES.inspector;
  assert.equal(sizeAfter(300, "ArrowLeft", true, -1, range), 324);
  assert.equal(sizeAfter(300, "ArrowRight", true, -1, range), range.least);
  assert.equal(sizeAfter(300, "End", true, -1, range), range.most);
  assert.equal(sizeAfter(300, "Enter", true, -1, range), range.usual);
  assert.equal(sizeAfter(300, "ArrowUp", true, -1, range), undefined);
  assert.equal(sizeAfter(500, "ArrowDown", false, 1, RANGES.height), 524);
});

test("Escape closes one thing a time, the innermost first", () => {
  const cell = <Value>(value: Value) => ({
    value,
    peek() {
      return this.value;
    },
  });
  const asked: unknown[] = [];
  const state = {
    openMenu: cell<object | null>({}),
    isDrawer: cell(true),
    isInspectorOpen: cell(true),
    isComparing: cell(true),
    current: cell({ id: "1" }),
    selection: cell({ node: "a" }),
    query: cell("relu"),
    isFull: cell(true),
    can: () => true,
    ask(message: unknown) {
      asked.push(message);
      this.isComparing.value = false;
    },
    select(node: string) {
      this.selection.value = { node };
    },
  };
  const root = { focus: () => {} } as unknown as HTMLElement;
  globalThis.Element ??= class {} as never;
  globalThis.HTMLElement ??= class {} as never;
  const event = {
    ...{ key: "Escape", altKey: false, ctrlKey: false, metaKey: false, defaultPrevented: false },
    ...{ stopPropagation() {}, preventDefault() {}, composedPath: () => [] },
  } as unknown as KeyboardEvent;
  const open = () => [
    state.openMenu.value !== null,
    state.isInspectorOpen.value,
    state.isComparing.value,
    state.selection.value.node !== "",
    state.query.value !== "",
    state.isFull.value,
  ];
  for (let closed = 1; closed <= 6; closed += 1) {
    pressKey(state as unknown as State, root, event);
    assert.deepEqual(
      open(),
      [1, 2, 3, 4, 5, 6].map((one) => one > closed),
    );
  }
  assert.deepEqual(asked, [{ action: "Compare", reference: "" }]);
});

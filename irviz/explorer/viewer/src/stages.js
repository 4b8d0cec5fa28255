// The tree of stages. Python decides what there is; the page shows it, folds it and asks.

import { readHtml } from "./markup.js";
import { guidesOf, headingsAround, neighbour, refusal, treeItems } from "./stage_tree.js";
import { watch } from "./traits.js";

/** @import { RenderProps, StageMessage, StageRow, StageTraits } from "./messages" */
/** @import { HeadingItem, Item, StageItem } from "./stage_tree.js" */

const INDENT = 12; // px
const MOST_INDENT = 60; // px for all columns: deeper trees have narrower ones

/** @type {<Tag extends keyof HTMLElementTagNameMap>(tag: Tag, className: string, text?: string) =>
 *   HTMLElementTagNameMap[Tag]} */
function element(tag, className, text = "") {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

/** @type {(className: string, text: string, label: string, act: () => void) => HTMLButtonElement} */
function button(className, text, label, act) {
  const made = element("button", className, text);
  made.type = "button";
  made.title = label;
  made.dataset.lmSuppressShortcuts = "true"; // else its keys are JupyterLab's too
  made.addEventListener("click", act);
  return made;
}

/** @type {(text: string, label: string, act: () => void) => HTMLButtonElement} */
function tool(text, label, act) {
  const made = button("irviz-tool", text, label, act);
  made.ariaLabel = label;
  return made;
}

/** @type {(props: RenderProps<StageTraits, StageMessage>) => () => void} */
function render({ model, el }) {
  let hidesSame = false;
  /** @type {Set<string>} */
  const folded = new Set(); // keys of headings
  let current = ""; // the key of the line that the keyboard is at
  let shownId = "";
  /** @type {HTMLElement | null} */
  let edited = null; // the line whose label is edited: it stays, or the field would lose the focus
  /** @type {(message: StageMessage) => void} */
  const ask = (message) => model.send(message);
  const shown = () => model.get("rows").find((row) => row.isShown);
  const items = () => treeItems(model.get("rows"), hidesSame, folded);

  const undo = tool("↶", "Undo", () => ask({ action: "Undo" }));
  const redo = tool("↷", "Redo", () => ask({ action: "Redo" }));
  const rename = tool("✎", "Rename the shown stage", () => edit(shown()));
  const drop = tool("✕", "Drop the shown stage and what was made from it", () => {
    const row = shown();
    if (row) ask({ action: "Drop", stage: row.id });
  });
  const tools = element("div", "irviz-tools");
  tools.append(undo, redo, rename, drop);
  const skip = element("label", "irviz-skip");
  const box = element("input", "");
  box.type = "checkbox";
  box.dataset.lmSuppressShortcuts = "true";
  box.addEventListener("change", () => {
    hidesSame = box.checked;
    draw();
  });
  skip.append(box, " skip what changed nothing");
  const list = element("div", "irviz-stage-list");
  list.role = "tree";
  list.ariaLabel = "stages";
  const hint = "Drop a file here to open it as another first stage.";
  el.replaceChildren(tools, skip, list, element("p", "irviz-drop-hint", hint));

  /** @type {(row: StageRow | undefined) => void} */
  function edit(row) {
    const place = row && list.querySelector(`[data-stage="${CSS.escape(row.id)}"] > button`);
    if (!place) return;
    const field = element("input", "irviz-rename");
    field.value = row.label;
    field.ariaLabel = `label of stage ${row.id}`;
    let isOver = false;
    /** @type {(isMeant: boolean) => void} */
    const end = (isMeant) => {
      if (isOver) return;
      isOver = true;
      edited = null;
      if (isMeant && field.value.trim() && field.value !== row.label) {
        ask({ action: "Rename", stage: row.id, label: field.value });
      }
      draw();
    };
    field.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault(); // else Enter presses the button that has the focus next
      end(event.key === "Enter");
    });
    field.addEventListener("blur", () => end(true));
    edited = place.parentElement;
    place.replaceWith(field);
    field.focus();
    field.select();
  }

  /** @type {(key: string, isFolded: boolean) => void} */
  function fold(key, isFolded) {
    if (isFolded) folded.add(key);
    else folded.delete(key);
    current = key;
    draw();
  }

  /** @type {(item: HeadingItem) => HTMLElement} */
  function headingLine(item) {
    const line = element("div", "irviz-stage-heading");
    const label = item.isFolded ? "Show the stages of this pass" : "Hide the stages of this pass";
    const heading = button("", item.name, label, () => fold(item.key, !item.isFolded));
    heading.ariaExpanded = String(!item.isFolded);
    if (item.isFolded) heading.append(element("span", "irviz-stage-count", ` ${item.count}`));
    line.append(heading);
    return line;
  }

  /** @type {(item: StageItem) => HTMLElement} */
  function stageLine({ stage: row }) {
    const line = element("div", "irviz-stage");
    line.dataset.stage = row.id;
    line.classList.toggle("same", row.isSame);
    line.classList.toggle("root", !row.parent);
    const origin = row.parent && `\nmade from stage ${row.parent}`;
    const choose = () => ask({ action: "Checkout", stage: row.id });
    const stage = button("", `${row.id}  ${row.label}`, row.title + origin, choose);
    stage.ariaSelected = String(row.isShown);
    stage.classList.toggle("mod-primary", row.isShown);
    stage.addEventListener("dblclick", () => edit(row));
    const badge = element("div", "irviz-stage-badge");
    badge.append(readHtml(row.badge));
    line.append(stage, badge);
    return line;
  }

  function draw() {
    const rows = model.get("rows");
    const now = shown()?.id ?? "";
    if (now !== shownId) {
      for (const key of headingsAround(rows, now)) folded.delete(key); // what is shown is seen
      shownId = current = now;
    }
    const all = items();
    const root = /** @type {Document | ShadowRoot} */ (el.getRootNode());
    const hadFocus = list.contains(root.activeElement);
    const at = all.find(({ key }) => key === current) ?? all[0];
    const indent = Math.min(INDENT, MOST_INDENT / Math.max(...all.map(({ depth }) => depth), 1));
    const guides = guidesOf(all);
    const lines = all.map((item, index) => {
      if (edited && "stage" in item && edited.dataset.key === item.key) {
        edited.querySelector(".irviz-stage-badge")?.replaceChildren(readHtml(item.stage.badge));
        return edited;
      }
      const line = "stage" in item ? stageLine(item) : headingLine(item);
      const columns = element("span", "irviz-guides");
      columns.ariaHidden = "true";
      columns.append(...(guides[index] ?? []).map((guide) => element("i", guide)));
      line.prepend(columns);
      line.dataset.key = item.key;
      const target = /** @type {HTMLButtonElement} */ (line.querySelector("button"));
      target.role = "treeitem";
      target.ariaLevel = String(item.depth + 1);
      target.tabIndex = item === at ? 0 : -1;
      return line;
    });
    list.style.setProperty("--indent", `${indent}px`);
    const place = edited ? lines.indexOf(edited) : -1;
    if (edited && place >= 0) {
      for (const line of [...list.children]) if (line !== edited) line.remove();
      edited.before(...lines.slice(0, place));
      edited.after(...lines.slice(place + 1));
    } else list.replaceChildren(...lines);
    skip.style.display = rows.some((row) => row.isSame) ? "" : "none";
    drop.disabled = !now || now === rows[0]?.id;
    const target = list.querySelector("[tabindex='0']");
    if (place >= 0 || !(target instanceof HTMLElement)) return;
    const [inner, outer] = [target.getBoundingClientRect(), list.getBoundingClientRect()];
    // the list only: scrollIntoView would scroll the notebook
    if (inner.top < outer.top) list.scrollTop -= outer.top - inner.top;
    if (inner.bottom > outer.bottom) list.scrollTop += inner.bottom - outer.bottom;
    if (hadFocus) target.focus({ preventScroll: true });
  }

  /** @type {(item: Item | undefined) => void} */
  function goTo(item) {
    if (!item) return;
    current = item.key;
    draw();
    if ("stage" in item && !item.stage.isShown) ask({ action: "Checkout", stage: item.key });
  }

  list.addEventListener("focusin", ({ target }) => {
    const line = target instanceof Element && target.closest("[data-key]");
    if (line) current = line.getAttribute("data-key") ?? "";
  });
  list.addEventListener("keydown", (event) => {
    const all = items();
    const at = all.find(({ key }) => key === current);
    if (event.key === "F2") edit(shown());
    else if (event.key === "ArrowDown") goTo(neighbour(all, current, 1));
    else if (event.key === "ArrowUp") goTo(neighbour(all, current, -1));
    else if (event.key === "ArrowRight" && at && "name" in at) fold(at.key, false);
    else if (event.key === "ArrowLeft" && at && "name" in at) fold(at.key, true);
    else return;
    event.preventDefault();
  });

  /** @type {(event: DragEvent) => DataTransfer | null} */
  const filesOf = ({ dataTransfer }) =>
    dataTransfer?.types.includes("Files") ? dataTransfer : null;
  el.addEventListener("dragover", (event) => {
    if (!filesOf(event)) return;
    event.preventDefault();
    el.classList.add("irviz-dropping");
  });
  el.addEventListener("dragleave", () => el.classList.remove("irviz-dropping"));
  el.addEventListener("drop", async (event) => {
    const dropped = filesOf(event);
    if (!dropped) return;
    event.preventDefault();
    event.stopPropagation();
    el.classList.remove("irviz-dropping");
    const files = [...dropped.files];
    const why = refusal(files);
    if (why) ask({ action: "Say", words: why, is_error: true });
    else
      for (const file of files)
        model.send({ action: "OpenFile", name: file.name }, undefined, [await file.arrayBuffer()]);
  });
  return watch(model, {
    rows: draw,
    undoable: () => {
      undo.disabled = !model.get("undoable");
    },
    redoable: () => {
      redo.disabled = !model.get("redoable");
    },
  });
}

export default { render };

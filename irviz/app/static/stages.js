// The tree of stages. Python decides what there is; the page shows it and asks.

/** Return the ids that a reader can step through: those that changed something, or all. */
export function steps(rows, hidesSame) {
  return rows.filter((row) => !hidesSame || !row.isSame || row.isShown).map((row) => row.id);
}

/** Return the id `by` steps away from the shown one, or null at the end. */
export function neighbour(rows, hidesSame, by) {
  const ids = steps(rows, hidesSame);
  const shown = rows.find((row) => row.isShown);
  const at = ids.indexOf(shown ? shown.id : ids[0]);
  return ids[at + by] ?? null;
}

const INDENT = 12;
const MOST_BYTES = 8 * 2 ** 20; // what a server passes on to the kernel in one message

/** Say why a dropped file cannot be sent to the kernel, or "" when it can. */
export function refusal(files) {
  if (files.length !== 1) return "drop one file at a time";
  if (files[0].size > MOST_BYTES) {
    return `${files[0].name} has more than 8 MB: open it with irviz.explore("${files[0].name}")`;
  }
  return "";
}

/** Return the headings that stand before each row that is kept: of passes that it is inside of. */
export function headed(rows, kept) {
  const found = new Map();
  let open = [];
  for (const row of rows) {
    const isStill = (heading) => heading.depth < row.within - row.headings.length;
    open = [...open.filter(isStill), ...row.headings];
    if (!kept.has(row.id)) continue;
    found.set(row.id, open);
    open = [];
  }
  return found;
}

function element(kind, className, text) {
  const made = document.createElement(kind);
  made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function tool(text, label, act) {
  const button = element("button", "irviz-tool", text);
  button.type = "button";
  button.title = label;
  button.setAttribute("aria-label", label);
  button.addEventListener("click", act);
  return button;
}

function render({ model, el, signal }) {
  let hidesSame = false;
  el.dataset.lmSuppressShortcuts = "true";
  const ask = (content) => model.send(content);
  const shown = () => model.get("rows").find((row) => row.isShown);
  const tools = element("div", "irviz-tools");
  const undo = tool("↶", "Undo", () => ask({ undo: true }));
  const redo = tool("↷", "Redo", () => ask({ redo: true }));
  const rename = tool("✎", "Rename the shown stage", () => edit(shown()));
  const drop = tool("✕", "Drop the shown stage and what was made from it", () => {
    ask({ drop: shown().id });
  });
  const skip = element("label", "irviz-skip");
  const box = element("input", "");
  box.type = "checkbox";
  box.addEventListener("change", () => {
    hidesSame = box.checked;
    draw();
  });
  skip.append(box, " skip what changed nothing");
  tools.append(undo, redo, rename, drop);
  const list = element("div", "irviz-stage-list");
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "stages");
  el.replaceChildren(tools, skip, list);

  function edit(row) {
    const place = row && list.querySelector(`[data-stage="${CSS.escape(row.id)}"] button`);
    if (!place) return;
    const field = element("input", "irviz-rename");
    field.value = row.label;
    field.setAttribute("aria-label", `label of stage ${row.id}`);
    let isOver = false;
    const end = (isMeant) => {
      if (isOver) return;
      isOver = true;
      if (isMeant && field.value.trim() && field.value !== row.label) {
        ask({ rename: row.id, label: field.value });
      }
      draw();
    };
    field.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Enter") end(true);
      if (event.key === "Escape") end(false);
    });
    field.addEventListener("blur", () => end(true));
    place.replaceWith(field);
    field.focus();
    field.select();
  }

  function stageRow(row) {
    const line = element("div", "irviz-stage");
    line.dataset.stage = row.id;
    line.classList.toggle("same", row.isSame);
    line.style.marginLeft = `${Math.min(row.depth, 8) * INDENT}px`;
    const button = element("button", "", `${row.id}  ${row.label}`);
    button.type = "button";
    button.title = row.title;
    button.setAttribute("role", "option");
    button.setAttribute("aria-selected", String(row.isShown));
    button.tabIndex = row.isShown ? 0 : -1;
    button.classList.toggle("mod-primary", row.isShown);
    button.addEventListener("click", () => ask({ choose: row.id }));
    button.addEventListener("dblclick", () => edit(row));
    const badge = element("div", "irviz-stage-badge");
    badge.innerHTML = row.badge; // escaped by Python
    line.append(button, badge);
    return line;
  }

  function draw() {
    const rows = model.get("rows");
    const kept = new Set(steps(rows, hidesSame));
    const hadFocus = list.contains(el.getRootNode().activeElement);
    const parts = [];
    const headings = headed(rows, kept);
    for (const row of rows.filter((one) => kept.has(one.id))) {
      for (const { name, depth } of headings.get(row.id)) {
        const heading = element("div", "irviz-stage-heading", name);
        heading.style.marginLeft = `${Math.min(depth, 8) * INDENT}px`;
        parts.push(heading);
      }
      parts.push(stageRow(row));
    }
    list.replaceChildren(...parts);
    skip.style.display = rows.some((row) => row.isSame) ? "" : "none";
    undo.disabled = !model.get("undoable");
    redo.disabled = !model.get("redoable");
    drop.disabled = !shown() || shown().id === rows[0].id;
    const current = list.querySelector('[aria-selected="true"]');
    if (current) {
      const [inner, outer] = [current.getBoundingClientRect(), list.getBoundingClientRect()];
      // the list only: scrollIntoView would scroll the notebook
      if (inner.top < outer.top) list.scrollTop -= outer.top - inner.top;
      if (inner.bottom > outer.bottom) list.scrollTop += inner.bottom - outer.bottom;
      if (hadFocus) current.focus({ preventScroll: true });
    }
  }

  list.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "F2") edit(shown());
    if (!by) return;
    event.preventDefault();
    const id = neighbour(model.get("rows"), hidesSame, by);
    if (id !== null) ask({ choose: id });
  });
  const accepts = (event) => event.dataTransfer?.types.includes("Files");
  el.addEventListener("dragover", (event) => {
    if (!accepts(event)) return;
    event.preventDefault();
    el.classList.add("irviz-dropping");
  });
  el.addEventListener("dragleave", () => el.classList.remove("irviz-dropping"));
  el.addEventListener("drop", async (event) => {
    if (!accepts(event)) return;
    event.preventDefault();
    event.stopPropagation();
    el.classList.remove("irviz-dropping");
    const files = [...event.dataTransfer.files];
    const why = refusal(files);
    if (why) ask({ refused: why });
    else model.send({ open: files[0].name }, undefined, [await files[0].arrayBuffer()]);
  });
  const hint = element("p", "irviz-drop-hint", "Drop a file here to open it as another beginning.");
  el.append(hint);
  for (const name of ["rows", "undoable", "redoable"]) model.on(`change:${name}`, draw);
  signal?.addEventListener("abort", () => {
    for (const name of ["rows", "undoable", "redoable"]) model.off(`change:${name}`, draw);
  });
  draw();
}

export default { render };

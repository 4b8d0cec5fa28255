// The loop nest: shows the HTML that Python made, lets loops and blocks be chosen, and reports.
// Traits: html; label; chosen (ids in the order of the clicks); marked (ids that an error means);
// many (a click adds to what is chosen, as it does with ctrl, ⌘ or shift).
// The HTML: [data-node] is what stands for a node, [data-choice] the line of it that is clicked.

const TAGS = new Set(["DIV", "UL", "LI", "H5", "CODE", "B", "SPAN"]);
const ATTRIBUTES = new Set(["class", "data-node", "data-choice"]);
const STEPS = { ArrowDown: 1, ArrowUp: -1 };

/** What is chosen after a click on `id`: it alone, or added to the rest; a second click takes it out. */
export function choose(chosen, id, isAdding) {
  if (chosen.includes(id)) return isAdding ? chosen.filter((one) => one !== id) : [];
  return isAdding ? [...chosen, id] : [id];
}

/** Which number of `count` an arrow key leads to, from number `at` (-1 for none); it stays inside. */
export const along = (count, at, step) => Math.min(Math.max(at + step, 0), count - 1);

/** How far to scroll so that a part's beginning is inside of a box; both are rectangles. */
export function overshoot(part, box) {
  const [above, below] = [part.top - box.top, part.top + 40 - box.bottom];
  return above < 0 ? above : Math.max(below, 0);
}

export const isAllowedTag = (name) => TAGS.has(name.toUpperCase());
export const isAllowedAttribute = (name) => ATTRIBUTES.has(name);

/** Parse HTML into elements of the document, without what irviz does not write. */
function read(text, document) {
  const parsed = new DOMParser().parseFromString(text, "text/html");
  for (const part of parsed.body.querySelectorAll("*")) {
    if (!isAllowedTag(part.tagName)) part.remove();
    for (const name of part.getAttributeNames()) {
      if (!isAllowedAttribute(name)) part.removeAttribute(name);
    }
  }
  return [...parsed.body.children].map((part) => document.importNode(part, true));
}

function render({ model, el, signal }) {
  const box = el.appendChild(el.ownerDocument.createElement("div"));
  box.className = "irviz-nest";
  box.setAttribute("role", "group");
  const choices = () => [...box.querySelectorAll("[data-choice]")];

  function show() {
    const { activeElement } = box.getRootNode();
    const at = choices().indexOf(activeElement); // what has the focus is about to go
    box.replaceChildren(...read(model.get("html"), el.ownerDocument));
    for (const choice of choices()) {
      choice.tabIndex = 0;
      choice.setAttribute("role", "button");
      choice.dataset.lmSuppressShortcuts = "true"; // else its keys are JupyterLab's too
    }
    if (at >= 0) choices()[along(choices().length, at, 0)]?.focus({ preventScroll: true });
    showChosen();
    showMarked();
  }

  function showChosen() {
    const chosen = model.get("chosen");
    for (const choice of choices()) {
      const at = chosen.indexOf(choice.dataset.choice);
      choice.setAttribute("aria-pressed", String(at >= 0));
      if (at >= 0 && chosen.length > 1) choice.dataset.order = at + 1;
      else delete choice.dataset.order;
    }
  }

  function showMarked() {
    const marked = new Set(model.get("marked"));
    for (const part of box.querySelectorAll("[data-node]")) {
      part.classList.toggle("irviz-loops-marked", marked.has(part.dataset.node));
    }
    const first = box.querySelector(".irviz-loops-marked")?.getBoundingClientRect();
    if (first) box.scrollTop += overshoot(first, box.getBoundingClientRect()); // not the page
  }

  function act(choice, isAdding) {
    const adds = isAdding || model.get("many");
    model.set("chosen", choose(model.get("chosen"), choice.dataset.choice, adds));
    model.save_changes();
    showChosen();
  }

  const isAdding = (event) => event.ctrlKey || event.metaKey || event.shiftKey;

  function at(event) {
    const line = event.target.closest("[data-choice]");
    const node = line ?? event.target.closest("[data-node]"); // the rest of a block is it, too
    return node?.matches("[data-choice]") ? node : node?.querySelector(":scope > [data-choice]");
  }

  const handlers = {
    click(event) {
      const choice = at(event);
      if (choice) act(choice, isAdding(event));
    },
    keydown(event) {
      const choice = event.target.closest("[data-choice]");
      if (!choice) return;
      if (event.key === "Enter" || event.key === " ") act(choice, isAdding(event));
      else if (event.key in STEPS) {
        const all = choices();
        all[along(all.length, all.indexOf(choice), STEPS[event.key])].focus();
      } else if (event.key === "Escape") {
        model.set("chosen", []);
        model.save_changes();
      } else return;
      event.preventDefault();
      event.stopPropagation();
    },
  };

  const traits = {
    "change:label": () => (box.ariaLabel = model.get("label") || "loop nest"),
    "change:html": show,
    "change:chosen": showChosen,
    "change:marked": showMarked,
  };
  for (const [name, handle] of Object.entries(handlers)) {
    box.addEventListener(name, handle, { signal });
  }
  for (const [name, hear] of Object.entries(traits)) model.on(name, hear);
  traits["change:label"]();
  show();
  return () => {
    for (const [name, hear] of Object.entries(traits)) model.off(name, hear);
    box.remove();
  };
}

export default { render };

// The loop nest: shows the HTML that Python made, lets loops and blocks be chosen, and reports.
// The HTML: [data-node] is what stands for a node, [data-choice] the line of it that is clicked.

import { along, choose, overshoot } from "./choice.js";
import { readHtml } from "./markup.js";
import { watch } from "./traits.js";

/** @import { LoopTraits, RenderProps } from "./messages" */

/** @type {Record<string, number>} */
const STEPS = { ArrowDown: 1, ArrowUp: -1 };

/** @type {(event: MouseEvent | KeyboardEvent) => boolean} */
const isAdding = (event) => event.ctrlKey || event.metaKey || event.shiftKey;

/** @type {(event: Event, selector: string) => HTMLElement | null} */
const closest = ({ target }, selector) =>
  target instanceof Element ? target.closest(selector) : null;

/** Return the line that a click chooses: that of the block, for the rest of it.
 * @type {(event: Event) => HTMLElement | null} */
function choiceAt(event) {
  const line = closest(event, "[data-choice]");
  const node = closest(event, "[data-node]");
  return line ?? node?.querySelector(":scope > [data-choice]") ?? null;
}

/** @type {(props: RenderProps<LoopTraits, never>) => () => void} */
function render({ model, el, signal }) {
  const box = el.appendChild(el.ownerDocument.createElement("div"));
  box.className = "irviz-nest";
  box.setAttribute("role", "group");
  /** @type {() => HTMLElement[]} */
  const choices = () =>
    [...box.querySelectorAll("[data-choice]")].filter((one) => one instanceof HTMLElement);

  function showHtml() {
    const root = /** @type {Document | ShadowRoot} */ (box.getRootNode());
    const focused = /** @type {HTMLElement} */ (root.activeElement);
    const at = choices().indexOf(focused); // it is about to go
    box.replaceChildren(readHtml(model.get("html")));
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
      const at = chosen.indexOf(choice.dataset.choice ?? "");
      choice.setAttribute("aria-pressed", String(at >= 0));
      if (at >= 0 && chosen.length > 1) choice.dataset.order = String(at + 1);
      else delete choice.dataset.order;
    }
  }

  function showMarked() {
    const marked = new Set(model.get("marked"));
    for (const part of box.querySelectorAll("[data-node]")) {
      const isMarked = marked.has(part.getAttribute("data-node") ?? "");
      part.classList.toggle("irviz-loops-marked", isMarked);
    }
    const first = box.querySelector(".irviz-loops-marked")?.getBoundingClientRect();
    if (first) box.scrollTop += overshoot(first, box.getBoundingClientRect()); // not the page
  }

  /** @type {(chosen: string[]) => void} */
  function setChosen(chosen) {
    model.set("chosen", chosen);
    model.save_changes();
    showChosen();
  }

  /** @type {(choice: HTMLElement, isAdding: boolean) => void} */
  const act = (choice, adds) =>
    setChosen(choose(model.get("chosen"), choice.dataset.choice ?? "", adds || model.get("many")));

  const onClick = (/** @type {MouseEvent} */ event) => {
    const choice = choiceAt(event);
    if (choice) act(choice, isAdding(event));
  };
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    const choice = closest(event, "[data-choice]");
    const step = STEPS[event.key];
    if (!choice) return;
    if (event.key === "Enter" || event.key === " ") act(choice, isAdding(event));
    else if (step) {
      const all = choices();
      all[along(all.length, all.indexOf(choice), step)]?.focus();
    } else if (event.key === "Escape") setChosen([]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  box.addEventListener("click", onClick, { signal });
  box.addEventListener("keydown", onKey, { signal });
  const stop = watch(model, {
    label: () => {
      box.ariaLabel = model.get("label") || "loop nest";
    },
    html: showHtml,
    chosen: showChosen,
    marked: showMarked,
  });
  return () => {
    stop();
    box.remove();
  };
}

export default { render };

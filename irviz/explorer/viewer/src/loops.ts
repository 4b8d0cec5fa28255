// The loop nest: shows the HTML that Python made, lets loops and blocks be chosen, and reports.
// The HTML: [data-node] is what stands for a node, [data-choice] the line of it that is clicked.

import { along, choose, overshoot } from "./loop_choice";
import { readHtml } from "./markup";
import type { LoopTraits } from "./schema";

interface Model {
  get<Name extends keyof LoopTraits>(name: Name): LoopTraits[Name];
  set<Name extends keyof LoopTraits>(name: Name, value: LoopTraits[Name]): void;
  save_changes(): void;
  on(event: `change:${keyof LoopTraits}`, listener: () => void): void;
  off(event: `change:${keyof LoopTraits}`, listener: () => void): void;
}

const STEPS: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 };

const isAdding = (event: MouseEvent | KeyboardEvent) =>
  event.ctrlKey || event.metaKey || event.shiftKey;

const closest = ({ target }: Event, selector: string) =>
  target instanceof Element ? target.closest<HTMLElement>(selector) : null;

/** Return the line that a click chooses: that of the block, for the rest of it. */
function choiceAt(event: Event): HTMLElement | null {
  const line = closest(event, "[data-choice]");
  const node = closest(event, "[data-node]");
  return line ?? node?.querySelector<HTMLElement>(":scope > [data-choice]") ?? null;
}

interface Props {
  model: Model;
  el: HTMLElement;
  signal: AbortSignal;
}

function render({ model, el, signal }: Props) {
  const box = el.appendChild(el.ownerDocument.createElement("div"));
  box.className = "irviz-nest";
  box.setAttribute("role", "group");
  const choices = () => [...box.querySelectorAll<HTMLElement>("[data-choice]")];

  function showHtml() {
    const root = box.getRootNode() as Document | ShadowRoot;
    const focused = root.activeElement as HTMLElement;
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

  function setChosen(chosen: string[]) {
    model.set("chosen", chosen);
    model.save_changes();
    showChosen();
  }

  const act = (choice: HTMLElement, adds: boolean) =>
    setChosen(choose(model.get("chosen"), choice.dataset.choice ?? "", adds || model.get("many")));

  const onClick = (event: MouseEvent) => {
    const choice = choiceAt(event);
    if (choice) act(choice, isAdding(event));
  };
  const onKey = (event: KeyboardEvent) => {
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
  const showLabel = () => {
    box.ariaLabel = model.get("label") || "loop nest";
  };
  const shown = [
    ["label", showLabel],
    ["html", showHtml],
    ["chosen", showChosen],
    ["marked", showMarked],
  ] as const;
  for (const [name, show] of shown) {
    model.on(`change:${name}`, show);
    show();
  }
  return () => {
    for (const [name, show] of shown) model.off(`change:${name}`, show);
    box.remove();
  };
}

export default { render };

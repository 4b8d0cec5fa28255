// Facts from Python: HTML whose links lead to nodes and functions, and of which each can be copied.

import { render } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { copy } from "../controls/clipboard";
import { Icon } from "../controls/icons";
import { readHtml } from "../controls/safe_markup";
import type { Side } from "../schema";
import type { State } from "../state";

interface Props {
  state: State;
  html: string;
  side?: Side;
  /** Whether its first heading is left out. */
  isUntitled?: boolean;
}

/** The facts that name the nodes at a node's edges, which have these colours in the picture. */
const FLOWS = new Map([
  ["arguments", "irviz-flow-in"],
  ["used by", "irviz-flow-out"],
]);

/** Put a button that copies it behind each fact and each piece of code. */
function addCopyButtons(facts: DocumentFragment) {
  for (const fact of facts.querySelectorAll("dd, .irviz-code")) {
    const text = fact.textContent?.trim() ?? "";
    if (!text) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "irviz-copy-fact";
    button.title = `Copy: ${text.slice(0, 80)}`;
    button.ariaLabel = `Copy ${fact.previousElementSibling?.textContent ?? "this"}`;
    button.dataset.copied = text;
    render(<Icon name="copy" />, button);
    fact.append(button);
  }
}

export function Facts({ state, html, side = "current", isUntitled = false }: Props) {
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const facts = readHtml(html);
    for (const code of facts.querySelectorAll("pre")) code.tabIndex = 0; // it scrolls
    for (const term of facts.querySelectorAll("dt")) {
      const flow = FLOWS.get(term.textContent ?? "");
      if (flow) term.classList.add(flow);
    }
    addCopyButtons(facts);
    element.current?.replaceChildren(facts);
  }, [html]);

  const follow = (event: MouseEvent) => {
    const target = event.target as Element;
    const copied = target.closest<HTMLElement>("[data-copied]");
    if (copied) void copy(copied.dataset.copied ?? "", copied);
    const link = target.closest<HTMLElement>("[data-goto], [data-function]");
    if (!link) return;
    const { function: name = state.scene.peek().function, goto: node = "" } = link.dataset;
    const isDrawn = state.scene.peek().function === name && state.picture(side)?.nodes[node];
    if (isDrawn) state.select(node, side);
    else if (node) state.ask({ action: "Reveal", function: name, node, stage: "" });
    else state.ask({ action: "Focus", function: name });
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: clicks of the buttons in it arrive here
    // biome-ignore lint/a11y/useKeyWithClickEvents: they are buttons
    <div
      class={isUntitled ? "irviz-facts irviz-untitled" : "irviz-facts"}
      ref={element}
      onClick={follow}
    />
  );
}

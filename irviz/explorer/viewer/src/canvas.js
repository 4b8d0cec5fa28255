// The graph canvas: shows the SVG that Python made; pans, zooms, hovers, selects and reports.
// The SVG: g.node[data-node] with a title and one .shape, g.value and g.word[data-node],
// [data-toggle] and g.edge[data-source][data-target]; all of them moved alike, if at all, and not
// scaled. Under an overlay (.overlaid) nodes are .tinted by their --share of the two tints.

import {
  ARROWS,
  enlarged,
  isPale,
  middle,
  neighbours,
  nextNode,
  pan,
  reveal,
  touches,
  viewBoxOf,
  viewOf,
  wheelFactor,
  zoom,
} from "./geometry.js";
import { readSvg } from "./markup.js";
import { watch } from "./traits.js";

/** @import { Arrow, Edge, View } from "./geometry.js" */
/** @import { CanvasMessage, CanvasTraits, RenderProps, Viewport } from "./messages" */

/** A picture, indexed once for all events.
 * @typedef {{
 *   svg: SVGSVGElement,
 *   frame: DOMRect,
 *   nodes: Map<string, SVGGElement>,
 *   edges: (Edge & { element: SVGGElement })[],
 *   parts: SVGGElement[],
 * }} Picture */

const SVG = "http://www.w3.org/2000/svg";
const CLICK_SLACK = 4; // px a pointer may move and still click
const REPORT_EVERY = 100; // ms
const BUTTONS = /** @type {const} */ ([
  ["+", "+", "Zoom in (+)"],
  ["-", "−", "Zoom out (-)"],
  ["0", "⤢", "Fit (0)"],
]);

/** @type {(text: string, document: Document) => Picture} */
function readPicture(text, document) {
  const svg = readSvg(text, document);
  /** @type {(selector: string) => SVGGElement[]} */
  const all = (selector) =>
    [...svg.querySelectorAll(selector)].filter((one) => one instanceof SVGGElement);
  const frame = DOMRect.fromRect(svg.viewBox.baseVal);
  const nodes = new Map(all(".node[data-node]").map((g) => [g.dataset.node ?? "", g]));
  const edges = all(".edge").map((element) => {
    const { source = "", target = "" } = element.dataset;
    return { element, source, target };
  });
  return { svg, frame, nodes, edges, parts: all("[data-node]") };
}

/** The shape of a node, which is measured and outlined.
 * @type {(node: SVGGElement) => SVGGraphicsElement} */
function shapeOf(node) {
  const shape = node.querySelector(".shape");
  return shape instanceof SVGGraphicsElement ? shape : node;
}

/** @type {(target: EventTarget | null, selector: string) => SVGElement | null} */
const closest = (target, selector) =>
  target instanceof Element ? /** @type {SVGElement | null} */ (target.closest(selector)) : null;

/** @type {(event: Event) => string} */
const nodeAt = (event) => closest(event.target, "[data-node]")?.dataset.node ?? "";

/** @type {<Tag extends keyof HTMLElementTagNameMap>(parent: HTMLElement, tag: Tag,
 *   properties: Partial<HTMLElementTagNameMap[Tag]>) => HTMLElementTagNameMap[Tag]} */
const make = (parent, tag, properties) =>
  parent.appendChild(Object.assign(parent.ownerDocument.createElement(tag), properties));

/** Draw a diamond on the node's upper left corner: a change is seen without colour too.
 * @type {(node: SVGGElement) => void} */
function addMark(node) {
  const { x, y, width } = shapeOf(node).getBBox(); // the upper right one may have a sign
  const inset = shapeOf(node).localName === "circle" ? 0.146 * width : 0;
  const mark = node.appendChild(node.ownerDocument.createElementNS(SVG, "path"));
  mark.setAttribute("d", `M${x + inset} ${y + inset - 7}l7 7l-7 7l-7-7z`);
  mark.setAttribute("class", "mark");
}

/** @type {(props: RenderProps<CanvasTraits, CanvasMessage>) => () => void} */
function render({ model, el, signal }) {
  const box = make(el, "div", { className: "irviz-canvas" });
  const pane = make(box, "div", { className: "pane", tabIndex: 0, role: "application" });
  const tools = make(box, "div", { className: "tools" });
  const live = make(box, "div", { className: "live", ariaLive: "polite" });
  /** @type {Picture | null} */
  let picture = null; // null when there is nothing to show
  let size = { width: 0, height: 0 }; // of the pane; 0 while it is hidden
  /** @type {Viewport} */
  let viewport = []; // the trait; a view is what it shows: never []
  /** @type {PointerEvent | null} */
  let grip = null; // the pressed pointer's last event
  let dragged = false;
  /** @type {number | undefined} */
  let timer;

  /** Return the picture if it can be seen: what is hidden cannot be measured. */
  const seen = () => (size.width > 0 && size.height > 0 ? picture : null);
  /** @type {(shown: Picture) => View} */
  const viewIn = (shown) => viewOf(viewport, shown.frame, size);
  const selected = () => picture?.nodes.get(model.get("selected"));

  function draw() {
    const shown = seen();
    if (!shown) return;
    shown.svg.setAttribute("viewBox", viewBoxOf(viewIn(shown), size));
    shown.svg.style.setProperty("--enlarged", String(enlarged(viewIn(shown)[2]))); // signs, titles
  }

  /** @type {<Name extends keyof CanvasTraits>(name: Name, value: CanvasTraits[Name]) => void} */
  function set(name, value) {
    model.set(name, value);
    model.save_changes();
  }

  /** @type {(next: Viewport) => void} */
  function move(next) {
    viewport = next;
    draw();
    timer ??= window.setTimeout(() => {
      timer = undefined;
      set("viewport", viewport);
    }, REPORT_EVERY);
  }

  function showSvg() {
    picture = null;
    pane.replaceChildren();
    try {
      if (model.get("svg")) picture = readPicture(model.get("svg"), el.ownerDocument);
    } catch (error) {
      const why = error instanceof Error ? error.message : error;
      make(pane, "p", { role: "alert", textContent: `Cannot draw this graph: ${why}` });
    }
    if (picture) pane.append(picture.svg);
    draw();
    showHighlighted();
    showDimmed();
    showSelected();
  }

  function showHighlighted() {
    const changed = new Set(model.get("highlighted"));
    for (const [id, node] of seen()?.nodes ?? []) {
      node.querySelector(".mark")?.remove();
      node.classList.toggle("changed", changed.has(id));
      if (changed.has(id)) addMark(node);
    }
  }

  function showDimmed() {
    const dimmed = new Set(model.get("dimmed"));
    const edges = picture?.edges.map(({ element }) => element) ?? [];
    for (const part of [...(picture?.parts ?? []), ...edges]) {
      part.classList.toggle("pale", isPale(part.dataset, dimmed));
    }
  }

  /** Put a class on these nodes, on their value labels and on the edges of one of them.
   * @type {(name: string, ids: Set<string>, id: string) => void} */
  function emphasise(name, ids, id) {
    for (const part of picture?.parts ?? []) {
      part.classList.toggle(name, ids.has(part.dataset.node ?? ""));
    }
    for (const edge of picture?.edges ?? []) edge.element.classList.toggle(name, touches(edge, id));
  }

  /** @type {(id: string) => void} */
  function hover(id) {
    if (!picture) return;
    picture.svg.classList.toggle("hovering", id !== "");
    emphasise("near", neighbours(picture.edges, id).add(id), id);
  }

  function showSelected() {
    const id = model.get("selected");
    const node = selected();
    picture?.svg.querySelector(".halo")?.remove();
    emphasise("selected", new Set([id]), id);
    live.textContent = node?.querySelector("title")?.textContent ?? "";
    if (!node) return;
    const halo = /** @type {SVGGraphicsElement} */ (shapeOf(node).cloneNode());
    halo.setAttribute("class", "halo");
    shapeOf(node).before(halo);
    if (node.classList.contains("changed")) live.append(", changed");
    if (node.matches(".pale, .dimmed")) live.append(", drawn pale");
  }

  function showSelectedInView() {
    showSelected();
    const [shown, node] = [seen(), selected()];
    const [outer, inner] = [shown?.svg.getScreenCTM(), node?.getScreenCTM()];
    if (!shown || !node || !outer || !inner) return;
    const { x, y, width, height } = shapeOf(node).getBBox();
    const { e, f } = outer.inverse().multiply(inner);
    const next = reveal(viewIn(shown), size, { x: x + e, y: y + f, width, height });
    if (next.join() !== viewIn(shown).join()) move(next);
  }

  /** @type {(shown: Picture, arrow: Arrow, isPanning: boolean) => void} */
  function follow(shown, arrow, isPanning) {
    const [dx, dy] = ARROWS[arrow];
    const from = model.get("selected");
    if (isPanning) move(pan(viewIn(shown), -60 * dx, -60 * dy));
    else if (!shown.nodes.has(from)) selectFirst(shown);
    else {
      const rects = new Map([...shown.nodes].map(([id, node]) => [id, shapeOf(node).getBBox()]));
      set("selected", nextNode(rects, shown.edges, from, arrow) ?? from);
    }
  }

  /** @type {(shown: Picture) => void} */
  const selectFirst = (shown) => set("selected", [...shown.nodes.keys()][0] ?? "");

  /** Ask for what this node, or frame, shows: the answer is another picture.
   * @type {(part: SVGElement | null | undefined) => void} */
  function toggle(part) {
    const sign = closest(part ?? null, "[data-toggle]") ?? part?.querySelector("[data-toggle]");
    const known = sign instanceof SVGElement ? sign.dataset.toggle : undefined;
    const id = known ?? part?.dataset.node; // an open call has its sign elsewhere
    if (id) model.send({ action: "Toggle", container: id });
  }

  /** @type {Record<string, (shown: Picture, event: { shiftKey: boolean }) => void>} */
  const keys = {
    "+": (shown) => move(zoom(viewIn(shown), 1.25)),
    "-": (shown) => move(zoom(viewIn(shown), 0.8)),
    0: () => move([]),
    Home: selectFirst,
    End: (shown) => set("selected", [...shown.nodes.keys()].at(-1) ?? ""),
    Escape: () => set("selected", ""),
    Enter(shown, { shiftKey }) {
      const id = model.get("selected");
      if (shiftKey) model.send({ action: "CloseAround", node: id });
      else toggle(shown.nodes.get(id));
    },
    ArrowUp: (shown, { shiftKey }) => follow(shown, "ArrowUp", shiftKey),
    ArrowDown: (shown, { shiftKey }) => follow(shown, "ArrowDown", shiftKey),
    ArrowLeft: (shown, { shiftKey }) => follow(shown, "ArrowLeft", shiftKey),
    ArrowRight: (shown, { shiftKey }) => follow(shown, "ArrowRight", shiftKey),
  };

  /** @type {<Type extends keyof HTMLElementEventMap>(type: Type,
   *   listener: (event: HTMLElementEventMap[Type]) => void) => void} */
  const listen = (type, listener) =>
    pane.addEventListener(type, listener, { signal, passive: false });
  const disengage = () => pane.classList.remove("engaged");

  listen("pointerdown", (event) => {
    grip = event;
    dragged = false;
    pane.classList.add("engaged"); // from now on the plain wheel zooms
  });
  listen("pointermove", (event) => {
    const shown = seen();
    if (!grip || event.buttons !== 1 || !shown) return;
    const [dx, dy] = [event.clientX - grip.clientX, event.clientY - grip.clientY];
    if (!dragged && Math.hypot(dx, dy) < CLICK_SLACK) return;
    if (!dragged) pane.setPointerCapture(event.pointerId);
    grip = event;
    dragged = true;
    move(pan(viewIn(shown), dx, dy));
  });
  listen("pointerup", () => {
    grip = null;
  });
  listen("pointerover", (event) => {
    if (!event.buttons) hover(nodeAt(event));
  });
  listen("pointerleave", () => hover(""));
  listen("click", (event) => {
    const sign = closest(event.target, "[data-toggle]");
    if (dragged) return;
    if (sign) toggle(sign);
    else set("selected", nodeAt(event));
  });
  listen("dblclick", (event) => toggle(picture?.nodes.get(nodeAt(event))));
  listen("wheel", (event) => {
    const shown = seen();
    const isMeant = event.ctrlKey || event.metaKey || pane.matches(".engaged");
    if (!isMeant || !shown) return;
    event.preventDefault();
    const [x, y] = middle(pane.getBoundingClientRect());
    const point = /** @type {[number, number]} */ ([event.clientX - x, event.clientY - y]);
    move(zoom(viewIn(shown), wheelFactor(event), point));
  });
  listen("keydown", (event) => {
    const [shown, act] = [seen(), keys[event.key]];
    if (!act || !shown || event.ctrlKey || event.metaKey || event.altKey) return;
    act(shown, event);
    if (event.key === "Escape") disengage();
    event.preventDefault();
    event.stopPropagation();
  });
  listen("blur", disengage);

  for (const [key, textContent, title] of BUTTONS) {
    const button = make(tools, "button", { type: "button", textContent, title, ariaLabel: title });
    const press = (/** @type {MouseEvent} */ event) => {
      const shown = seen();
      if (shown) keys[key]?.(shown, event);
    };
    button.addEventListener("click", press, { signal });
    button.dataset.lmSuppressShortcuts = "true";
  }
  // Keeps keys from JupyterLab; it must be on what has the focus, an ancestor is too late.
  pane.dataset.lmSuppressShortcuts = "true";

  const observer = new ResizeObserver((entries) => {
    size = entries.at(-1)?.contentRect ?? size;
    draw();
    showHighlighted();
  });
  observer.observe(pane);
  const page = el.ownerDocument.body;
  const tellTheme = () => set("dark", page.dataset.jpThemeLight === "false");
  const themes = new MutationObserver(tellTheme);
  themes.observe(page, { attributeFilter: ["data-jp-theme-light"] });
  tellTheme();

  const stop = watch(model, {
    label: () => {
      pane.ariaLabel = model.get("label") || "graph";
    },
    height: () => {
      pane.style.height = `${model.get("height")}px`;
    },
    viewport: () => {
      viewport = model.get("viewport");
      draw();
    },
    svg: showSvg,
    highlighted: showHighlighted,
    dimmed: showDimmed,
    selected: showSelectedInView,
  });
  return () => {
    clearTimeout(timer);
    observer.disconnect();
    themes.disconnect();
    stop();
    box.remove();
  };
}

export default { render };

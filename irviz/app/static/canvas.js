// The graph canvas: shows the SVG that Python made; pans, zooms, hovers, selects and reports.
// Traits: svg, label, height; highlighted and dimmed (ids of nodes that changed, that are drawn pale
// with the edges of their values); selected (node id, "" for none);
// viewport: [x, y, scale], (x, y) being the graph's point in the middle of the pane, [] for "fit".
// dark: whether the page is, reported. Messages: {toggle: id} to open or close what has that id, {leave: id} for what is around a node.
// The SVG: g.node[data-node] with a title and one .shape, g.value and g.word[data-node],
// [data-toggle] and g.edge[data-source][data-target]; all of them moved alike, if at all, and not
// scaled. Under an overlay (.overlaid) nodes are .tinted by their --share of the ramp.

import {
  ARROWS,
  bound,
  enlarged,
  fit,
  middle,
  neighbours,
  nextNode,
  pan,
  reveal,
  touches,
  viewBoxOf,
  wheelFactor,
  zoom,
} from "./geometry.js";

const SVG = "http://www.w3.org/2000/svg";
const CLICK_SLACK = 4; // px a pointer may move and still click
const REPORT_EVERY = 100; // ms
const BUTTONS = [["+", "+", "Zoom in (+)"], ["-", "−", "Zoom out (-)"], ["0", "⤢", "Fit (0)"]];

// What could act in a picture instead of being seen. irviz writes none of it.
export const isActiveElement = ({ namespaceURI, localName }) =>
  namespaceURI !== SVG || /^(script|foreignObject|animate.*|set)$/i.test(localName);
export const isActiveName = (name) => /^on|href$/i.test(name);

/** Tell whether a part of these nodes is meant, or an edge that carries the value of one. */
export const isPale = ({ node, source }, dimmed) => dimmed.has(node ?? source);

/** Parse SVG text into an inert element of the document, and index it once for all events. */
function readPicture(text, document) {
  const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
  const error = parsed.getElementsByTagName("parsererror")[0];
  if (error) throw new Error((error.querySelector("div") ?? error).textContent.trim());
  const svg = document.importNode(parsed.documentElement, true);
  if (!svg.viewBox?.baseVal?.width) throw new Error("it is no SVG with a viewBox.");
  const all = (selector) => [...svg.querySelectorAll(selector)];
  for (const part of [svg, ...all("*")]) {
    if (isActiveElement(part)) part.remove();
    for (const name of part.getAttributeNames().filter(isActiveName)) part.removeAttribute(name);
  }
  const frame = DOMRect.fromRect(svg.viewBox.baseVal);
  const nodes = new Map(all(".node[data-node]").map((g) => [g.dataset.node, g]));
  const edges = all(".edge").map((g) => ({ element: g, ...g.dataset }));
  return { svg, frame, nodes, edges, parts: all("[data-node]") };
}

const shapeOf = (node) => node.querySelector(".shape") ?? node;
const nodeAt = (event) => event.target.closest("[data-node]")?.dataset.node ?? "";
const make = (parent, tag, properties) =>
  parent.appendChild(Object.assign(parent.ownerDocument.createElement(tag), properties));

/** Draw a diamond on the node's upper left corner: a change is seen without colour too. */
function addMark(node) {
  const { x, y, width } = shapeOf(node).getBBox(); // the upper right one may have a sign
  const inset = shapeOf(node).localName === "circle" ? 0.146 * width : 0;
  const mark = node.appendChild(node.ownerDocument.createElementNS(SVG, "path"));
  mark.setAttribute("d", `M${x + inset} ${y + inset - 7}l7 7l-7 7l-7-7z`);
  mark.setAttribute("class", "mark");
}

function render({ model, el, signal }) {
  const box = make(el, "div", { className: "irviz-canvas" });
  const pane = make(box, "div", { className: "pane", tabIndex: 0, role: "application" });
  const tools = make(box, "div", { className: "tools" });
  const live = make(box, "div", { className: "live", ariaLive: "polite" });
  let picture = null; // what readPicture made; null when there is nothing to show
  let size = { width: 0, height: 0 }; // of the pane; 0 while it is hidden
  let viewport = []; // the trait; a view is what it shows: never []
  let [grip, dragged] = [null, false]; // the pressed pointer's last event; was it a drag?
  let timer = null;

  const isVisible = () => picture !== null && size.width > 0 && size.height > 0;
  const view = () => (viewport.length ? bound(viewport, picture.frame) : fit(picture.frame, size));
  function draw() {
    if (!isVisible()) return;
    picture.svg.setAttribute("viewBox", viewBoxOf(view(), size));
    picture.svg.style.setProperty("--enlarged", enlarged(view()[2])); // signs, titles of frames
  }
  const disengage = () => pane.classList.remove("engaged");

  function set(name, value) {
    model.set(name, value);
    model.save_changes();
  }

  function move(next) {
    viewport = next;
    draw();
    timer ??= setTimeout(() => {
      timer = null;
      set("viewport", viewport);
    }, REPORT_EVERY);
  }

  function showSvg() {
    picture = null;
    pane.replaceChildren();
    try {
      if (model.get("svg")) picture = readPicture(model.get("svg"), el.ownerDocument);
    } catch (error) {
      make(pane, "p", { role: "alert", textContent: `Cannot draw this graph: ${error.message}` });
    }
    if (picture) pane.append(picture.svg);
    draw();
    showHighlighted();
    showDimmed();
    showSelected();
  }

  function showHighlighted() {
    if (!isVisible()) return; // what is hidden cannot be measured
    const changed = new Set(model.get("highlighted"));
    for (const [id, node] of picture.nodes) {
      node.querySelector(".mark")?.remove();
      node.classList.toggle("changed", changed.has(id));
      if (changed.has(id)) addMark(node);
    }
  }

  function showDimmed() {
    if (!picture) return;
    const dimmed = new Set(model.get("dimmed"));
    for (const part of [...picture.parts, ...picture.edges.map(({ element }) => element)]) {
      part.classList.toggle("pale", isPale(part.dataset, dimmed));
    }
  }

  /** Put a class on these nodes, on their value labels and on the edges of one of them. */
  function emphasise(name, ids, id) {
    if (!picture) return;
    for (const part of picture.parts) part.classList.toggle(name, ids.has(part.dataset.node));
    for (const edge of picture.edges) edge.element.classList.toggle(name, touches(edge, id));
  }

  function hover(id) {
    if (!picture) return;
    picture.svg.classList.toggle("hovering", id !== "");
    emphasise("near", neighbours(picture.edges, id).add(id), id);
  }

  function showSelected() {
    const id = model.get("selected");
    const node = picture?.nodes.get(id);
    picture?.svg.querySelector(".halo")?.remove();
    emphasise("selected", new Set([id]), id);
    live.textContent = node?.querySelector("title")?.textContent ?? "";
    if (!node) return;
    const halo = shapeOf(node).cloneNode();
    halo.setAttribute("class", "halo");
    shapeOf(node).before(halo);
    if (node.classList.contains("changed")) live.append(", changed");
    if (node.matches(".pale, .dimmed")) live.append(", drawn pale");
  }

  function showSelectedInView() {
    showSelected();
    const node = picture?.nodes.get(model.get("selected"));
    if (!node || !isVisible()) return;
    const { x, y, width, height } = shapeOf(node).getBBox();
    const { e, f } = picture.svg.getScreenCTM().inverse().multiply(node.getScreenCTM());
    const next = reveal(view(), size, { x: x + e, y: y + f, width, height });
    if (next.join() !== view().join()) move(next);
  }

  function follow(arrow, isPanning) {
    if (isPanning) return move(pan(view(), ...ARROWS[arrow].map((n) => -n * 60)));
    const from = model.get("selected");
    if (!picture.nodes.has(from)) return keys.Home();
    const boxes = [...picture.nodes].map(([id, node]) => [id, shapeOf(node).getBBox()]);
    set("selected", nextNode(new Map(boxes), picture.edges, from, arrow) ?? from);
  }

  /** Ask for what this node, or frame, shows: the answer is another picture. */
  function toggle(part) {
    const sign = part?.closest("[data-toggle]") ?? part?.querySelector("[data-toggle]");
    const id = sign?.dataset.toggle ?? part?.dataset.node; // an open call has its sign elsewhere
    if (id) model.send({ toggle: id });
  }

  const keys = {
    "+": () => move(zoom(view(), 1.25)),
    "-": () => move(zoom(view(), 0.8)),
    0: () => move([]),
    Home: () => set("selected", [...picture.nodes.keys()][0] ?? ""),
    End: () => set("selected", [...picture.nodes.keys()].at(-1) ?? ""),
    Escape: () => set("selected", ""),
    Enter(event) {
      const id = model.get("selected");
      if (event.shiftKey) model.send({ leave: id });
      else toggle(picture.nodes.get(id));
    },
  };
  for (const arrow of Object.keys(ARROWS)) keys[arrow] = (event) => follow(arrow, event.shiftKey);

  const handlers = {
    pointerdown(event) {
      [grip, dragged] = [event, false];
      pane.classList.add("engaged"); // from now on the plain wheel zooms
    },
    pointermove(event) {
      if (!grip || event.buttons !== 1 || !isVisible()) return;
      const [dx, dy] = [event.clientX - grip.clientX, event.clientY - grip.clientY];
      if (!dragged && Math.hypot(dx, dy) < CLICK_SLACK) return;
      if (!dragged) pane.setPointerCapture(event.pointerId);
      [grip, dragged] = [event, true];
      move(pan(view(), dx, dy));
    },
    pointerup: () => (grip = null),
    pointerover: (event) => event.buttons || hover(nodeAt(event)),
    pointerleave: () => hover(""),
    click(event) {
      if (dragged) return;
      if (event.target.closest("[data-toggle]")) toggle(event.target);
      else set("selected", nodeAt(event));
    },
    dblclick: (event) => toggle(picture?.nodes.get(nodeAt(event))),
    wheel(event) {
      const isMeant = event.ctrlKey || event.metaKey || pane.matches(".engaged");
      if (!isMeant || !isVisible()) return;
      event.preventDefault();
      const [x, y] = middle(pane.getBoundingClientRect());
      move(zoom(view(), wheelFactor(event), [event.clientX - x, event.clientY - y]));
    },
    keydown(event) {
      const isOurs = event.key in keys && !event.ctrlKey && !event.metaKey && !event.altKey;
      if (!isOurs || !isVisible()) return;
      keys[event.key](event);
      if (event.key === "Escape") disengage();
      event.preventDefault();
      event.stopPropagation();
    },
    blur: disengage,
  };

  const traits = {
    "change:label": () => (pane.ariaLabel = model.get("label") || "graph"),
    "change:height": () => (box.style.height = `${model.get("height")}px`),
    "change:viewport": () => draw((viewport = model.get("viewport"))),
    "change:svg": showSvg,
    "change:highlighted": showHighlighted,
    "change:dimmed": showDimmed,
    "change:selected": showSelectedInView,
  };

  const observer = new ResizeObserver((entries) => {
    size = entries.at(-1).contentRect;
    draw();
    showHighlighted();
  });
  observer.observe(pane);
  const page = el.ownerDocument.body;
  const tellTheme = () => {
    model.set("dark", page.dataset.jpThemeLight === "false");
    model.save_changes();
  };
  const themes = new MutationObserver(tellTheme);
  themes.observe(page, { attributeFilter: ["data-jp-theme-light"] });
  tellTheme();
  for (const [key, textContent, title] of BUTTONS) {
    const button = make(tools, "button", { type: "button", textContent, title, ariaLabel: title });
    button.addEventListener("click", () => isVisible() && keys[key](), { signal });
  }
  // Keeps keys from JupyterLab; it must be on what has the focus, an ancestor is too late.
  for (const part of [pane, ...tools.children]) part.dataset.lmSuppressShortcuts = "true";
  for (const [name, handle] of Object.entries(handlers)) {
    pane.addEventListener(name, handle, { signal, passive: false });
  }
  for (const [name, show] of Object.entries(traits)) {
    model.on(name, show);
    show();
  }
  return () => {
    clearTimeout(timer);
    observer.disconnect();
    themes.disconnect();
    for (const [name, show] of Object.entries(traits)) model.off(name, show);
    box.remove();
  };
}

export default { render };

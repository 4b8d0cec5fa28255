// The graph canvas: shows the SVG that Python made; pans, zooms, hovers, selects and reports.
// Traits: svg, label, height; highlighted (ids of changed nodes); selected (node id, "" for none);
// viewport: [x, y, scale], (x, y) being the graph's point in the middle of the pane, [] for "fit".
// The SVG: g.node[data-node] with a title and one .shape, g.value[data-node] and
// g.edge[data-source][data-target]; all of them moved alike, if at all, and not scaled.

const SVG = "http://www.w3.org/2000/svg";
const SCALES = [0.05, 8];
const MARGIN = 32; // px of the pane's width, and height, that a fitted graph leaves free
const CLICK_SLACK = 4; // px a pointer may move and still click
const REPORT_EVERY = 100; // ms
const BUTTONS = [["+", "+", "Zoom in (+)"], ["-", "−", "Zoom out (-)"], ["0", "⤢", "Fit (0)"]];
const ARROWS = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const touches = ({ source, target }, id) => source === id || target === id;
const middle = ({ x, y, width, height }) => [x + width / 2, y + height / 2];

/** Show the whole frame in the middle of the pane, never enlarged. */
export function fit(frame, pane) {
  const scales = [(pane.width - MARGIN) / frame.width, (pane.height - MARGIN) / frame.height];
  return [...middle(frame), clamp(Math.min(...scales), SCALES[0], 1)];
}

/** Keep the scale within its limits and the middle of the pane over the frame. */
export function bound([x, y, scale], frame) {
  const across = clamp(x, frame.x, frame.x + frame.width);
  const down = clamp(y, frame.y, frame.y + frame.height);
  return [across, down, clamp(scale, ...SCALES)];
}

/** Move the picture by pixels, as a hand that drags it. */
export const pan = ([x, y, scale], dx, dy) => [x - dx / scale, y - dy / scale, scale];

/** Zoom, keeping what lies under the point (px from the middle of the pane) where it is. */
export function zoom([x, y, scale], factor, [px, py] = [0, 0]) {
  const zoomed = clamp(scale * factor, ...SCALES);
  const kept = 1 / scale - 1 / zoomed;
  return [x + px * kept, y + py * kept, zoomed];
}

/** Turn a wheel event into a zoom factor: a notch counts alike everywhere, a pinch finely. */
export const wheelFactor = ({ deltaY, deltaMode }) =>
  Math.exp(clamp(deltaY * [1, 16, 400][deltaMode], -30, 30) * -0.008);

/** Move the view just enough to show the box. */
export function reveal([x, y, scale], pane, box) {
  const shift = (at, seen, low, length) => {
    const half = (seen - MARGIN / 2) / 2 / scale;
    return length > 2 * half ? low + length / 2 : clamp(at, low + length - half, low + half);
  };
  return [shift(x, pane.width, box.x, box.width), shift(y, pane.height, box.y, box.height), scale];
}

export const viewBoxOf = ([x, y, scale], { width, height }) =>
  [x - width / scale / 2, y - height / scale / 2, width / scale, height / scale].join(" ");

export function neighbours(edges, id) {
  const touching = edges.filter((edge) => touches(edge, id));
  return new Set(touching.map(({ source, target }) => (source === id ? target : source)));
}

/** Find the node an arrow key leads to: up and down along edges first, else the nearest. */
export function nextNode(boxes, edges, from, arrow) {
  const [dx, dy] = ARROWS[arrow];
  const [x0, y0] = middle(boxes.get(from));
  const joined = dy === 0 ? new Set() : neighbours(edges, from);
  const reached = [...boxes].map(([id, box]) => {
    const [x, y] = middle(box);
    const ahead = (x - x0) * dx + (y - y0) * dy;
    const aside = Math.abs((x - x0) * dy) + Math.abs((y - y0) * dx);
    return { id, ahead, aside, isJoined: joined.has(id), cost: ahead + 2 * aside };
  });
  const found = reached.filter((one) => one.ahead >= 1 && (one.isJoined || one.aside <= one.ahead));
  return found.sort((a, b) => b.isJoined - a.isJoined || a.cost - b.cost)[0]?.id;
}

// What could act in a picture instead of being seen. irviz writes none of it.
export const isActiveElement = ({ namespaceURI, localName }) =>
  namespaceURI !== SVG || /^(script|foreignObject|animate.*|set)$/i.test(localName);
export const isActiveName = (name) => /^on|href$/i.test(name);

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

/** Draw a diamond on the node's upper right corner: a change is seen without colour too. */
function addMark(node) {
  const { x, y, width } = shapeOf(node).getBBox();
  const inset = shapeOf(node).localName === "circle" ? 0.146 * width : 0;
  const mark = node.appendChild(node.ownerDocument.createElementNS(SVG, "path"));
  mark.setAttribute("d", `M${x + width - inset} ${y + inset - 7}l7 7l-7 7l-7-7z`);
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
  const draw = () => isVisible() && picture.svg.setAttribute("viewBox", viewBoxOf(view(), size));
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

  function showViewport() {
    viewport = model.get("viewport");
    draw();
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

  const keys = {
    "+": () => move(zoom(view(), 1.25)),
    "-": () => move(zoom(view(), 0.8)),
    0: () => move([]),
    Home: () => set("selected", [...picture.nodes.keys()][0] ?? ""),
    End: () => set("selected", [...picture.nodes.keys()].at(-1) ?? ""),
    Escape: () => set("selected", ""),
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
    click: (event) => dragged || set("selected", nodeAt(event)),
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
    "change:viewport": showViewport,
    "change:svg": showSvg,
    "change:highlighted": showHighlighted,
    "change:selected": showSelectedInView,
  };

  const observer = new ResizeObserver((entries) => {
    size = entries.at(-1).contentRect;
    draw();
    showHighlighted();
  });
  observer.observe(pane);
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
    for (const [name, show] of Object.entries(traits)) model.off(name, show);
    box.remove();
  };
}

export default { render };

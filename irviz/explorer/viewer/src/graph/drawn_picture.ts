// A picture of a graph, indexed once for all events.
//
// The SVG has g.node[data-node] with one .shape, in which a g.weight[data-node] may be the line of a
// weight, g.value, g.word and g.change[data-node], and g.edge[data-source][data-target];
// [data-toggle] are signs that open and close something. They are moved by groups, if at all, and
// not scaled.

import { readSvg } from "../controls/safe_markup";
import { type Edge, isPale } from "./neighbours";
import { commonScale, middle, overlap, type Point, type Rect, type Room, roomOf } from "./viewport";

export interface DrawnEdge extends Edge {
  element: SVGGElement;
}

export interface DrawnPicture {
  svg: SVGSVGElement;
  frame: Rect;
  /** Where the function's first node is: the picture is read from there. */
  start: Point;
  nodes: ReadonlyMap<string, SVGGElement>;
  /** The nodes of which weights are lines, by the ids of the weights, which `nodes` has too. */
  users: ReadonlyMap<string, string>;
  /** All that is drawn of each node, in the order in which it is drawn. */
  parts: ReadonlyMap<string, SVGGElement[]>;
  edges: readonly DrawnEdge[];
  /** The edges of each node. */
  edgesOf: ReadonlyMap<string, DrawnEdge[]>;
  /** The edge of each group, and of each line around which it can be pointed at. */
  edgeOf: ReadonlyMap<Element, DrawnEdge>;
  /** What signs, edges and marks say of themselves. */
  words: ReadonlyMap<Element, string>;
  /** The ids of what signs open and close. */
  toggles: ReadonlySet<string>;
  /** All signs, which are drawn above the marks. */
  signs: Element | null;
  /** Return where each node is; the picture must be in the page. */
  rects(): ReadonlyMap<string, Rect>;
  /** Draw signs and the titles of frames so much larger than the rest. */
  enlarge(factor: number): void;
  /** Return how much larger most of the names can be in their boxes, where from afar they are
   * alone. */
  nameScale(): number;
  /** Draw names so much larger, where they have room: alone in their boxes, or beside marks. */
  scaleNames(most: number, isAlone: boolean): void;
}

/** The shape of a node, which is measured and outlined. */
export function shapeOf(node: Element): SVGGraphicsElement | null {
  const shape = node.querySelector(".shape");
  return shape instanceof SVGGraphicsElement ? shape : null;
}

function append<Key, Value>(lists: Map<Key, Value[]>, key: Key, value: Value) {
  const known = lists.get(key);
  if (known) known.push(value);
  else lists.set(key, [value]);
}

/** Take the texts that a browser would show by itself, some time after the pointer rests. */
function takeTitles(svg: SVGSVGElement): Map<Element, string> {
  const words = new Map<Element, string>();
  for (const title of [...svg.querySelectorAll("title")]) {
    if (title.parentElement) words.set(title.parentElement, title.textContent ?? "");
    title.remove();
  }
  return words;
}

/** Take all signs out of a picture, moved as they are in it. */
function takeSigns(svg: SVGSVGElement): Element | null {
  const signs = svg.querySelector<SVGGElement>(".signs");
  const move = signs?.parentElement?.getAttribute("transform");
  if (signs && move) signs.setAttribute("transform", move);
  signs?.remove();
  return signs;
}

/** Add wide lines that are not seen, at which edges can be pointed: below all edges, so that of two
 * near ones the one under the pointer is meant. */
function addReach(edges: readonly DrawnEdge[]): Map<Element, DrawnEdge> {
  const found = new Map<Element, DrawnEdge>(edges.map((edge) => [edge.element, edge]));
  const first = edges[0]?.element;
  if (!first) return found;
  const reach = first.ownerDocument.createElementNS(first.namespaceURI, "g");
  reach.setAttribute("class", "irviz-reach");
  for (const edge of edges) {
    const line = edge.element.querySelector("path")?.cloneNode();
    if (!(line instanceof Element)) continue;
    for (const name of line.getAttributeNames()) if (name !== "d") line.removeAttribute(name);
    found.set(reach.appendChild(line), edge);
  }
  first.before(reach);
  return found;
}

/** A title, its box, how much larger it can be in its frame, and the nodes that it may not cover. */
type Title = [SVGElement, Rect, number, Rect[]];

/** Where a sign and a title grow from, as shares of their sizes; titles up or down where they must. */
const MIDDLE: readonly [number, number][] = [[0.5, 0.5]];
const LEFT: readonly [number, number][] = [0.5, 1, 0].map((y) => [0, y]);

/** Read a picture; throw an Error that says what is wrong with it. */
export function readPicture(text: string): DrawnPicture {
  const svg = readSvg(text);
  const { x, y, width, height } = svg.viewBox.baseVal;
  const frame = { x, y, width, height };
  const words = takeTitles(svg);
  const nodes = new Map<string, SVGGElement>();
  const users = new Map<string, string>();
  const parts = new Map<string, SVGGElement[]>();
  const edges: DrawnEdge[] = [];
  const edgesOf = new Map<string, DrawnEdge[]>();
  for (const element of svg.querySelectorAll<SVGGElement>("g[data-node], g.edge")) {
    const { node, source = "", target = "" } = element.dataset;
    if (node !== undefined) {
      append(parts, node, element);
      const user = element.classList.contains("weight") ? nodeAt(element.parentElement) : "";
      if (user) users.set(node, user);
      if (user || element.classList.contains("node")) nodes.set(node, element);
    } else {
      const edge = { element, source, target };
      edges.push(edge);
      append(edgesOf, source, edge);
      if (target !== source) append(edgesOf, target, edge);
    }
  }
  const signs = [...svg.querySelectorAll<SVGElement>("[data-toggle]")];
  const toggles = svg.querySelectorAll<SVGGraphicsElement>(".toggle");
  const titles = [...svg.querySelectorAll<SVGGElement>(".title")];
  const frames = [...svg.querySelectorAll<SVGRectElement>(".block > rect")]; // of the titles
  let measured: Title[] | undefined;
  const measureTitles = () => {
    if (measured) return measured;
    const drawn = [...rects().values()];
    const found = titles.map((one, at): Title => {
      const background = one.querySelector<SVGRectElement>("rect") ?? one;
      const [box, frame] = [placed(background), placed(frames[at] ?? one)];
      const most = (frame.x + frame.width - box.x) / box.width;
      const largest = grown(box, 2 * most, 0, 0.5);
      const near = drawn.filter((other) => overlap(largest, other));
      return [one, box, most, near];
    });
    if (svg.isConnected) measured = found;
    return found;
  };
  let factor = 1;
  const enlarge = (next: number) => {
    if (next === factor) return;
    factor = next;
    const taken: Rect[] = []; // by signs, and by the titles of outer groups, which come first
    const shares = [1, 0.75, 0.5, 0.25].map((share) => 1 + share * (next - 1));
    // not as a custom property of the picture: the style of each of its parts would be found anew
    const set = (
      one: SVGElement,
      box: Rect,
      most: number,
      origins: readonly [number, number][],
      near: readonly Rect[] = [],
    ) => {
      const others = [...taken, ...near];
      const found = shares
        .filter((scale) => 1 < scale && scale <= most)
        .flatMap((scale) =>
          origins.map(([x, y]) => ({ scale, x, y, box: grown(box, scale, x, y) })),
        )
        .find((larger) => !others.some((other) => overlap(larger.box, other)));
      taken.push(found?.box ?? box);
      one.style.transform = found ? `scale(${found.scale})` : "";
      one.style.transformOrigin = found ? `${100 * found.x}% ${100 * found.y}%` : "";
    };
    for (const one of toggles) set(one, placed(one.querySelector(".sign") ?? one), next, MIDDLE);
    for (const [one, box, most, near] of measureTitles()) set(one, box, most, LEFT, near);
  };
  let rooms: [SVGElement, Rect, Room, Room][] | undefined; // of a name alone, and beside marks
  const measureNames = () => {
    if (rooms) return rooms;
    rooms = [];
    for (const [id, node] of nodes) {
      const [shape, names] = [shapeOf(node), node.querySelectorAll<SVGElement>(".name")];
      const name = names[0];
      if (!name || names.length > 1 || shape?.localName !== "rect") continue;
      const room = (box: Rect) =>
        roomOf(box, name.textContent?.length ?? 0, Number(name.getAttribute("y")));
      const box = boxOf(shape);
      let beside = box.width;
      for (const { classList, lastElementChild } of parts.get(id) ?? []) {
        const mark = lastElementChild?.previousElementSibling; // the words stand on it
        if (!classList.contains("change") || mark?.localName !== "rect") continue;
        const { x, width } = boxOf(mark as SVGRectElement);
        beside = Math.min(beside, 2 * (middle(box).x - x - width));
      }
      rooms.push([name, box, room(box), room({ ...box, width: beside })]);
    }
    return rooms;
  };
  const nameScale = () => commonScale(measureNames().map(([, , { scale }]) => scale));
  let scaled = "";
  const scaleNames = (most: number, isAlone: boolean) => {
    if (scaled === `${most} ${isAlone}`) return;
    scaled = `${most} ${isAlone}`;
    for (const [name, box, alone, beside] of measureNames()) {
      const { scale, down } = isAlone ? alone : beside;
      name.style.setProperty("--irviz-room", `${Math.min(scale, most)}`);
      const across = isAlone ? middle(box).x - Number(name.getAttribute("x")) : 0;
      name.style.setProperty("--irviz-shift", `${across}px, ${down}px`);
    }
  };
  // the box of a path is known in a page alone
  const first = [...nodes.values()].find((node) => shapeOf(node)?.localName === "rect");
  let known: Map<string, Rect> | undefined;
  const rects = () => {
    if (known) return known;
    const found = new Map([...nodes].map(([id, node]) => [id, rectOf(node)]));
    if (svg.isConnected) known = found;
    return found;
  };
  return {
    ...{ svg, frame, nodes, users, parts, edges, edgesOf, words, rects, enlarge },
    ...{ nameScale, scaleNames },
    edgeOf: addReach(edges),
    start: first ? middle(rectOf(first)) : { x: x + width / 2, y },
    toggles: new Set(signs.map((one) => one.dataset.toggle ?? "")),
    signs: takeSigns(svg),
  };
}

/** Return how far the groups around an element move it. */
function shiftOf(element: Element): Point {
  const shift = { x: 0, y: 0 };
  for (let one = element.parentElement; one instanceof SVGGElement; one = one.parentElement) {
    const matrix = one.transform.baseVal.consolidate()?.matrix;
    shift.x += matrix?.e ?? 0;
    shift.y += matrix?.f ?? 0;
  }
  return shift;
}

/** Return the box of a shape in its own coordinates; that of a path, empty outside of a page. */
function boxOf(shape: SVGGraphicsElement): Rect {
  const number = (name: string) => Number(shape.getAttribute(name) ?? 0);
  if (shape.localName === "rect") {
    const [x, y] = [number("x"), number("y")];
    return { x, y, width: number("width"), height: number("height") };
  }
  if (shape.localName === "circle") {
    const r = number("r");
    return { x: number("cx") - r, y: number("cy") - r, width: 2 * r, height: 2 * r };
  }
  const { x, y, width, height } = shape.isConnected ? shape.getBBox() : new DOMRect();
  return { x, y, width, height };
}

function rectOf(node: Element): Rect {
  const shape = shapeOf(node);
  return shape ? placed(shape) : { x: 0, y: 0, width: 0, height: 0 };
}

/** Return the box of a shape or a text where it is in the picture. */
function placed(shape: SVGGraphicsElement): Rect {
  const [box, shift] = [boxOf(shape), shiftOf(shape)];
  return { ...box, x: box.x + shift.x, y: box.y + shift.y };
}

/** Return a box that grows from a place between its sides, given as shares of its size. */
const grown = (box: Rect, factor: number, fromX: number, fromY: number): Rect => ({
  ...{ x: box.x - box.width * (factor - 1) * fromX, y: box.y - box.height * (factor - 1) * fromY },
  ...{ width: box.width * factor, height: box.height * factor },
});

/** Draw some nodes pale, with the edges of their values. */
export function showPale(picture: DrawnPicture, ids: readonly string[]) {
  const pale = new Set(ids);
  const edges = picture.edges.map(({ element }) => element);
  for (const part of [...[...picture.parts.values()].flat(), ...edges]) {
    const { node, source } = part.dataset;
    part.classList.toggle("irviz-pale", isPale({ node, source }, pale));
  }
}

const nodeAt = (element: Element | null) =>
  element?.closest<SVGElement>("[data-node]")?.dataset.node ?? "";

interface Part {
  node: string;
  toggle: string;
  edge: DrawnEdge | null;
}

/** Return what an event happened on. */
export function partAt(picture: DrawnPicture | null, target: EventTarget | null): Part {
  const element = target instanceof Element ? target : null;
  const node = nodeAt(element);
  const toggle = element?.closest<SVGElement>("[data-toggle]")?.dataset.toggle ?? "";
  const line = element?.closest(".edge, .irviz-reach > path");
  return { node, toggle, edge: (line && picture?.edgeOf.get(line)) ?? null };
}

/** Say from where to where an edge leads, as its ends are labelled. */
export function endsOf({ nodes }: DrawnPicture, { source, target }: Edge): string {
  const label = (id: string) => nodes.get(id)?.querySelector(".name")?.textContent ?? id;
  return `${label(source)} → ${label(target)}`;
}

/** Return what the part under the pointer says of itself. */
export function wordsAt(picture: DrawnPicture, target: EventTarget | null): string {
  let one = target instanceof Element ? target : null;
  while (one && one !== picture.svg) {
    const words = picture.words.get(one);
    if (words !== undefined) return words;
    one = one.parentElement;
  }
  return "";
}

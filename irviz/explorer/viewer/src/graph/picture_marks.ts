// What is drawn over a picture: what is pointed at, selected, gone to or new. The picture itself
// stays as it is, so that no more is drawn again than what changes, however large it is.

import { type DrawnEdge, type DrawnPicture, shapeOf } from "./drawn_picture";

const SVG = "http://www.w3.org/2000/svg";

interface Marks {
  svg: SVGSVGElement;
  /** Outline nodes, or those that weights are lines of, and what is joined to them. */
  hover(ids: readonly string[]): void;
  select(ids: readonly string[]): void;
  /** Show the edge that is pointed at, and outline its ends. */
  follow(edge: DrawnEdge | null): void;
  /** Outline nodes: what is gone to or is new for a moment. */
  outline(name: "changed" | "pulse" | "new" | "preview" | "found", ids: readonly string[]): void;
}

/** Add the marks of a picture to the element that it is in. */
export function createMarks(picture: DrawnPicture): Marks {
  const { ownerDocument: owner } = picture.svg;
  const svg = owner.createElementNS(SVG, "svg");
  svg.setAttribute("class", "irviz irviz-marks");
  for (const name of ["viewBox", "width", "height", "font-family"]) {
    svg.setAttribute(name, picture.svg.getAttribute(name) ?? "");
  }
  svg.ariaHidden = "true";
  const group = (name: string) => {
    const made = owner.createElementNS(SVG, "g");
    made.setAttribute("class", `irviz-mark-${name}`);
    return svg.appendChild(made);
  };
  const outlines = {
    changed: group("changed"),
    found: group("found"),
    preview: group("preview"),
    new: group("new"),
    pulse: group("pulse"),
  };
  const selected = group("selected");
  const near = group("near");
  const followed = group("edge");
  const line = group("line"); // in the box of a node, which may be pointed at
  if (picture.signs) svg.append(picture.signs);

  /** Copy a part to where it is drawn: groups around it may move it. */
  const copy = (part: SVGGraphicsElement, to: SVGGElement) => {
    const made = part.cloneNode(true) as SVGGraphicsElement;
    const moves = [];
    for (let one = part.parentElement; one instanceof SVGGElement; one = one.parentElement) {
      moves.unshift(one.getAttribute("transform") ?? "");
    }
    const transform = moves.join(" ").trim();
    if (transform) made.setAttribute("transform", transform);
    made.removeAttribute("opacity");
    return to.appendChild(made);
  };
  /** Copy nodes, which are seen where they are pale in the picture. */
  const copyNodes = (ids: Iterable<string>, to: SVGGElement) => {
    const copies = owner.createElementNS(SVG, "g");
    copies.setAttribute("class", "irviz-copies");
    to.append(copies);
    for (const id of ids) for (const part of picture.parts.get(id) ?? []) copy(part, copies);
  };
  /** Copy the edges of nodes, in one colour those that lead to them, in another those from them;
   * return the nodes at their other ends, each with the class of that colour. */
  const copyEdges = (ids: readonly string[], to: SVGGElement) => {
    const joined = new Map<string, string>();
    const edges = new Set(ids.flatMap((id) => picture.edgesOf.get(id) ?? []));
    for (const { element, source, target } of edges) {
      const isIn = ids.includes(target);
      const flow = isIn ? "irviz-flow-in" : "irviz-flow-out";
      copy(element, to).classList.add(flow);
      joined.set(isIn ? source : target, flow);
    }
    for (const id of ids) joined.delete(id);
    return joined;
  };
  const outlineOne = (part: SVGGElement | undefined, to: SVGGElement, name: string) => {
    const shape = part && shapeOf(part);
    if (!shape) return;
    const made = copy(shape, to);
    made.setAttribute("class", name);
    // the shape's own attributes would win over nothing, but are not wanted
    for (const one of ["fill", "stroke", "stroke-width", "stroke-dasharray"]) {
      made.removeAttribute(one);
    }
  };
  const outline = (ids: readonly string[], to: SVGGElement, name: string) => {
    for (const id of ids) outlineOne(picture.nodes.get(id), to, name);
  };
  return {
    svg,
    hover(ids) {
      near.replaceChildren();
      const users = ids.map((id) => picture.users.get(id) ?? id);
      const known = [...new Set(users)].filter((id) => picture.nodes.has(id));
      const joined = copyEdges(known, near);
      copyNodes([...joined.keys(), ...known], near);
      for (const [id, flow] of joined) outline([id], near, `irviz-outline ${flow}`);
      outline(known, near, "irviz-outline");
    },
    select(ids) {
      selected.replaceChildren();
      line.replaceChildren();
      const known = ids.filter((id) => picture.nodes.has(id));
      copyEdges(known, selected);
      copyNodes(known, selected);
      for (const id of known) {
        if (!picture.users.has(id)) {
          outline([id], selected, "irviz-halo");
          continue;
        }
        for (const part of picture.parts.get(id) ?? []) {
          outlineOne(part, line, "irviz-tint"); // a frame would cut through the text
          copy(part, line);
        }
      }
    },
    follow(edge) {
      followed.replaceChildren();
      if (!edge) return;
      copy(edge.element, followed);
      outline([edge.source, edge.target], followed, "irviz-outline");
    },
    outline(name, ids) {
      const to = outlines[name];
      to.replaceChildren();
      outline(ids, to, "irviz-outline");
      // the same animation begins again only where there is another element
      const fresh = to.cloneNode(true) as SVGGElement;
      to.replaceWith(fresh);
      outlines[name] = fresh;
    },
  };
}

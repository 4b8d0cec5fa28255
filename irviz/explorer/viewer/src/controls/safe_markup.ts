// The one place where markup from Python enters the page: what irviz does not write is taken out.

import DOMPurify, { type Config } from "dompurify";

// No data-* but these: JupyterLab runs commands that are named in others.
const DATA = [
  ...["data-node", "data-source", "data-target", "data-toggle", "data-loop"],
  ...["data-function", "data-goto"],
];

const SVG_TAGS = "svg g title path rect circle ellipse polygon text tspan";
const SVG_ATTRIBUTES =
  "xmlns viewBox width height x y cx cy r rx ry d points transform class style role aria-label " +
  "fill fill-opacity stroke stroke-width stroke-dasharray stroke-linejoin stroke-linecap " +
  "opacity font-family font-size font-weight font-style text-anchor paint-order pointer-events";
const HTML_TAGS =
  "div p ul ol li h3 dl dt dd table thead tbody tr th td pre code b span small button meter";

const allowing = (tags: string, attributes: string): Config => ({
  ALLOWED_TAGS: tags.split(" "),
  ALLOWED_ATTR: [...attributes.split(" "), ...DATA],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ADD_URI_SAFE_ATTR: [...DATA, "aria-label"], // names, in which a colon is no protocol's
  TRUSTED_TYPES_POLICY: null, // a page may have one of its name, and several bundles hold DOMPurify
});

const SVG = allowing(SVG_TAGS, SVG_ATTRIBUTES);
const HTML: Config = {
  ...allowing(
    `${HTML_TAGS} ${SVG_TAGS} image`,
    `${SVG_ATTRIBUTES} type colspan value min max low high xlink:href`,
  ),
  // shapes that are drawn by reference only, in pictures of Matplotlib: alone they would be black
  ADD_FORBID_CONTENTS: ["defs", "clippath"],
};

// Colours of the page, and two of them mixed.
const COLOURS = /var\(--irviz-[a-z-]+\)/g;
const MIXED = /^color-mix\(in oklab, var\(--irviz-[a-z-]+\), var\(--irviz-[a-z-]+\) [\d.]+%\)$/;

// Pixels, which a heat map has: an image that is in the text and can refer to nothing.
const PIXELS = /^data:image\/png;base64,[\w+/=\s]+$/;

// Without other parentheses, and backslashes, a value calls no CSS function: it refers to nothing
// outside.
DOMPurify.addHook("uponSanitizeAttribute", (_, attribute) => {
  const { attrName, attrValue } = attribute;
  const isStyle = /^(style|fill|stroke|opacity|font|text|paint|pointer)/.test(attrName);
  const others = MIXED.test(attrValue) ? "" : attrValue.replace(COLOURS, "");
  if (isStyle && /[()\\]/.test(others)) attribute.keepAttr = false;
  if (attrName === "xlink:href" && !PIXELS.test(attrValue)) attribute.keepAttr = false;
});

/** Return what a part of a picture is but for its numbers and its words. */
const shapeOf = (part: Element) => part.outerHTML.replace(/>[^<]+</g, "><").replace(/\d+/g, "0");

/** Copy a picture without those of its parts that differ from another in numbers or words alone. */
function sampled(picture: Element): Element {
  const sample = picture.cloneNode() as Element;
  const shapes = new Set<string>();
  for (const child of picture.children) {
    const group = sample.appendChild(child.cloneNode(child.localName !== "g")) as Element;
    for (const part of child.localName === "g" ? child.children : []) {
      const shape = shapeOf(part);
      if (!shapes.has(shape)) group.append(part.cloneNode(true));
      shapes.add(shape);
    }
  }
  return sample;
}

/** Parse the text of an SVG picture and sanitise it; throw an Error that says what is wrong with it.
 *
 * DOMPurify takes 50 µs an element: a second for 2,000 nodes. It judges the names of elements and
 * attributes, and values by patterns that tell no digit from another, and text does nothing. So
 * nothing is taken out of the picture where nothing is out of a sample with each shape of its parts.
 */
export function readSvg(text: string, owner: Document = document): SVGSVGElement {
  const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
  const error = parsed.getElementsByTagName("parsererror")[0];
  if (error) throw new Error((error.querySelector("div") ?? error).textContent?.trim());
  const picture = parsed.documentElement;
  DOMPurify.sanitize(sampled(picture), { ...SVG, IN_PLACE: true });
  if (DOMPurify.removed.length) DOMPurify.sanitize(picture, { ...SVG, IN_PLACE: true });
  const svg = owner.adoptNode(picture) as Element;
  if (!(svg instanceof SVGSVGElement) || !svg.viewBox.baseVal?.width) {
    throw new Error("it is no SVG with a viewBox.");
  }
  return svg;
}

/** Parse and sanitise HTML. */
export function readHtml(text: string): DocumentFragment {
  return DOMPurify.sanitize(text, { ...HTML, RETURN_DOM_FRAGMENT: true });
}

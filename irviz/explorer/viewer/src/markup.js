// The one place where markup from Python enters the page: what irviz does not write is taken out.

import DOMPurify from "dompurify";

/** @import { Config } from "dompurify" */

// No data-* but these: JupyterLab runs commands that are named in others.
const IDS = ["data-node", "data-source", "data-target", "data-toggle", "data-choice"];

/** @type {(tags: string, attributes: string) => Config} */
const allowing = (tags, attributes) => ({
  ALLOWED_TAGS: tags.split(" "),
  ALLOWED_ATTR: [...attributes.split(" "), ...IDS],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ADD_URI_SAFE_ATTR: [...IDS, "aria-label"], // names, in which a colon is no protocol's
  TRUSTED_TYPES_POLICY: null, // a page may have one of its name, and several bundles hold DOMPurify
});

const SVG = allowing(
  "svg g title path rect circle ellipse polygon text",
  "xmlns viewBox width height x y cx cy r rx ry d points transform class style role aria-label " +
    "fill fill-opacity stroke stroke-width stroke-dasharray stroke-linejoin stroke-linecap " +
    "opacity font-family font-size font-weight text-anchor paint-order pointer-events",
);

const HTML = allowing("div ul li h5 code b span small", "class title");

// Without parentheses and backslashes a value calls no CSS function: it refers to nothing outside.
DOMPurify.addHook("uponSanitizeAttribute", (_, attribute) => {
  const isStyle = /^(style|fill|stroke|opacity|font|text|paint|pointer)/.test(attribute.attrName);
  if (isStyle && /[()\\]/.test(attribute.attrValue)) attribute.keepAttr = false;
});

/** Return what a part of a picture is but for its numbers and its words.
 * @type {(part: Element) => string} */
const shapeOf = (part) => part.outerHTML.replace(/>[^<]+</g, "><").replace(/\d+/g, "0");

/** Copy a picture without those of its parts that differ from another in numbers or words alone.
 * @type {(picture: Element) => Element} */
function sampled(picture) {
  const sample = /** @type {Element} */ (picture.cloneNode(true));
  const shapes = new Set();
  for (const part of sample.querySelectorAll(":scope > g > *")) {
    const shape = shapeOf(part);
    if (shapes.has(shape)) part.remove();
    shapes.add(shape);
  }
  return sample;
}

/** Parse the text of an SVG picture and sanitise it; throw an Error that says what is wrong with it.
 *
 * DOMPurify takes 50 µs an element: a second for 2,000 nodes. It judges the names of elements and
 * attributes, and values by patterns that tell no digit from another, and text does nothing. So
 * nothing is taken out of the picture where nothing is out of a sample with each shape of its parts.
 * @type {(text: string, document: Document) => SVGSVGElement} */
export function readSvg(text, document) {
  const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
  const error = parsed.getElementsByTagName("parsererror")[0];
  if (error) throw new Error((error.querySelector("div") ?? error).textContent?.trim());
  const picture = parsed.documentElement;
  DOMPurify.sanitize(sampled(picture), { ...SVG, IN_PLACE: true });
  if (DOMPurify.removed.length) DOMPurify.sanitize(picture, { ...SVG, IN_PLACE: true });
  const svg = document.adoptNode(picture);
  if (!(svg instanceof SVGSVGElement) || !svg.viewBox.baseVal?.width) {
    throw new Error("it is no SVG with a viewBox.");
  }
  return svg;
}

/** Parse and sanitise HTML.
 * @type {(text: string) => DocumentFragment} */
export const readHtml = (text) => DOMPurify.sanitize(text, { ...HTML, RETURN_DOM_FRAGMENT: true });

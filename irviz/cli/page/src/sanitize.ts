// Takes everything that could act out of the HTML of a widget's description.

import DOMPurify from "dompurify";

export default function sanitize(
  html: string,
  allowed: { allowedTags: string[] } = { allowedTags: [] },
): string {
  return DOMPurify.sanitize(html, {
    ALLOWED_TAGS: allowed.allowedTags,
    ALLOWED_ATTR: ["class", "title", "href"],
  });
}

// Markup from Python as a part of what Preact draws.

import { useLayoutEffect, useRef } from "preact/hooks";
import { readHtml } from "./safe_markup";

interface Props {
  html: string;
  class?: string;
}

/** HTML from Python, sanitised. */
export function Html({ html, class: name = "" }: Props) {
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => element.current?.replaceChildren(readHtml(html)), [html]);
  return <div class={name} ref={element} />;
}

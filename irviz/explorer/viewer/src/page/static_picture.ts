// The picture that a notebook keeps for when no kernel runs.

/** Hide it as long as the widget's own style element is there. */
export function hideStaticPicture(name: string, el: HTMLElement) {
  if (!/^[\w-]+$/.test(name)) return;
  const style = el.ownerDocument.createElement("style");
  style.textContent = `.${name}, .jp-OutputArea-child:has(.${name}) { display: none }`;
  el.append(style);
}

/** Copy by a selection, where the page has no clipboard of its own.
 * @type {(text: string, root: Element) => boolean} */
function copySelected(text, root) {
  const area = document.createElement("textarea");
  area.value = text;
  area.style.position = "fixed";
  area.style.opacity = "0";
  root.append(area);
  area.select();
  const isDone = document.execCommand("copy");
  area.remove();
  return isDone;
}

/** Put a text on the clipboard; return whether the browser lets it.
 * @type {(text: string, root: Element, clipboard?: Pick<Clipboard, "writeText">) =>
 *   Promise<boolean>} */
export async function copy(text, root, clipboard = globalThis.navigator?.clipboard) {
  try {
    await clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text, root); // a page without a permission, or without TLS
  }
}

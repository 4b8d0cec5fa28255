// The clipboard of the page.

/** Copy by a selection, where the page has no clipboard of its own. */
function copySelected(text: string, root: Element): boolean {
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

/** Put a text on the clipboard; return whether the browser lets it. */
export async function copy(
  text: string,
  root: Element,
  clipboard: Pick<Clipboard, "writeText"> | undefined = globalThis.navigator?.clipboard,
): Promise<boolean> {
  try {
    if (!clipboard) return copySelected(text, root);
    await clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text, root); // a page without a permission, or without TLS
  }
}

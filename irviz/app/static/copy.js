// A button that puts a text from Python on the clipboard.

/** Copy by a selection, where the page has no clipboard of its own. */
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

export async function copy(text, root, clipboard = globalThis.navigator?.clipboard) {
  try {
    await clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text, root); // a page without a permission, or without TLS
  }
}

function render({ model, el, signal }) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "jupyter-button widget-button irviz-copy";
  button.title = "Put a script on the clipboard that makes this stage with TVM alone";
  button.textContent = model.get("label");
  button.addEventListener("click", () => model.send({ copy: true }));
  const answered = async () => {
    const isDone = await copy(model.get("text"), el);
    button.textContent = isDone ? "Copied" : "The browser refuses to copy";
    setTimeout(() => { button.textContent = model.get("label"); }, 1500);
  };
  model.on("change:serial", answered);
  signal?.addEventListener("abort", () => model.off("change:serial", answered));
  el.replaceChildren(button);
}

export default { render };

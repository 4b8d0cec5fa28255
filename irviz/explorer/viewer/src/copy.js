// A button that puts a text from Python on the clipboard.

import { copy } from "./clipboard.js";

/** @import { CopyMessage, CopyTraits, RenderProps } from "./messages" */

/** @type {(props: RenderProps<CopyTraits, CopyMessage>) => () => void} */
function render({ model, el }) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "jupyter-button widget-button irviz-copy";
  button.title = "Put a script on the clipboard that makes this stage with TVM alone";
  const showLabel = () => {
    button.textContent = model.get("label");
  };
  const answered = async () => {
    const isDone = await copy(model.get("text"), el);
    button.textContent = isDone ? "Copied" : "The browser refuses to copy";
    setTimeout(showLabel, 1500);
  };
  button.addEventListener("click", () => model.send({ action: "CopyScript" }));
  model.on("change:serial", answered);
  showLabel();
  el.replaceChildren(button);
  return () => model.off("change:serial", answered);
}

export default { render };

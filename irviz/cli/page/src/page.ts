// The page: the first picture is in the document, and gives way to the widget once that is there.

import { Widget } from "@lumino/widgets";
import { Connection } from "./connection";
import { PageManager } from "./widget_manager";

const main = element("main");
const first = element("first");

function element(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (!found) throw new Error(`The page has no element ${id}.`);
  return found;
}

/** Remove the first picture when the widget shows one, or says why it does not. */
function removeFirstPicture(): void {
  const watching = new MutationObserver(look);
  function look() {
    if (!main.querySelector("svg.irviz, .irviz-error")) return;
    watching.disconnect();
    first.remove();
  }
  watching.observe(main, { childList: true, subtree: true });
  look();
}

/** Let the body say how the connection is: "idle", "busy" or "dead". */
function followConnection(connection: Connection): void {
  const tell = () => {
    document.body.dataset.connection = connection.status;
  };
  connection.statusChanged.connect(tell);
  tell();
}

/** Say what is being opened and for how long, and return the widget's id once it is open. */
async function opened(): Promise<string> {
  const began = Date.now();
  const name = first.querySelector("h1")?.textContent;
  const tick = setInterval(() => {
    say(`Opening ${name} … ${Math.round((Date.now() - began) / 1000)} s`);
  }, 1000);
  const answer = await fetch(`opened${location.search}`); // with the token
  const { model, title } = (await answer.json()) as { model: string; title: string };
  clearInterval(tick);
  if (!model) {
    location.reload(); // to the page that says why, and on which another can be chosen
    return new Promise(() => {});
  }
  document.title = `${title} · irviz`;
  return model;
}

function say(words: string): void {
  const status = first.querySelector("[role=status]");
  if (status) status.textContent = words;
}

async function show(): Promise<void> {
  const address = new URL("connection", location.href);
  address.protocol = "ws:";
  address.search = location.search; // the token
  const connection = new Connection(address.href);
  await connection.open();
  followConnection(connection);
  const manager = new PageManager(connection);
  const id = main.dataset.model || (await opened());
  // Python makes all widgets at once: the connection has heard of all of them, or of none
  if (!manager.has_model(id)) await manager.load();
  const model = await manager.get_model(id);
  const view = await manager.create_view(model as never);
  removeFirstPicture();
  Widget.attach(view.luminoWidget, main);
  window.addEventListener("resize", () => view.luminoWidget.update());
}

/** Tell widgets whether the page is dark, as JupyterLab does. */
function followTheme(): void {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const tell = () => {
    document.body.dataset.jpThemeLight = String(!dark.matches);
  };
  dark.addEventListener("change", tell);
  tell();
}

followTheme();
show().catch((failure: Error) => {
  say(failure.message);
});

// What the viewer is shown in: a notebook or page with a kernel, or a file without one.

import { type Signal, signal } from "@preact/signals";
import type { ViewerMessage, ViewerTraits, WrittenTraits } from "./schema";

/** The kernel behind the viewer: "none" in a file, "busy" while it computes. */
export type Connection = "none" | "idle" | "busy" | "lost";

/** The traits, as far as the page may write them. */
export type WritableTraits = WrittenTraits & Pick<ViewerTraits, "selection">;

export interface Host {
  /** Whether there may be a kernel, and so forms and actions. */
  readonly isLive: boolean;
  readonly connection: Signal<Connection>;
  get<Name extends keyof ViewerTraits>(name: Name): ViewerTraits[Name];
  set<Name extends keyof WritableTraits>(name: Name, value: WritableTraits[Name]): void;
  /** Call a function with each new value; return what ends that. */
  follow<Name extends keyof ViewerTraits>(name: Name, listener: () => void): () => void;
  /** Tell whether an action can be asked for now. */
  offers(action: ViewerMessage["action"]): boolean;
  send(message: ViewerMessage, buffers?: ArrayBuffer[]): void;
  /** Put the ipywidget of a reference into an element; return what removes it. */
  mount(reference: string, element: HTMLElement): Promise<() => void>;
}

/** The view of an ipywidget, as far as it is used. */
interface WidgetView {
  el: HTMLElement;
  remove(): void;
  luminoWidget?: LuminoWidget;
  pWidget?: LuminoWidget;
}
interface LuminoWidget {
  constructor: { attach?: (widget: LuminoWidget, host: HTMLElement) => void };
}
interface KernelLike {
  connectionStatus?: string;
  status?: string;
  connectionStatusChanged?: Observable;
  statusChanged?: Observable;
}
interface Observable {
  connect(listener: () => void): void;
  disconnect(listener: () => void): void;
}
interface WidgetManager {
  get_model(id: string): Promise<unknown>;
  /** marimo has none: it shows anywidgets alone. */
  create_view?: (model: unknown) => Promise<WidgetView>;
  kernel?: KernelLike | null;
}

/** What anywidget gives to `render`. */
export interface AnyModel {
  get<Name extends keyof ViewerTraits>(name: Name): ViewerTraits[Name];
  set<Name extends keyof ViewerTraits>(name: Name, value: ViewerTraits[Name]): void;
  save_changes(): void;
  send(message: ViewerMessage, callbacks?: undefined, buffers?: ArrayBuffer[]): void;
  on(event: string, listener: (...given: never[]) => void): void;
  off(event: string, listener: (...given: never[]) => void): void;
  widget_manager?: WidgetManager;
}

/** Return the host of a widget whose state a kernel shares. */
export function liveHost(model: AnyModel, signal_: AbortSignal): Host {
  const manager = model.widget_manager;
  const connection = signal<Connection>("idle");
  const kernel = manager?.kernel;
  let isNew = false; // a kernel that was started again knows nothing of this widget
  const tell = () => {
    isNew ||= kernel?.status?.includes("restarting") ?? false;
    const isLost = isNew || kernel?.connectionStatus !== "connected" || kernel.status === "dead";
    if (kernel) connection.value = isLost ? "lost" : kernel.status === "busy" ? "busy" : "idle";
  };
  for (const source of [kernel?.connectionStatusChanged, kernel?.statusChanged]) {
    source?.connect(tell);
    signal_.addEventListener("abort", () => source?.disconnect(tell));
  }
  tell();
  return {
    isLive: true,
    connection,
    get: (name) => model.get(name),
    set(name, value) {
      model.set(name, value as never);
      model.save_changes();
    },
    follow(name, listener) {
      model.on(`change:${name}`, listener);
      return () => model.off(`change:${name}`, listener);
    },
    offers: () => connection.value !== "lost",
    send: (message, buffers) => model.send(message, undefined, buffers),
    async mount(reference, element) {
      if (!manager?.create_view) {
        throw new Error(
          "it is an ipywidget, and this notebook shows only anywidgets. Do it in Python: " +
            'explorer.session = explorer.session.apply("LegalizeOps"), for example.',
        );
      }
      const found = await manager.get_model(reference.replace("IPY_MODEL_", ""));
      const view = await manager.create_view(found);
      const widget = view.luminoWidget ?? view.pWidget;
      // attached by Lumino, boxes show their children; appended they do not
      if (widget?.constructor.attach) widget.constructor.attach(widget, element);
      else element.append(view.el);
      return () => {
        // JupyterLab has taken a deleted cell out already, and Lumino detaches only what is shown
        if (!view.el.isConnected) document.body.append(view.el);
        view.remove();
      };
    },
  };
}

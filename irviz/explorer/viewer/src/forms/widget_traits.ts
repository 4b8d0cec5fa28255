// The traits of a small widget, as values that its components are drawn from.

import { useSignal } from "@preact/signals";
import { type ComponentType, h, render } from "preact";
import { useEffect } from "preact/hooks";

/** What anywidget gives to `render`, of a widget with these traits. */
export interface Model<Traits> {
  get<Name extends keyof Traits>(name: Name): Traits[Name];
  set<Name extends keyof Traits>(name: Name, value: Traits[Name]): void;
  save_changes(): void;
  on(event: string, listener: () => void): void;
  off(event: string, listener: () => void): void;
}

/** Return what anywidget takes: it shows a component in the widget's element. */
export const widget = <Traits>(component: ComponentType<{ model: Model<Traits> }>) => ({
  render({ model, el }: { model: Model<Traits>; el: HTMLElement }) {
    render(h(component, { model }), el);
    return () => render(null, el);
  },
});

/** Return a trait, and draw the component again when it changes. */
export function useTrait<Traits, Name extends keyof Traits & string>(
  model: Model<Traits>,
  name: Name,
): Traits[Name] {
  const shown = useSignal(model.get(name));
  useEffect(() => {
    const tell = () => {
      shown.value = model.get(name);
    };
    tell();
    model.on(`change:${name}`, tell);
    return () => model.off(`change:${name}`, tell);
  }, [model]);
  return shown.value;
}

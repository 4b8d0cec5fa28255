/** @import { Model } from "./messages" */

/** Call each listener now and whenever its trait changes; return the function that ends this.
 *
 * @template Traits
 * @param {Model<Traits, never>} model
 * @param {Partial<Record<keyof Traits & string, () => void>>} listeners
 * @returns {() => void} */
export function watch(model, listeners) {
  const names = /** @type {(keyof Traits & string)[]} */ (Object.keys(listeners));
  for (const name of names) {
    const listener = listeners[name];
    if (!listener) continue;
    model.on(`change:${name}`, listener);
    listener();
  }
  return () => {
    for (const name of names) {
      const listener = listeners[name];
      if (listener) model.off(`change:${name}`, listener);
    }
  };
}

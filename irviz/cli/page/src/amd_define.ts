// What anywidget calls to give its classes: esbuild puts this in the place of the global `define`.

import * as base from "@jupyter-widgets/base";

type Classes = Record<string, unknown>;

let classes: Classes = {};

export function define(_: string[], factory: (needed: typeof base) => Classes): void {
  classes = factory(base);
}

/** Return what the AMD module gave. */
export function defined(): Classes {
  return classes;
}

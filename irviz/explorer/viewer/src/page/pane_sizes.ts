// The widths and heights of the viewer's parts: their limits, and how large they are now.

import { type Signal, signal } from "@preact/signals";

export interface Range {
  least: number;
  most: number;
  usual: number;
}

export const RANGES = {
  rail: { least: 160, most: 480, usual: 280 },
  inspector: { least: 280, most: 520, usual: 360 },
  script: { least: 96, most: 900, usual: 236 },
  height: { least: 320, most: 1600, usual: 560 },
} as const satisfies Record<string, Range>;

export type Size = keyof typeof RANGES;

// as long as the page lives: a cell that is drawn again has the sizes that it had
const remembered = new Map<Size, number>();

/** The sizes of the parts of one viewer, in px. */
export type Sizes = Record<Size, Signal<number>>;

export function makeSizes(usual: Partial<Record<Size, number>> = {}): Sizes {
  const names = Object.keys(RANGES) as Size[];
  const entries = names.map((name) => {
    return [name, signal(remembered.get(name) ?? usual[name] ?? RANGES[name].usual)];
  });
  return Object.fromEntries(entries);
}

/** Let viewers that are drawn later have this size, too. */
export const remember = (name: Size, px: number) => void remembered.set(name, px);

// What is chosen of a loop nest, and where keys and marks lead, as values.

/** What is chosen after a click on `id`: it alone, or added to the rest; a second click takes it
 * out. */
export function choose(chosen: readonly string[], id: string, isAdding: boolean): string[] {
  if (chosen.includes(id)) return isAdding ? chosen.filter((one) => one !== id) : [];
  return isAdding ? [...chosen, id] : [id];
}

/** Which number of `count` an arrow key leads to, from number `at` (-1 for none); it stays inside. */
export const along = (count: number, at: number, step: number) =>
  Math.min(Math.max(at + step, 0), count - 1);

/** How far to scroll so that a part's beginning is inside of a box; both are rectangles. */
export function overshoot(part: { top: number }, box: { top: number; bottom: number }): number {
  const [above, below] = [part.top - box.top, part.top + 40 - box.bottom];
  return above < 0 ? above : Math.max(below, 0);
}

// What was looked at, to go back and forward, as values.

import type { Side } from "../schema";

/** A function of a stage, perhaps compared with another, and what is selected there. */
export interface Place {
  function: string;
  stage: string;
  reference: string;
  node: string;
  side: Side;
}

/** The places that were looked at; `at` is where we are, -1 before the first. */
export interface Visits {
  places: readonly Place[];
  at: number;
}

const MOST = 100;

export const beginning: Visits = { places: [], at: -1 };

const isSame = (one: Place | undefined, other: Place) =>
  one !== undefined &&
  (Object.keys(other) as (keyof Place)[]).every((key) => one[key] === other[key]);

/** Add a place after the one where we are. To select nothing is no place of its own; the first node
 * that is selected in a scene takes the place of the scene without a selection. */
export function visit(visits: Visits, place: Place): Visits {
  const here = visits.places[visits.at];
  if (isSame(here, place)) return visits;
  const isHere = here && isSame({ ...here, node: place.node, side: place.side }, place);
  if (isHere && !place.node) return visits;
  const kept = visits.places.slice(0, visits.at + (isHere && !here.node ? 0 : 1));
  const places = [...kept, place].slice(-MOST);
  return { places, at: places.length - 1 };
}

/** Go `by` places back or forward, as far as there are any. */
export function stepTo(visits: Visits, by: number): Visits {
  const at = Math.min(Math.max(visits.at + by, 0), visits.places.length - 1);
  return at === visits.at ? visits : { ...visits, at };
}

/** Tell whether there is a place before, and one after. */
export const placesBefore = ({ places, at }: Visits) => ({
  back: at > 0,
  forward: at < places.length - 1,
});

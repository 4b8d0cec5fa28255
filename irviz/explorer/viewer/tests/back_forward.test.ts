import assert from "node:assert/strict";
import test from "node:test";

import { beginning, type Place, placesBefore, stepTo, visit } from "../src/page/back_forward";

const place = (stage: string, node = ""): Place => ({
  ...{ function: "main", stage, reference: "", node, side: "current" },
});
const after = (...places: Place[]) => places.reduce(visit, beginning);

test("each stage and each selected node is a place to go back to", () => {
  const visits = after(place("0"), place("1"), place("1", "a"), place("1", "b"));
  assert.deepEqual(
    visits.places.map(({ stage, node }) => stage + node),
    ["0", "1a", "1b"],
  );
});

test("to select nothing, or the same again, is no place", () => {
  const visits = after(place("0", "a"), place("0", ""), place("0", "a"));
  assert.equal(visits.places.length, 1);
});

test("back and forward lead along the places, and not past the ends", () => {
  const visits = after(place("0"), place("1"));
  const back = stepTo(visits, -1);
  assert.equal(back.places[back.at]?.stage, "0");
  assert.deepEqual(placesBefore(back), { back: false, forward: true });
  assert.equal(stepTo(back, -1), back);
  assert.equal(stepTo(back, 1).at, visits.at);
});

test("a new place after going back takes the place of those ahead", () => {
  const back = stepTo(after(place("0"), place("1"), place("2")), -1);
  const visits = visit(back, place("5"));
  assert.deepEqual(
    visits.places.map(({ stage }) => stage),
    ["0", "1", "5"],
  );
  assert.deepEqual(placesBefore(visits), { back: true, forward: false });
});

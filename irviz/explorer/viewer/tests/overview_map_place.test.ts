import assert from "node:assert/strict";
import test from "node:test";

import { placeOfMap, usualPlace } from "../src/graph/overview_map_place";

const pane = { width: 1000, height: 500 };
const seen = { x: 500, y: 250, scale: 1 };
const map = { width: 150, height: 100 };
const at = (x: number, y: number) => ({ x, y, width: 60, height: 30 });

test("the map stays where it is while no node lies under it", () => {
  assert.deepEqual(placeOfMap([at(0, 0)], seen, pane, map, "bottom right"), usualPlace);
  assert.deepEqual(placeOfMap([at(0, 0)], seen, pane, map, "top right"), {
    corner: "top right",
    isOver: false,
  });
});

test("the map goes to a corner where it hides no node", () => {
  const nodes = [at(920, 450), at(900, 20)];
  const place = placeOfMap(nodes, seen, pane, map, "bottom right");
  assert.deepEqual(place, { corner: "bottom left", isOver: false });
});

test("where nodes lie in every corner it is told that the map lies over some", () => {
  const nodes = [at(920, 450), at(900, 20), at(10, 10), at(10, 460)];
  const place = placeOfMap(nodes, seen, pane, map, "bottom right");
  assert.deepEqual(place, { corner: "bottom right", isOver: true });
});

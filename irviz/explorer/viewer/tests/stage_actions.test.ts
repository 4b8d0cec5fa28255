import assert from "node:assert/strict";
import test from "node:test";

import { signal } from "@preact/signals";
import type { ViewerMessage } from "../src/schema";
import {
  checkout as checkoutStage,
  compareWithParent,
  stepStage,
  visit,
} from "../src/stages/stage_actions";
import type { State } from "../src/state";

/** A chain of stages 0 to 4, of which 2 changed nothing, and what is asked for. */
function chain(shown: string, reference: string) {
  const asked: ViewerMessage[] = [];
  const ids = ["0", "1", "2", "3", "4"];
  const rows = ids.map((id, at) => ({
    ...{ id, parent: ids[at - 1] ?? "", headings: [], depth: 0, label: id },
    isSame: id === "2",
    isShown: id === shown,
  }));
  const scene = { current: { stage: shown }, reference: reference ? { stage: reference } : null };
  const of = (value: unknown) => signal(value);
  const state = {
    ...{ rows: of(rows), scene: of(scene), current: of(rows.find((row) => row.isShown)) },
    ...{ asked: of(""), hidesSame: of(false), isComparing: of(reference !== "") },
    can: () => true,
    ask: (message: ViewerMessage) => asked.push(message),
  } as unknown as State;
  return { state, asked };
}

const checkout = (stage: string, reference: string | null = null) => ({
  ...{ action: "Checkout", stage, reference },
});

test("a step goes to the stage beside, or to the next that changed something", () => {
  const plain = chain("1", "");
  stepStage(plain.state, 1);
  assert.deepEqual(plain.asked, [checkout("2")]);
  const skipping = chain("1", "");
  stepStage(skipping.state, 1, true);
  assert.deepEqual(skipping.asked, [checkout("3")]);
});

test("a comparison with the stage before goes along with a step, another one keeps its first stage", () => {
  const pair = chain("2", "1");
  stepStage(pair.state, 1);
  assert.deepEqual(pair.asked, [checkout("3", "2")]);
  const back = chain("2", "1");
  stepStage(back.state, -1);
  assert.deepEqual(back.asked, [checkout("1", "0")]);
  const pinned = chain("2", "0");
  stepStage(pinned.state, 1);
  assert.deepEqual(pinned.asked, [checkout("3")]);
});

test("a comparison with the stage before goes along with a click, too", () => {
  const pair = chain("1", "0");
  visit(pair.state, "4");
  assert.deepEqual(pair.asked, [checkout("4", "3")]);
  const pinned = chain("2", "0");
  visit(pinned.state, "4");
  assert.deepEqual(pinned.asked, [checkout("4")]);
});

test("a stage that is shown already is not waited for", () => {
  const pair = chain("2", "1");
  visit(pair.state, "2");
  assert.deepEqual(pair.asked, []);
  const alone = chain("2", "");
  checkoutStage(alone.state, "2", "1");
  assert.deepEqual(alone.asked, [checkout("2", "1")]);
  for (const { state } of [pair, alone]) assert.equal(state.asked.peek(), "");
});

test("the first stage is compared with none, which is said", () => {
  const first = chain("0", "");
  compareWithParent(first.state);
  assert.deepEqual(
    first.asked.map(({ action }) => action),
    ["Say"],
  );
});

// The functions of a stage that lacks the one that is looked at, those that changed most first.

import { useSignal } from "@preact/signals";
import { Button } from "../controls/button";
import type { FunctionRow } from "../schema";
import type { State } from "../state";
import { OtherFunctions } from "./other_functions";

const FEW = 8; // functions that need no filter

/** Return the functions whose name or change has all words, those with the most changes first. */
export function foundFunctions(rows: readonly FunctionRow[], words: string): FunctionRow[] {
  const wanted = words.toLowerCase().split(/\s+/);
  return rows
    .filter((row) => {
      const text = `${row.name} ${row.kind} ${row.words}`.toLowerCase();
      return wanted.every((word) => text.includes(word));
    })
    .sort((one, other) => other.changes - one.changes);
}

export function FunctionTable({ state }: { state: State }) {
  const words = useSignal("");
  const all = state.functions.value;
  const rows = foundFunctions(all, words.value);
  const isSame = all.every(({ changes }) => changes === 0);
  const isKnown = !isSame && all.some(({ changes }) => changes >= 0);
  const { current, reference } = state.scene.value;
  const before = reference?.stage ?? state.current.value?.parent ?? "";
  const open = (row: FunctionRow | undefined) => {
    if (row) state.ask({ action: "Focus", function: row.name });
  };
  return (
    <section class="irviz-function-table" aria-label="Functions of this stage">
      <p role="alert">{current?.error}</p>
      {isSame && all.length ? <p>None of these differs from stage {before}.</p> : null}
      <p>
        <OtherFunctions state={state} names={current?.instead ?? []} />{" "}
        {reference && state.shows("script") ? (
          <Button title="Show what differs in the TVMScript" onPress={() => state.choose("text")}>
            Compare the texts
          </Button>
        ) : null}
      </p>
      {all.length > FEW ? (
        <input
          type="search"
          class="irviz-field"
          placeholder={`Filter ${all.length} functions`}
          aria-label="Filter functions"
          title="Enter opens the first"
          value={words}
          onInput={(event) => {
            words.value = event.currentTarget.value;
          }}
          onKeyDown={(event) => {
            if (event.key === "Enter") open(rows[0]);
          }}
        />
      ) : null}
      <table>
        <thead>
          <tr>
            <th scope="col">function</th>
            <th scope="col">kind</th>
            {isKnown ? <th scope="col">since stage {before}</th> : null}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.name} data-same={row.changes === 0 ? "" : undefined}>
              <td>
                <button type="button" disabled={!state.can("Focus")} onClick={() => open(row)}>
                  {row.name}
                </button>
              </td>
              <td>{row.kind}</td>
              {isKnown ? <td>{row.words || (row.changes === 0 ? "unchanged" : "")}</td> : null}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

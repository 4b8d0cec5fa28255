// What can be done with the loops and blocks that are chosen: the steps that are legal there.

import { useLayoutEffect, useRef } from "preact/hooks";
import { Button } from "./button";
import type { OfferedStep } from "./schema";
import type { State } from "./state";

export const SCHEDULE = "Schedule";

const ARROWS: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 };

const viewerOf = (part: Element) => part.closest(".irviz-viewer");

/** Give the focus to the first step that is offered, if there is one. */
export const focusSteps = (part: Element) =>
  viewerOf(part)?.querySelector<HTMLElement>(".irviz-steps button")?.focus();

const focusLoops = (part: Element) =>
  viewerOf(part)?.querySelector<HTMLElement>(".irviz-nests")?.focus({ preventScroll: true });

function Choice({
  name,
  label,
  options,
  chosen,
}: Record<"name" | "label" | "chosen", string> & {
  options: readonly string[];
}) {
  return (
    <select class="irviz-field" name={name} aria-label={label}>
      {options.map((option) => (
        <option key={option} selected={option === chosen}>
          {option}
        </option>
      ))}
    </select>
  );
}

interface StepProps {
  step: OfferedStep;
  perform(target: string, value: string): void;
}
function Step({ step, perform }: StepProps) {
  const { primitive, summary, targets, field, value, values, reason } = step;
  const [target = ""] = targets;
  if (reason) {
    return (
      <li class="irviz-step irviz-illegal" title={reason}>
        <span>{primitive}</span>
        <small>not legal: {reason}</small>
      </li>
    );
  }
  return (
    <li>
      <form
        class="irviz-step"
        onSubmit={(event) => {
          event.preventDefault();
          const given = new FormData(event.currentTarget);
          perform(String(given.get("target") ?? target), String(given.get("value") ?? ""));
        }}
      >
        <button type="submit" title={summary}>
          {primitive}
        </button>
        {targets.length > 1 ? (
          <Choice name="target" label={`${primitive}: where`} options={targets} chosen={target} />
        ) : (
          target && <span class="irviz-hint">{target}</span>
        )}
        {field && values.length > 0 && (
          <Choice name="value" label={field} options={values} chosen={value} />
        )}
        {field && !values.length && (
          <label class="irviz-hint">
            {field} <input class="irviz-field" name="value" value={value} />
          </label>
        )}
      </form>
    </li>
  );
}

export function StepMenu({ state }: { state: State }) {
  const menu = useRef<HTMLElement>(null);
  const isStepDone = useRef(false);
  const { function: name, chosen, title, facts, isTried, steps } = state.schedule.value;
  const key = chosen?.join();
  useLayoutEffect(() => {
    // what had the focus is gone with the loops that it was about
    if (isStepDone.current && !key && menu.current) focusLoops(menu.current);
    isStepDone.current = false;
  }, [key]);
  if (!name) return null;
  const isShown = name === state.scene.value.function;
  const press = (event: KeyboardEvent) => {
    const [part, by] = [event.target as HTMLElement, ARROWS[event.key]];
    if (event.key === "Escape") focusLoops(part);
    else if (by && part.matches("button")) {
      const all = [...(menu.current?.querySelectorAll<HTMLElement>("form > button") ?? [])];
      all[all.indexOf(part) + by]?.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <section ref={menu} class="irviz-steps" aria-label="Steps" onKeyDown={press}>
      {key ? (
        <h2 role="status">
          <span>{title}</span> <small>{facts}</small>
        </h2>
      ) : (
        <p class="irviz-hint">
          Choose a loop or block of {name} to see which steps are legal there.
        </p>
      )}
      {!isShown && (
        <Button
          title={`Show the loops of ${name}`}
          onPress={() => {
            state.choose("loops");
            state.ask({ action: "Focus", function: name });
          }}
        >
          Show its loops
        </Button>
      )}
      {!isTried && <p class="irviz-hint">trying the steps…</p>}
      <ul>
        {steps.map((step) => (
          <Step
            key={`${key} ${step.primitive}`}
            step={step}
            perform={(target, value) => {
              isStepDone.current = true;
              state.ask({ action: "DoStep", primitive: step.primitive, target, value });
            }}
          />
        ))}
      </ul>
    </section>
  );
}

// What can be done with the loops and blocks that are chosen: the steps that are legal there.

import { useLayoutEffect, useRef } from "preact/hooks";
import { Button } from "../controls/button";
import type { OfferedStep, StepField } from "../schema";
import type { State } from "../state";

export const SCHEDULE = "Schedule";

const ARROWS: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 };

const viewerOf = (part: Element) => part.closest(".irviz-viewer");

/** Give the focus to the first step that is offered, if there is one. */
export const focusSteps = (part: Element) =>
  viewerOf(part)?.querySelector<HTMLElement>(".irviz-steps button")?.focus();

const focusLoops = (part: Element) =>
  viewerOf(part)?.querySelector<HTMLElement>(".irviz-nests")?.focus({ preventScroll: true });

function Choice(props: { name: string; label: string; options: readonly string[]; at: string }) {
  return (
    <select class="irviz-field" name={props.name} aria-label={props.label} title={props.label}>
      {props.options.map((option) => (
        <option key={option} selected={option === props.at}>
          {option}
        </option>
      ))}
    </select>
  );
}

function Value({ field, label }: { field: StepField; label: string }) {
  const { name, value, values, example, isRequired } = field;
  const control = values.length ? (
    <Choice name={name} label={label} options={values} at={value} />
  ) : (
    <input class="irviz-field" name={name} aria-label={label} placeholder={example} value={value} />
  );
  return (
    <span class={isRequired ? "irviz-hint" : "irviz-hint irviz-optional"}>
      {values.length && isRequired ? "" : name} {control}
    </span>
  );
}

interface StepProps {
  step: OfferedStep;
  perform(target: string, values: string[]): void;
}
function Step({ step, perform }: StepProps) {
  const { primitive, summary, targets, fields, reason } = step;
  const [target = ""] = targets;
  if (reason) {
    return (
      <li class="irviz-step irviz-illegal" title={reason}>
        <span>{primitive}</span>
        <small>not legal: {reason.replace(/^.* because /, "")}</small>
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
          const textOf = (name: string) => String(given.get(name) ?? "");
          perform(
            targets.length > 1 ? textOf("target") : target,
            fields.map(({ name }) => textOf(name)),
          );
        }}
      >
        <button type="submit" title={summary}>
          {primitive}
        </button>
        {targets.length > 1 ? (
          <Choice name="target" label={`${primitive}: where`} options={targets} at={target} />
        ) : (
          target && <span class="irviz-hint">{target}</span>
        )}
        {fields.map((field) => (
          <Value key={field.name} field={field} label={`${primitive}: ${field.name}`} />
        ))}
      </form>
    </li>
  );
}

export function ScheduleStepMenu({ state }: { state: State }) {
  const menu = useRef<HTMLElement>(null);
  const isStepDone = useRef(false);
  const { function: name, chosen, title, facts } = state.schedule.value;
  const isAwaited = state.wantedLoops.value !== null; // the steps are those of other loops yet
  const isTried = state.schedule.value.isTried && !isAwaited;
  const steps = isAwaited ? [] : state.schedule.value.steps;
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
  const others = steps.filter((step) => !step.isTried);
  const list = (those: readonly OfferedStep[]) => (
    <ul>
      {those.map((step) => (
        <Step
          key={`${key} ${step.primitive}`}
          step={step}
          perform={(target, values) => {
            isStepDone.current = true;
            state.ask({ action: "DoStep", primitive: step.primitive, target, values });
          }}
        />
      ))}
    </ul>
  );
  return (
    <section ref={menu} class="irviz-steps" aria-label="Steps" onKeyDown={press}>
      {key ? (
        <h2 role="status">
          <span>{title}</span> <small>{facts}</small>
        </h2>
      ) : (
        <p class="irviz-hint">
          Choose a loop or block of {name} to see which steps are legal there; with Ctrl or Shift,
          several.
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
      {list(steps.filter((step) => step.isTried))}
      {others.length > 0 && (
        <details>
          <summary class="irviz-hint">{others.length} more, not tried beforehand</summary>
          {list(others)}
        </details>
      )}
    </section>
  );
}

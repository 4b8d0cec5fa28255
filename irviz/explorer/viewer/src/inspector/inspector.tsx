// The inspector: the selected node, and the forms that act.

import { type Signal, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef } from "preact/hooks";
import { SIDES } from "../controls/before_after_badge";
import { Button } from "../controls/button";
import { CopyButton } from "../controls/copy_button";
import { Form } from "../forms/form";
import { nodeActions, usualSteps } from "../graph/node_actions";
import { SCHEDULE, ScheduleStepMenu } from "../loops/schedule_step_menu";
import type { Details, NodeFacts, Side } from "../schema";
import type { State } from "../state";
import { Facts } from "./facts";
import { FirstSteps } from "./first_steps";
import { History } from "./node_history";

export const NODE = "Node";
const MOST_STEPS = 99;

function Section({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <details class={`irviz-section irviz-section-${title.toLowerCase().split(" ")[0]}`} open>
      <summary>{title}</summary>
      {children}
    </details>
  );
}

/** A whole number between 1 and `most`, asked for when it is changed. */
interface StepperProps {
  label: string;
  value: number;
  most: number;
  isDisabled?: boolean;
  set(value: number): void;
}
function Stepper({ label, value, most, isDisabled, set }: StepperProps) {
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    // only then: what is being typed stays when something else is drawn again
    if (field.current) field.current.value = String(value);
  }, [value]);
  return (
    <input
      ref={field}
      class="irviz-field irviz-stepper"
      type="number"
      aria-label={label}
      title={label}
      min={1}
      max={most}
      disabled={isDisabled}
      onChange={(event) => {
        const number = event.currentTarget.valueAsNumber;
        if (Number.isInteger(number)) set(Math.min(Math.max(number, 1), most));
      }}
    />
  );
}

interface ActionsProps {
  state: State;
  facts: NodeFacts;
  node: string;
  side: Side;
  steps: Signal<number>;
}
function Actions({ state, facts, node, side, steps }: ActionsProps) {
  const actions = nodeActions(state, node, side, steps.value);
  const start = state.pathStart.value;
  return (
    <div class="irviz-actions">
      {actions.map(({ label, hint, run }) => (
        <span key={label} class="irviz-action">
          <Button title={hint ? `${label} (${hint})` : label} onPress={run}>
            {label}
          </Button>
          {label === "Nearby" && (
            <Stepper
              label="steps"
              value={steps.value}
              most={MOST_STEPS}
              set={(value) => {
                steps.value = value;
              }}
            />
          )}
        </span>
      ))}
      {start && start === node && (
        <span class="irviz-action irviz-hint">
          now select the other end
          <Button
            icon="close"
            title="No path"
            class="irviz-copy-button"
            onPress={() => {
              state.pathStart.value = "";
            }}
          />
        </span>
      )}
      {facts.layer && facts.layer === state.comparedLayer.value && (
        <span class="irviz-action irviz-hint">now select the other layer</span>
      )}
      {facts.copies > 1 && (
        <span class="irviz-action irviz-copies">
          copy
          <Stepper
            label={`copy, 1 to ${facts.copies}`}
            value={facts.copy + 1}
            most={facts.copies}
            isDisabled={!state.can("ShowCopy")}
            set={(value) =>
              state.ask({ action: "ShowCopy", container: facts.container, copy: value - 1 })
            }
          />
          of {facts.copies}
          {state.can("CompareCopies") && (
            <Button
              title={`Show copies ${facts.copy + 1} and ${besides(facts) + 1} side by side`}
              onPress={() =>
                state.ask({
                  action: "CompareCopies",
                  node: facts.inner,
                  copy: facts.copy,
                  other: besides(facts),
                })
              }
            >
              beside {besides(facts) + 1}
            </Button>
          )}
        </span>
      )}
    </div>
  );
}

/** The copy to show beside that of a node: the next, or of the last one the one before. */
const besides = ({ copy, copies }: NodeFacts) => (copy + 1 < copies ? copy + 1 : copy - 1);

/** The details of what is selected, null while they are those of something else. */
function detailsOf(state: State): Details | null {
  const [details, { node, side }] = [state.details.value, state.selection.value];
  const isThis = details.key === state.scene.value.key && details.node === node;
  return isThis && (!node || details.side === side) ? details : null;
}

function NodeTab({ state }: { state: State }) {
  const steps = useSignal(usualSteps);
  const box = useRef<HTMLDivElement>(null);
  const { node, side } = state.selection.value;
  const picture = state.picture(side);
  const facts = picture?.nodes[node];
  const details = detailsOf(state);
  const form = state.forms.value[NODE];
  useEffect(() => {
    if (box.current) box.current.scrollTop = 0;
  }, [node, side]);
  if (!facts) return <ModuleTab state={state} details={details} />;
  const where = state.isComparing.value ? `${SIDES[side].letter} ${SIDES[side].when}` : "";
  return (
    <div ref={box} class="irviz-node" data-node={node}>
      <div class="irviz-node-head">
        <h2>
          <span>{facts.name}</span>
          <CopyButton text={facts.name} what="the name" />
        </h2>
        <p class="irviz-operator">
          {facts.operator && <code>{facts.operator}</code>}
          {where && <span class="irviz-hint">{where}</span>}
        </p>
        {facts.type && (
          <p class="irviz-type">
            <code>{facts.type}</code>
            <CopyButton text={facts.type} what="the type" />
          </p>
        )}
        <Actions state={state} facts={facts} node={node} side={side} steps={steps} />
      </div>
      {details?.value && (
        <Section title="Value">
          <Facts state={state} html={details.value} side={side} isUntitled />
        </Section>
      )}
      <Section title="Facts">
        <Facts state={state} html={facts.facts} side={side} isUntitled />
      </Section>
      {details?.history.some(({ words }) => words) && (
        <Section title="History">
          <History state={state} steps={details.history} stage={picture?.stage ?? ""} />
        </Section>
      )}
      {form && (
        <Section title="Value and replacement">
          <Form state={state} reference={form} />
        </Section>
      )}
      {(details?.code || facts.source) && (
        <Section title="Code">
          {details?.code ? (
            <Facts state={state} html={details.code} side={side} />
          ) : (
            <pre>{facts.source}</pre>
          )}
        </Section>
      )}
    </div>
  );
}

function ModuleTab({ state, details }: { state: State; details: Details | null }) {
  const rows = state.functions.value;
  const kinds = [...new Set(rows.map(({ kind }) => kind))].filter(Boolean);
  const counts = kinds.map((kind) => {
    const count = rows.filter((row) => row.kind === kind).length;
    return `${count} ${kind === "Relax" ? "Relax function" : kind}${count > 1 ? "s" : ""}`;
  });
  const row = state.current.value;
  return (
    <div class="irviz-node">
      <div class="irviz-node-head">
        <h2>
          <span>{state.title.value || "module"}</span>
        </h2>
        <p class="irviz-hint">{[`stage ${row?.id} ${row?.label}`, ...counts].join(" · ")}</p>
      </div>
      <FirstSteps state={state} />
      <p class="irviz-hint irviz-invitation">
        Nothing is selected: click a node to see what it is.
      </p>
      {details?.value && (
        <Section title="Module">
          <Facts state={state} html={details.value} isUntitled />
        </Section>
      )}
      {details?.code && (
        <Section title="Code">
          <Facts state={state} html={details.code} />
        </Section>
      )}
    </div>
  );
}

export function NodePane({ state }: { state: State }) {
  const id = useId();
  const tabs = state.host.isLive
    ? [NODE, ...state.tabs.value.filter((tab) => tab !== NODE)]
    : [NODE];
  const tab = tabs.includes(state.tab.value) ? state.tab.value : NODE;
  const list = useRef<HTMLDivElement>(null);
  const opened = useSignal<readonly string[]>([]);
  useEffect(() => {
    if (!opened.peek().includes(tab)) opened.value = [...opened.peek(), tab];
  }, [tab]);
  const choose = (chosen: string | undefined) => {
    if (chosen && chosen !== state.tab.peek()) state.set("tab", chosen);
  };
  const press = (event: KeyboardEvent) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by === undefined || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    const next = (tabs.indexOf(tab) + by + tabs.length) % tabs.length;
    choose(tabs[next]);
    (list.current?.children[next] as HTMLElement | undefined)?.focus();
  };
  return (
    <section class="irviz-inspector" aria-label="Inspector">
      <div class="irviz-tabs">
        <div ref={list} role="tablist" aria-label="Inspector" onKeyDown={press}>
          {tabs.map((name) => (
            <button
              key={name}
              type="button"
              role="tab"
              id={`${id}-${name}`}
              aria-selected={name === tab}
              aria-controls={`${id}-panel-${name}`}
              tabIndex={name === tab ? 0 : -1}
              onClick={() => choose(name)}
            >
              {name}
            </button>
          ))}
        </div>
        {state.isDrawer.value && (
          <Button
            icon="close"
            title="Close the inspector (i)"
            onPress={() => {
              state.isInspectorOpen.value = false;
            }}
          />
        )}
      </div>
      {tabs.map((name) => (
        <div
          key={name}
          role="tabpanel"
          class="irviz-tab-panel"
          id={`${id}-panel-${name}`}
          aria-labelledby={`${id}-${name}`}
          // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls
          tabIndex={0}
          hidden={name !== tab}
        >
          {name === NODE && <NodeTab state={state} />}
          {name === SCHEDULE && <ScheduleStepMenu state={state} />}
          {name !== NODE && (opened.value.includes(name) || name === tab) && (
            <Form state={state} reference={state.forms.value[name]} />
          )}
        </div>
      ))}
    </section>
  );
}

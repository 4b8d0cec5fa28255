// The line above everything: where we are, and what is looked at in which way.

import type { ComponentChildren } from "preact";
import { Button } from "../controls/button";
import { Icon } from "../controls/icons";
import { openMenuBelow } from "../controls/menu";
import { showWhole } from "../graph/node_actions";
import { groupsAround, type OpenGroup } from "../graph/open_groups";
import { toggleLargeType } from "../graph/picture_view";
import {
  checkout,
  compareWith,
  compareWithParent,
  stageChoices,
  swapSides,
} from "../stages/stage_actions";
import type { Layout, MenuItem, State } from "../state";
import { placesBefore } from "./back_forward";
import { RunButton } from "./run_button";
import { Search } from "./search";
import { chooseTheme, chosenTheme, THEMES } from "./theme_choice";

const LAYOUTS: readonly { layout: Layout; label: string; words: string }[] = [
  { layout: "graph", label: "Graph", words: "Show the graph" },
  { layout: "loops", label: "Loops", words: "Show the loops of the PrimFunc" },
  { layout: "split", label: "Split", words: "Show it above the text" },
  { layout: "text", label: "Text", words: "Show the TVMScript" },
];

/** The layouts, of which some cannot be chosen: only a PrimFunc has loops. */
const layouts = (state: State) =>
  LAYOUTS.map((one) => ({
    ...one,
    isDisabled: one.layout === "loops" && state.scene.value.loops === null,
  }));

function functionChoices(state: State): MenuItem[] {
  return state.functions.peek().map(({ name, kind }) => ({
    label: name,
    hint: kind,
    isChecked: name === state.scene.peek().function,
    isDisabled: !state.can("Focus"),
    run: () => state.ask({ action: "Focus", function: name }),
  }));
}

/** The open groups around the selected node, else around the middle of the pane. */
function openGroups(state: State): OpenGroup[] {
  const picture = state.scene.value.current;
  if (!picture || !state.shows("graph") || state.layout.value === "text") return [];
  const { node, side } = state.selection.value;
  const selected = side === "current" ? picture.nodes[node] : undefined;
  return groupsAround(picture, selected ? selected.group : state.centreGroup.value);
}

/** A button that shows another stage. */
function StageButton(props: {
  state: State;
  title: string;
  class?: string;
  children: ComponentChildren;
}) {
  const { state, title, children } = props;
  const shown = state.current.value?.id ?? "";
  const choices = () => stageChoices(state, shown, (stage) => checkout(state, stage));
  return (
    <Button
      title={`${title}: choose another`}
      class={props.class}
      isDisabled={!state.can("Checkout")}
      onPress={(event) => openMenuBelow(state, event, "Stages", choices())}
    >
      {children}
    </Button>
  );
}

const LEAST_TITLE = 5; // em of a long title that stay where there is little room

function Breadcrumb({ state }: { state: State }) {
  const { function: name, part } = state.scene.value;
  const row = state.current.value;
  const isLost = !state.functions.value.some((one) => one.name === name);
  const { back, forward } = placesBefore(state.visits.value);
  const groups = openGroups(state);
  const names = groups.map((group) => group.name);
  const isShort = groups.length > 0 && state.rows.value.length > 1; // else no group could be read
  const stageName = `${row?.id} ${row?.label}`;
  return (
    <nav class="irviz-breadcrumb" aria-label="Where we are">
      <Button
        icon="back"
        title="Back ([)"
        isDisabled={!back}
        onPress={() => state.goBack(-1)}
        class="irviz-from-medium"
      />
      <Button
        icon="forward"
        title="Forward (])"
        isDisabled={!forward}
        onPress={() => state.goBack(1)}
        class="irviz-from-medium"
      />
      <ol>
        {state.title.value !== row?.label && !isShort && (
          <li
            class="irviz-crumb-title"
            title={state.title.value}
            style={{ minWidth: `${Math.min(state.title.value.length / 2, LEAST_TITLE)}em` }}
          >
            {state.title.value}
          </li>
        )}
        {row && !state.isComparing.value && (
          <li class="irviz-crumb-stage">
            <StageButton
              state={state}
              title={`The stage that is shown, ${stageName}`}
              class="irviz-crumb"
            >
              <span>{stageName}</span>
            </StageButton>
          </li>
        )}
        {name && (
          <li class="irviz-crumb-function">
            <Button
              title={`The function that is shown, ${name}: choose another`}
              class="irviz-crumb irviz-mono"
              hasMenu={state.functions.value.length > 1 || isLost}
              onPress={(event) => openMenuBelow(state, event, "Functions", functionChoices(state))}
            >
              <span>{name}</span>
            </Button>
          </li>
        )}
        {part && (
          <li class="irviz-crumb-part">
            <Button
              title={`Only a part is shown, ${part}: show the whole function`}
              class="irviz-crumb"
              isDisabled={!state.can("LookAround")}
              onPress={() => showWhole(state)}
            >
              <span>part: {part}</span>
              <Icon name="close" />
            </Button>
          </li>
        )}
        {groups.map(({ id, name: group }, at) => (
          <li key={id} class="irviz-crumb-group">
            <Button
              title={`Show the group ${names.slice(0, at + 1).join(" › ")}`}
              class="irviz-crumb irviz-mono"
              onPress={() => {
                state.wantedGroup.value = id;
              }}
            >
              <span>{group.split(" · ")[0]}</span>
            </Button>
          </li>
        ))}
      </ol>
    </nav>
  );
}

function LayoutChoice({ state }: { state: State }) {
  return (
    <fieldset class="irviz-segments" aria-label="What is shown">
      {layouts(state).map(({ layout, label, words, isDisabled }) => (
        <Button
          key={layout}
          icon={layout}
          title={isDisabled ? "Only a PrimFunc has loops: double-click a call of one" : words}
          isDisabled={isDisabled}
          isPressed={state.layout.value === layout}
          onPress={() => state.choose(layout)}
        >
          <span>{label}</span>
        </Button>
      ))}
    </fieldset>
  );
}

/** What compares stages is left out while there is one: where we are needs the room. */
function CompareChoice({ state }: { state: State }) {
  const { current, reference } = state.scene.value;
  const row = state.current.value;
  const isDisabled = !state.can("Compare");
  const choices = () => {
    const first = state.rows.peek()[0]?.id ?? "";
    const shortcuts: MenuItem[] = [];
    if (row?.parent) {
      const label = `The stage before: ${row.parent}`;
      shortcuts.push({ label, hint: "d", run: () => compareWith(state, row.parent) });
    }
    if (first !== row?.id && first !== row?.parent) {
      shortcuts.push({ label: "The initial module", run: () => compareWith(state, first) });
    }
    const others = stageChoices(state, reference?.stage, (stage) => compareWith(state, stage));
    const [next, ...more] = others.filter((_, at) => state.rows.peek()[at]?.id !== row?.id);
    return next ? [...shortcuts, { ...next, isSeparate: true }, ...more] : shortcuts;
  };
  if (state.rows.value.length < 2) return null;
  if (!reference || !current) {
    return (
      <fieldset class="irviz-compare" aria-label="Comparison">
        <Button
          icon="swap"
          title="Compare with another stage (d: with the one before)"
          isDisabled={isDisabled}
          hasMenu
          onPress={(event) => openMenuBelow(state, event, "Compare with", choices())}
        >
          <span>Compare</span>
        </Button>
      </fieldset>
    );
  }
  return (
    <fieldset class="irviz-compare" aria-label="Comparison">
      <Button
        title={`A, before: ${reference.stage} ${reference.label}. Choose another`}
        isDisabled={isDisabled}
        onPress={(event) => openMenuBelow(state, event, "Compare with", choices())}
      >
        <b>A</b> <span>{reference.stage}</span>
      </Button>
      <Button
        icon="swap"
        title="Swap A and B"
        isDisabled={isDisabled}
        onPress={() => swapSides(state)}
      />
      <StageButton state={state} title={`B, after: ${current.stage} ${current.label}`}>
        <b>B</b> <span>{current.stage}</span>
      </StageButton>
      <Button
        icon="close"
        title="End the comparison (Escape)"
        isDisabled={isDisabled}
        onPress={() => compareWith(state, "")}
      />
    </fieldset>
  );
}

/** A label that keeps the room of all that may stand there, so that what is beside it stays. */
function Label({ words, all }: { words: string; all: readonly string[] }) {
  return (
    <span class="irviz-label irviz-steady">
      {all.map((one) => (
        <span key={one} aria-hidden={one !== words} data-shown={one === words ? "" : undefined}>
          {one}
        </span>
      ))}
    </span>
  );
}

function colourChoices(state: State): MenuItem[] {
  const all = [{ kind: "" as const, label: "kind of node" }, ...state.colours.peek()];
  return all.map(({ kind, label }) => ({
    label,
    isChecked: kind === state.colour.peek(),
    isDisabled: !state.can("ColourBy"),
    run: () => state.ask({ action: "ColourBy", kind }),
  }));
}

const DIFFERENCE = { on: "Show all alike", off: "First difference" };
const differenceLabel = (state: State) => DIFFERENCE[state.status.value.isDimmed ? "on" : "off"];

/** The theme, and how large the type is. */
const looks = (state: State): MenuItem[] => [
  ...THEMES.map((theme) => ({
    label: theme === "system" ? "Theme of the system or notebook" : `Always ${theme}`,
    isChecked: chosenTheme.peek() === theme,
    isSeparate: theme === "system",
    run: () => chooseTheme(theme),
  })),
  {
    label: "Large type",
    isSeparate: true,
    isChecked: state.isLarge.peek(),
    run: () => toggleLargeType(state),
  },
];

function toggleFull(state: State) {
  state.isFull.value = !state.isFull.peek();
}

/** Everything of the toolbar as a menu, for where it has no room. */
function everything(state: State): MenuItem[] {
  const { status } = state;
  const items: MenuItem[] = layouts(state).map(({ layout, words, isDisabled }) => ({
    label: words,
    isDisabled,
    isChecked: state.layout.peek() === layout,
    run: () => state.choose(layout),
  }));
  const add = (item: MenuItem) => items.push(item);
  if (state.rows.peek().length > 1) {
    const isComparing = state.isComparing.peek();
    add({
      label: isComparing ? "End the comparison" : "Compare with the stage before",
      hint: "d",
      isSeparate: true,
      isDisabled: !state.can("Compare"),
      run: () => (isComparing ? compareWith(state, "") : compareWithParent(state)),
    });
    if (isComparing) add({ label: "Swap A and B", run: () => swapSides(state) });
  }
  if (status.peek().canDiffer && state.host.isLive) {
    const run = () => state.ask({ action: "ShowFirstDifference" });
    const isDisabled = !state.can("ShowFirstDifference");
    add({ label: differenceLabel(state), isDisabled, run });
  }
  if (state.host.isLive) {
    const colours = colourChoices(state);
    const [first, ...others] = colours.map((item) => ({
      ...item,
      label: `Colour by ${item.label}`,
    }));
    if (first && others.length) items.push({ ...first, isSeparate: true }, ...others);
    const isDisabled = !state.can("Undo");
    const undo = () => state.ask({ action: "Undo" });
    const redo = () => state.ask({ action: "Redo" });
    add({
      label: "Undo",
      isSeparate: true,
      isDisabled: isDisabled || !state.canUndo.peek(),
      run: undo,
    });
    add({ label: "Redo", isDisabled: isDisabled || !state.canRedo.peek(), run: redo });
  }
  if (state.times.peek().length) {
    add({
      label: "Where the time of the passes went",
      hint: "t",
      isSeparate: true,
      run: () => {
        state.areTimesOpen.value = true;
      },
    });
  }
  items.push(...looks(state));
  add({
    label: state.isFull.peek() ? "Leave full screen" : "Full screen",
    hint: "f",
    run: () => toggleFull(state),
  });
  add({
    label: "Keys",
    hint: "?",
    run: () => {
      state.isHelpOpen.value = true;
    },
  });
  return items;
}

function Tools({ state }: { state: State }) {
  const { canDiffer } = state.status.value;
  const isLive = state.host.isLive;
  const other = state.isComparing.value ? "A" : "the initial module";
  const colour = state.colours.value.find(({ kind }) => kind === state.colour.value);
  return (
    <div class="irviz-tools">
      {isLive && state.rows.value.length > 1 && (
        <Button
          icon="difference"
          title={`Compare the values of this stage node by node with those of ${other}, and go to the first difference`}
          class="irviz-from-wide"
          isPressed={state.status.value.isDimmed}
          isDisabled={!canDiffer || !state.can("ShowFirstDifference")}
          onPress={() => state.ask({ action: "ShowFirstDifference" })}
        >
          <Label words={differenceLabel(state)} all={Object.values(DIFFERENCE)} />
        </Button>
      )}
      {isLive && state.colours.value.length > 0 && (
        <Button
          icon="colour"
          title={colour ? `Nodes are coloured by ${colour.label}` : "What nodes are coloured by"}
          class="irviz-from-wide"
          isPressed={colour !== undefined}
          isDisabled={!state.can("ColourBy")}
          hasMenu
          onPress={(event) => openMenuBelow(state, event, "Colour by", colourChoices(state))}
        >
          <span class="irviz-label">Colour</span>
        </Button>
      )}
      {isLive && <RunButton state={state} />}
    </div>
  );
}

/** The logo and the name, as on the start page. */
function Name() {
  return (
    <span class="irviz-name irviz-from-medium" title="irviz">
      <svg viewBox="0 0 32 32" width="20" height="20" aria-hidden="true">
        <path
          d="M8 9v6q0 3 3 3h10q3 0 3-3V9M16 18v6"
          fill="none"
          stroke="#78828c"
          stroke-width="2"
        />
        <circle cx="8" cy="7" r="4.5" fill="#3f9142" />
        <circle cx="24" cy="7" r="4.5" fill="#3f9142" />
        <rect x="8" y="20" width="16" height="9" rx="2.5" fill="#2f7fd6" />
      </svg>
      <b>irviz</b>
    </span>
  );
}

export function Toolbar({ state }: { state: State }) {
  return (
    <div class="irviz-toolbar">
      <Name />
      <Breadcrumb state={state} />
      <Search state={state} />
      {state.shows("graph") && state.shows("script") && <LayoutChoice state={state} />}
      <CompareChoice state={state} />
      <Tools state={state} />
      <div class="irviz-tools irviz-view-tools">
        <Button
          icon="theme"
          title="Light or dark, and large type for a projector"
          class="irviz-from-roomy"
          hasMenu
          onPress={(event) => openMenuBelow(state, event, "Looks", looks(state))}
        />
        <Button
          icon={state.isFull.value ? "unfull" : "full"}
          title={state.isFull.value ? "Leave full screen (f)" : "Full screen (f)"}
          class="irviz-from-roomy"
          onPress={() => toggleFull(state)}
        />
        <Button
          icon="help"
          title="Keys (?)"
          class="irviz-from-roomy"
          onPress={() => {
            state.isHelpOpen.value = true;
          }}
        />
        <Button
          icon="more"
          title="More"
          class="irviz-to-roomy"
          hasMenu
          onPress={(event) => openMenuBelow(state, event, "More", everything(state))}
        />
        {state.shows("node") && (
          <Button
            icon={state.width.value === "narrow" ? "below" : "side"}
            title={`${state.isInspectorOpen.value ? "Hide" : "Show"} the inspector (i)`}
            isPressed={state.isInspectorOpen.value}
            onPress={() => {
              state.isInspectorOpen.value = !state.isInspectorOpen.value;
            }}
          />
        )}
      </div>
    </div>
  );
}

// The line above everything: where we are, and what is looked at in which way.

import { placesBefore } from "./back_forward";
import { Button } from "./button";
import { Icon } from "./icons";
import { openMenuBelow } from "./menu";
import { showWhole } from "./node_actions";
import { Search } from "./search";
import { checkout, compareWith, compareWithParent, stageChoices, swapSides } from "./stage_actions";
import type { Layout, MenuItem, State } from "./state";

const LAYOUTS: readonly { layout: Layout; label: string; words: string }[] = [
  { layout: "graph", label: "Graph", words: "Show the graph" },
  { layout: "split", label: "Split", words: "Show the graph above the text" },
  { layout: "text", label: "Text", words: "Show the TVMScript" },
];

function functionChoices(state: State): MenuItem[] {
  return state.functions.peek().map(({ name, kind }) => ({
    label: name,
    hint: kind,
    isChecked: name === state.scene.peek().function,
    isDisabled: !state.can("Focus"),
    run: () => state.ask({ action: "Focus", function: name }),
  }));
}

function Breadcrumb({ state }: { state: State }) {
  const { function: name, crumbs } = state.scene.value;
  const row = state.current.value;
  const { back, forward } = placesBefore(state.visits.value);
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
        {state.title.value !== row?.label && (
          <li class="irviz-crumb-title" title={state.title.value}>
            {state.title.value}
          </li>
        )}
        {row && (
          <li class="irviz-crumb-stage">
            <Button
              title="The stage that is shown: choose another"
              class="irviz-crumb"
              onPress={(event) =>
                openMenuBelow(
                  state,
                  event,
                  "Stages",
                  stageChoices(state, row.id, (stage) => checkout(state, stage)),
                )
              }
            >
              <span>
                {row.id} {row.label}
              </span>
            </Button>
          </li>
        )}
        {name && (
          <li class="irviz-crumb-function">
            <Button
              title="The function that is shown: choose another"
              class="irviz-crumb irviz-mono"
              hasMenu={state.functions.value.length > 1}
              onPress={(event) => openMenuBelow(state, event, "Functions", functionChoices(state))}
            >
              <span>{name}</span>
            </Button>
          </li>
        )}
        {state.scene.value.isPart && (
          <li class="irviz-crumb-part">
            <Button
              title="Only a part is shown: show the whole function"
              class="irviz-crumb"
              isDisabled={!state.can("LookAround")}
              onPress={() => showWhole(state)}
            >
              <span>part</span>
              <Icon name="close" />
            </Button>
          </li>
        )}
        {crumbs
          .filter(({ container }) => container)
          .map(({ label, container }) => (
            <li key={container}>
              <Button
                title={`Close ${label}`}
                class="irviz-crumb irviz-mono"
                isDisabled={!state.can("Toggle")}
                onPress={() => state.ask({ action: "Toggle", container, side: "current" })}
              >
                <span>{label}</span>
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
      {LAYOUTS.map(({ layout, label, words }) => (
        <Button
          key={layout}
          icon={layout}
          title={words}
          isPressed={state.layout.value === layout}
          onPress={() => {
            state.layout.value = layout;
          }}
        >
          <span>{label}</span>
        </Button>
      ))}
    </fieldset>
  );
}

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
    const chosen = reference?.stage;
    const all = stageChoices(state, chosen, (stage) => compareWith(state, stage)).filter(
      (_, index) => state.rows.peek()[index]?.id !== row?.id,
    );
    const [next, ...others] = all;
    if (!next) return shortcuts;
    return [...shortcuts, { ...next, isSeparate: shortcuts.length > 0 }, ...others];
  };
  if (!reference || !current) {
    return (
      <Button
        icon="swap"
        title="Compare with another stage (d: with the one before)"
        isDisabled={isDisabled || state.rows.value.length < 2}
        hasMenu
        onPress={(event) => openMenuBelow(state, event, "Compare with", choices())}
      >
        <span class="irviz-label">Compare</span>
      </Button>
    );
  }
  return (
    <fieldset class="irviz-compare" aria-label="Stages that are compared">
      <Button
        title={`A, before, left: ${reference.stage} ${reference.label}. Choose another`}
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
      <Button
        title={`B, after, right: ${current.stage} ${current.label}. Choose another`}
        isDisabled={isDisabled}
        onPress={(event) =>
          openMenuBelow(
            state,
            event,
            "Show",
            stageChoices(state, current.stage, (stage) => checkout(state, stage)),
          )
        }
      >
        <b>B</b> <span>{current.stage}</span>
      </Button>
      <Button
        icon="close"
        title="End the comparison"
        isDisabled={isDisabled}
        onPress={() => state.ask({ action: "Compare", reference: "" })}
      />
    </fieldset>
  );
}

function colourChoices(state: State): MenuItem[] {
  const all = [{ kind: "", label: "kind of node" }, ...state.colours.peek()];
  return all.map(({ kind, label }) => ({
    label,
    isChecked: kind === state.colour.peek(),
    isDisabled: !state.can("ColourBy"),
    run: () => state.ask({ action: "ColourBy", kind }),
  }));
}

const differenceLabel = (state: State) =>
  state.status.value.isDimmed ? "Show all alike" : "First difference";

export function toggleFull(state: State) {
  state.isFull.value = !state.isFull.peek();
}

/** Everything of the toolbar as a menu, for where it has no room. */
function everything(state: State): MenuItem[] {
  const { status } = state;
  const items: MenuItem[] = LAYOUTS.map(({ layout, words }) => ({
    label: words,
    isChecked: state.layout.peek() === layout,
    run: () => {
      state.layout.value = layout;
    },
  }));
  const add = (item: MenuItem) => items.push(item);
  if (state.rows.peek().length > 1) {
    const isComparing = state.isComparing.peek();
    add({
      label: isComparing ? "End the comparison" : "Compare with the stage before",
      hint: "d",
      isSeparate: true,
      isDisabled: !state.can("Compare"),
      run: () =>
        isComparing ? state.ask({ action: "Compare", reference: "" }) : compareWithParent(state),
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
  add({
    label: "Large type",
    isSeparate: true,
    isChecked: state.isLarge.peek(),
    run: () => {
      state.isLarge.value = !state.isLarge.peek();
    },
  });
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
  const { canDiffer, job } = state.status.value;
  const isLive = state.host.isLive;
  const colour = state.colours.value.find(({ kind }) => kind === state.colour.value);
  return (
    <div class="irviz-tools">
      {isLive && canDiffer && (
        <Button
          icon="difference"
          title="Compare the values of the two stages node by node, and go to the first difference"
          class="irviz-from-wide"
          isPressed={state.status.value.isDimmed}
          isDisabled={!state.can("ShowFirstDifference")}
          onPress={() => state.ask({ action: "ShowFirstDifference" })}
        >
          <span class="irviz-label">{differenceLabel(state)}</span>
        </Button>
      )}
      {isLive && state.colours.value.length > 0 && (
        <Button
          icon="colour"
          title="What nodes are coloured by"
          class="irviz-from-wide"
          isDisabled={!state.can("ColourBy")}
          hasMenu
          onPress={(event) => openMenuBelow(state, event, "Colour by", colourChoices(state))}
        >
          <span class="irviz-label">{colour ? colour.label : "Colour"}</span>
        </Button>
      )}
      {isLive && (
        <Button
          icon="run"
          title="Run this stage on the inputs, and compare its results with the first stage's"
          class="irviz-primary irviz-from-medium"
          isDisabled={!state.can("Run") || job !== ""}
          onPress={() => state.ask({ action: "Run", again: true })}
        >
          <span class="irviz-label">Run</span>
        </Button>
      )}
    </div>
  );
}

export function Toolbar({ state }: { state: State }) {
  return (
    <div class="irviz-toolbar">
      <Breadcrumb state={state} />
      <Search state={state} />
      {state.shows("graph") && state.shows("script") && <LayoutChoice state={state} />}
      <CompareChoice state={state} />
      <Tools state={state} />
      <div class="irviz-tools irviz-view-tools">
        <Button
          icon="large"
          title="Large type, for a projector"
          class="irviz-from-roomy"
          isPressed={state.isLarge.value}
          onPress={() => {
            state.isLarge.value = !state.isLarge.value;
          }}
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

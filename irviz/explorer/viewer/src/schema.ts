// Generated from schema.py by `python -m irviz.explorer.viewer.write_schema`. Do not edit.

export type Side = "current" | "reference";

export type OverlayKind = "time" | "size" | "value" | "difference";

export type PaneName = "toolbar" | "stages" | "graph" | "script" | "node" | "status";

export type BlockLines = Record<string, Record<string, Record<string, number>>>;

/** A pass that encloses the recorded stages below it. */
export interface Heading {
  name: string;
  depth: number;
}

/** A stage in the tree; `depth` is how far it is indented.
 *
 * `verdict` says how its results compare, after a sign, and `verdictKind` is "good", "warn",
 * "bad", "running" or "". `time` is how long the pass took, or an input of the run. `speed` says
 * how many times as fast as before its schedule a PrimFunc is, "" where that was not measured, and
 * `share` is that of the fastest stage. `changes` is the number of changes to its parent, -1 where
 * unknown. */
export interface StageRow {
  id: string;
  label: string;
  parent: string;
  depth: number;
  isBranch: boolean;
  headings: Heading[];
  verdict: string;
  verdictKind: string;
  time: string;
  speed: string;
  share: number;
  title: string;
  changes: number;
  isShown: boolean;
  isSame: boolean;
}

/** A function of the module: `kind` is "Relax", "PrimFunc" or another class.
 *
 * `words` says what became of it, "" for nothing, and `changes` how much, -1 where unknown. */
export interface FunctionRow {
  name: string;
  kind: string;
  words: string;
  changes: number;
}

/** The description of a drawn node.
 *
 * `facts` is HTML; a link in it is a button that has `data-function` and `data-goto`. `group` is
 * the frame around it, "" for none, and `groupName` what that is called; `isOpenable` tells that
 * there is something in it to show. `isOwn` tells that it is one of the current stage's function
 * itself, so that it can be an end of `LookAround`. `container` is the repeat that it is in, with
 * the node's `copy`, counted from 0, of `copies`. `layer` is the name of the layer that it serves. */
export interface NodeFacts {
  name: string;
  kind: string;
  operator: string;
  type: string;
  value: string;
  facts: string;
  function: string;
  inner: string;
  source: string;
  group: string;
  groupName: string;
  isOpenable: boolean;
  isOwn: boolean;
  container: string;
  copy: number;
  copies: number;
  layer: string;
}

/** A group that is open; `parent` is the id of the one around it, "" for none.
 *
 * The name of a dataflow block is "": nearly all of a function is in one. */
export interface Group {
  name: string;
  parent: string;
}

/** The picture of a stage; `svg` is "" where it cannot be drawn, and `error` says why.
 *
 * `instead` are functions to look at where the stage lacks the one that is looked at. `nodes` has
 * each drawn node by its id, in the order of the text, and `groups` each group that is open. */
export interface Picture {
  stage: string;
  label: string;
  name: string;
  svg: string;
  error: string;
  instead: string[];
  note: string;
  facts: string[];
  dimmed: string[];
  nodes: Record<string, NodeFacts>;
  groups: Record<string, Group>;
}

/** The loops of a PrimFunc.
 *
 * `svg` has the nest before, if there is one, beside that after, which begins at `after` px. Each
 * row has a node of the picture as `data-node`, and as `data-loop` the id of the loop or block
 * that a step can be done with. `error` says why there is none. */
export interface Loops {
  svg: string;
  after: number;
  error: string;
}

/** A parameter of a primitive; `values` are all that can be chosen, [] for any text. */
export interface StepField {
  name: string;
  value: string;
  values: string[];
  example: string;
  isRequired: boolean;
}

/** A primitive that takes what is chosen; `summary` says what it does.
 *
 * It can be done with each of `targets`, of which "" is nothing else; with none of them for the
 * `reason`. With `isTried` these are legal, or else it needs values that only the user knows. */
export interface OfferedStep {
  primitive: string;
  summary: string;
  targets: string[];
  fields: StepField[];
  isTried: boolean;
  reason: string;
}

/** What can be done with the loops and blocks that are chosen in the shown PrimFunc.
 *
 * `chosen` are their ids, `refused` those that TVM's last error is about. `function` is the
 * PrimFunc, "" for none, `title` what is chosen, and `facts` what it is. `isTried` tells whether
 * all `steps` are there. */
export interface Schedule {
  function: string;
  chosen: string[];
  refused: string[];
  title: string;
  facts: string;
  isTried: boolean;
  steps: OfferedStep[];
}

/** What became of nodes: their ids in the two pictures; `sign` is one of + − ~ ⊃ ⊂ → ↕. */
export interface Change {
  sign: string;
  words: string;
  reference: string[];
  current: string[];
}

/** A line of the legend: `sample` is SVG. */
export interface LegendEntry {
  sample: string;
  words: string;
}

/** What is looked at; `key` is `function/stage/reference`.
 *
 * Two scenes of the same `key` are the same stages and function, perhaps with something opened or
 * closed. `moved` is how far that was moved, [dx, dy], or [] where it is not known. `part` says
 * what `LookAround` shows, "" for the whole function. `loops` are there where the function is a
 * PrimFunc. */
export interface Scene {
  key: string;
  function: string;
  current: Picture | null;
  reference: Picture | null;
  loops: Loops | null;
  summary: string;
  changes: Change[];
  legend: LegendEntry[];
  moved: number[];
  part: string;
}

/** A function in a script, from its first line to its last. */
export interface ScriptFunction {
  name: string;
  first: number;
  last: number;
}

/** A function as loops over NumPy arrays, or a comment on why it cannot be written.
 *
 * `lines` has for each line how many lines below the function's `def` what it was made of begins
 * in the TVMScript, -1 for nothing. Without a function it is what the others need. */
export interface NumPyText {
  function: string;
  text: string;
  lines: number[];
}

/** The stage whose pass changed a line last, and what is bound there in it.
 *
 * `stage` is "" where that is not known, `node` where nothing is bound. */
export interface BlamedLine {
  stage: string;
  function: string;
  node: string;
}

/** The TVMScript of a stage's module.
 *
 * `lines` has the line of each node of Relax, by function and node. Its functions as NumPy and the
 * pass that changed each line last are there where they are shown. */
export interface Script {
  stage: string;
  label: string;
  text: string;
  functions: ScriptFunction[];
  lines: Record<string, Record<string, number>>;
  numpy: NumPyText[];
  blame: BlamedLine[];
}

/** The scripts of both sides; none while the text is hidden. */
export interface Scripts {
  current: Script | null;
  reference: Script | null;
}

/** The selected node, "" for none. */
export interface Selection {
  node: string;
  side: Side;
}

/** A stage that changed a node: what it was called there, and what the pass did.
 *
 * `names` are all nodes that it was, and `node` the first that the pass changed; "" where it is
 * gone. */
export interface HistoryStep {
  stage: string;
  label: string;
  function: string;
  node: string;
  names: string;
  words: string;
}

/** What is known of a node beside its facts: its value and its code, as HTML, and its history.
 *
 * `key` is the scene's. With no node, `value` tells what the module is, and `code` is that of the
 * function. */
export interface Details {
  key: string;
  node: string;
  side: Side;
  value: string;
  code: string;
  history: HistoryStep[];
}

/** A node or group that was found: its title in the picture and its layer, then the rest.
 *
 * `shown` is what the current picture shows for it, "" for nothing. */
export interface FoundNode {
  function: string;
  node: string;
  shown: string;
  line: string;
  rest: string;
}

/** The first nodes that were found, of `count`. */
export interface Found {
  words: string;
  nodes: FoundNode[];
  count: number;
  errors: string[];
}

/** What was said last, what is being done, and what is asked; `progress` is words.
 *
 * `making` is the name of a file that is being made, `drawing` the id of a stage that is being
 * drawn; "" for none. `answer` is what the stage's last run gave, and `answerKind` is "good",
 * "warn", "bad" or "". `found` says which pass or difference was looked for and found. */
export interface Status {
  words: string;
  isError: boolean;
  job: string;
  progress: string;
  waiting: number;
  making: string;
  drawing: string;
  verdict: string;
  answer: string;
  answerKind: string;
  found: string;
  question: string;
  canDiffer: boolean;
  isDimmed: boolean;
}

/** A pass in the flame graph, before those inside it; `left` and `width` are shares of all.
 *
 * `stage` is what it made, "" where that is not known. `own` and `total` are times in words. */
export interface PassTime {
  name: string;
  stage: string;
  depth: number;
  left: number;
  width: number;
  own: string;
  total: string;
  isChanged: boolean;
  error: string;
}

/** A quantity to colour nodes by. */
export interface ColourChoice {
  kind: OverlayKind;
  label: string;
}

/** A text for the clipboard; `serial` changes with each. */
export interface Clipboard {
  text: string;
  serial: number;
}

/** The traits that the page writes as well, each into the state's field of its name. */
export interface WrittenTraits {
  search: string;
  tab: string;
  hasScript: boolean;
  hasNumpy: boolean;
  hasBlame: boolean;
  isDark: boolean;
}

/** The traits of the viewer; those without a default are empty at first.
 *
 * `still` is the class of the picture that a notebook shows where there is no viewer. `panes` are
 * the parts that are shown. `height` is in px, 0 to fill the window. The page writes `selection`,
 * too. `marked` are nodes of the current picture that a transform would change. `forms` are
 * widgets by the name of their tab, which the page gets as references once a tab has been opened. */
export interface ViewerTraits {
  search: string;
  tab: string;
  hasScript: boolean;
  hasNumpy: boolean;
  hasBlame: boolean;
  isDark: boolean;
  title: string;
  still: string;
  panes: PaneName[];
  height: number;
  rows: StageRow[];
  canUndo: boolean;
  canRedo: boolean;
  functions: FunctionRow[];
  scene: Scene;
  scripts: Scripts;
  blockLines: BlockLines;
  selection: Selection;
  details: Details;
  marked: string[];
  schedule: Schedule;
  found: Found;
  status: Status;
  times: PassTime[];
  colours: ColourChoice[];
  colour: string;
  tabs: string[];
  forms: Record<string, string>;
  clipboard: Clipboard;
}

/** A pass that can be chosen: its unique `name`, its `title`, its group and what it does.
 *
 * `would` says what it would change, "" where that is not known. */
export interface Card {
  name: string;
  title: string;
  tag: string;
  summary: string;
  would: string;
}

/** The traits of the choice of a pass.
 *
 * The page writes `value`, which is what is typed, and `chosen`, the name of a card, "" for none.
 * `cards` are those that fit the words `answered`. */
export interface PassPickerTraits {
  value: string;
  chosen: string;
  cards: Card[];
  answered: string;
  placeholder: string;
}

/** The traits of a choice of several names; the page writes `value`. */
export interface ChipTraits {
  options: string[];
  value: string[];
  label: string;
}

/** The traits that change with the function, the stage and the stage compared with. */
export interface RecordedView {
  rows: StageRow[];
  functions: FunctionRow[];
  scene: Scene;
  status: Status;
}

/** A recorded view in which one more container is open, or one less.
 *
 * "+" has all groups open, as far as there is room, and "-" all closed. */
export interface ToggledView {
  rows: StageRow[];
  functions: FunctionRow[];
  scene: Scene;
  status: Status;
  container: string;
}

/** A node or group that can be found: words are looked for in `text`, the rest is shown. */
export interface SearchedNode {
  node: string;
  text: string;
  line: string;
  rest: string;
}

/** A session that was recorded for a file without a kernel: `traits` is how it is opened.
 *
 * A scene's key is `function/stage/reference`, with the stages' ids, "" for no reference. The key
 * of what is asked for is that of the view that it leads to, unless `leads` has another. What can
 * be opened or closed in a view is in `toggled`, each container by itself, as far as there was
 * room. `searched` has the nodes of each view without a reference, by its key; at most `mostFound`
 * of them are listed. */
export interface Recording {
  traits: ViewerTraits;
  views: RecordedView[];
  leads: Record<string, string>;
  toggled: ToggledView[];
  searched: Record<string, SearchedNode[]>;
  mostFound: number;
  scripts: Script[];
  details: Details[];
}

/** A file for the browser to save: a message to the page, whose only buffer is the content. */
export interface Download {
  action: "Download";
  name: string;
  type: string;
}

export const TRAITS: readonly (keyof ViewerTraits)[] = [
  "search",
  "tab",
  "hasScript",
  "hasNumpy",
  "hasBlame",
  "isDark",
  "title",
  "still",
  "panes",
  "height",
  "rows",
  "canUndo",
  "canRedo",
  "functions",
  "scene",
  "scripts",
  "blockLines",
  "selection",
  "details",
  "marked",
  "schedule",
  "found",
  "status",
  "times",
  "colours",
  "colour",
  "tabs",
  "forms",
  "clipboard",
];

/** Make another stage the current one, compared with `reference`, "" for no other.
 *
 * By default what is compared with stays. */
export interface Checkout {
  action: "Checkout";
  stage: string;
  reference: string | null;
}

/** Give a stage another label. */
export interface Rename {
  action: "Rename";
  stage: string;
  label: string;
}

/** Drop a stage and all that were made from it. */
export interface Drop {
  action: "Drop";
  stage: string;
}

/** Undo the last change to the stages. */
export interface Undo {
  action: "Undo";
}

/** Redo the last undone change. */
export interface Redo {
  action: "Redo";
}

/** Open a file as another root stage. */
export interface OpenFile {
  action: "OpenFile";
  name: string;
}

/** Show another function. */
export interface Focus {
  action: "Focus";
  function: string;
}

/** Expand a collapsed container in one of the pictures, or collapse an expanded one. */
export interface Toggle {
  action: "Toggle";
  container: string;
  side: Side;
}

/** Expand all groups of the pictures, outer ones first while there is room; or collapse all. */
export interface ToggleAll {
  action: "ToggleAll";
  opens: boolean;
}

/** Show another copy of a repeat, counted from 0. */
export interface ShowCopy {
  action: "ShowCopy";
  container: string;
  copy: number;
}

/** Show the copy of a repeat that a node is in next to another copy, as separate stages.
 *
 * Copies are counted from 0. */
export interface CompareCopies {
  action: "CompareCopies";
  node: string;
  copy: number;
  other: number;
}

/** Show two layers of the function side by side, as separate stages. */
export interface CompareLayers {
  action: "CompareLayers";
  layer: string;
  other: string;
}

/** Show what is at most `steps` uses away from a node, or between it and `to`.
 *
 * Without a node, show the whole function. */
export interface LookAround {
  action: "LookAround";
  node: string;
  steps: number;
  to: string;
}

/** Go to a node of a function, expanding the containers around it, and select it.
 *
 * Without a node, go to the function; without a stage, stay in the current one. */
export interface Reveal {
  action: "Reveal";
  function: string;
  node: string;
  stage: string;
}

/** Compare the current stage with another one, "" for none. */
export interface Compare {
  action: "Compare";
  reference: string;
}

/** Colour nodes by a quantity of a run, "" for none. */
export interface ColourBy {
  action: "ColourBy";
  kind: OverlayKind | "";
}

/** Go to the first node whose value differs and dim everything before it; or stop dimming. */
export interface ShowFirstDifference {
  action: "ShowFirstDifference";
}

/** Run stages that have no run, and those that they are compared with.
 *
 * By default, that is the current stage, which `again` runs once more. */
export interface Run {
  action: "Run";
  again: boolean;
}

/** Record the values at every node of the current stage. */
export interface RecordValues {
  action: "RecordValues";
}

/** Choose a loop or block of the shown PrimFunc for a step, "" for none.
 *
 * It is chosen alone, or else added to those chosen before, or taken out again. */
export interface ChooseLoop {
  action: "ChooseLoop";
  loop: string;
  adds: boolean;
}

/** Apply a step that is offered for the chosen loops and blocks.
 *
 * Attributes:
 *     primitive: The name of the primitive.
 *     target: What it is done with, in the words of the offer.
 *     values: The values of the offer's fields, as texts; "" for none. */
export interface DoStep {
  action: "DoStep";
  primitive: string;
  target: string;
  values: string[];
}

/** Cancel running and waiting jobs. */
export interface Cancel {
  action: "Cancel";
}

/** Answer whether code of files may be run. */
export interface Answer {
  action: "Answer";
  isAllowed: boolean;
}

/** Show a message in the status bar. */
export interface Say {
  action: "Say";
  words: string;
  isError: boolean;
}

export type ViewerMessage =
  | Checkout
  | Rename
  | Drop
  | Undo
  | Redo
  | OpenFile
  | Focus
  | Toggle
  | ToggleAll
  | ShowCopy
  | CompareCopies
  | CompareLayers
  | LookAround
  | Reveal
  | Compare
  | ColourBy
  | ShowFirstDifference
  | Run
  | RecordValues
  | ChooseLoop
  | DoStep
  | Cancel
  | Answer
  | Say;

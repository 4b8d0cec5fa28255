// What Python and the page exchange: for each widget its synchronised traits, and the messages that
// the page sends: actions by name. Python's side are messages.py, actions.py and the widgets' traits;
// a test compares the two.

/** What the page uses of a widget's model. */
export interface Model<Traits, Message> {
  get<Name extends keyof Traits>(name: Name): Traits[Name];
  set<Name extends keyof Traits>(name: Name, value: Traits[Name]): void;
  save_changes(): void;
  send(message: Message, callbacks?: undefined, buffers?: ArrayBuffer[]): void;
  on(event: `change:${keyof Traits & string}`, listener: () => void): void;
  off(event: `change:${keyof Traits & string}`, listener: () => void): void;
}

/** What a host gives to a widget's `render`: `signal` is aborted when `el` goes. */
export interface RenderProps<Traits, Message> {
  model: Model<Traits, Message>;
  el: HTMLElement;
  signal: AbortSignal;
}

/** `[x, y, scale]`, (x, y) being the graph's point in the middle of the pane; [] for "fit". */
export type Viewport = [] | [x: number, y: number, scale: number];

export interface CanvasTraits {
  svg: string;
  selected: string;
  dark: boolean;
  label: string;
  highlighted: string[];
  dimmed: string[];
  height: number;
  viewport: Viewport;
}

export interface Toggle {
  action: "Toggle";
  container: string;
}

export interface CloseAround {
  action: "CloseAround";
  node: string;
}

export type CanvasMessage = Toggle | CloseAround;

export interface LoopTraits {
  html: string;
  label: string;
  chosen: string[];
  marked: string[];
  many: boolean;
}

export interface Heading {
  name: string;
  depth: number;
}

export interface StageRow {
  id: string;
  label: string;
  parent: string;
  depth: number;
  isBranch: boolean;
  headings: Heading[];
  badge: string;
  title: string;
  isShown: boolean;
  isSame: boolean;
}

export interface StageTraits {
  rows: StageRow[];
  undoable: boolean;
  redoable: boolean;
}

/** A dropped file of this name; its bytes are the message's only buffer. */
export interface OpenFile {
  action: "OpenFile";
  name: string;
}

export interface Say {
  action: "Say";
  words: string;
  is_error: boolean;
}

export interface Checkout {
  action: "Checkout";
  stage: string;
}

export interface Rename {
  action: "Rename";
  stage: string;
  label: string;
}

export interface Drop {
  action: "Drop";
  stage: string;
}

export interface Undo {
  action: "Undo";
}

export interface Redo {
  action: "Redo";
}

export type StageMessage = OpenFile | Say | Checkout | Rename | Drop | Undo | Redo;

export interface CopyTraits {
  label: string;
  text: string;
  serial: number;
}

export interface CopyScript {
  action: "CopyScript";
}

export type CopyMessage = CopyScript;

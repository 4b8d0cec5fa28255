// What Python and the page exchange: for each widget its synchronised traits, and the messages that
// the page sends. Python's side are messages.py and the widgets' traits; a test compares the two.

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
  toggle: string;
}

export interface Leave {
  leave: string;
}

export type CanvasMessage = Toggle | Leave;

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
  open: string;
}

export interface Refused {
  refused: string;
}

export interface Choose {
  choose: string;
}

export interface Rename {
  rename: string;
  label: string;
}

export interface Drop {
  drop: string;
}

export interface Undo {
  undo: true;
}

export interface Redo {
  redo: true;
}

export type StageMessage = OpenFile | Refused | Choose | Rename | Drop | Undo | Redo;

export interface CopyTraits {
  label: string;
  text: string;
  serial: number;
}

export interface Copy {
  copy: true;
}

export type CopyMessage = Copy;

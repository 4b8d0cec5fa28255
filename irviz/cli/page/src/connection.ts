// The connection to the Python process that serves the page: messages of Jupyter's comms as JSON,
// each followed by its buffers.

import type { ICallbacks } from "@jupyter-widgets/base";
import { Signal } from "@lumino/signaling";

export type MessageType = "comm_open" | "comm_msg" | "comm_close";
export type Buffers = (ArrayBuffer | ArrayBufferView)[];

/** A message of Python's; `parent` is the id of the page's message that it came of. */
export interface Message {
  type: MessageType | "idle";
  parent: string;
  content: { comm_id: string; target_name?: string; data: Record<string, unknown> };
  metadata: Record<string, unknown>;
  buffers: number;
}

const RETRY_MILLISECONDS = 1000;

/** What widgets know of JupyterLab's kernels: it is "busy" until each message has been dealt with. */
export class Connection {
  readonly statusChanged = new Signal<this, string>(this);
  readonly connectionStatusChanged = new Signal<this, string>(this);
  onMessage: (message: Message, buffers: DataView[]) => void = () => {};

  private socket: WebSocket | undefined;
  private serial = 0;
  private readonly waiting = new Map<string, ICallbacks>();
  private message: Message | undefined;
  private buffers: DataView[] = [];

  constructor(private readonly url: string) {}

  get connectionStatus(): "connected" | "disconnected" {
    return this.socket?.readyState === WebSocket.OPEN ? "connected" : "disconnected";
  }

  get status(): "idle" | "busy" | "dead" {
    if (this.connectionStatus !== "connected") return "dead";
    return this.waiting.size ? "busy" : "idle";
  }

  /** Connect; it fails when nobody answers. */
  open(): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = new WebSocket(this.url);
      socket.binaryType = "arraybuffer";
      socket.onopen = () => resolve();
      socket.onerror = () => reject(new Error("The server of this page does not answer."));
      socket.onmessage = ({ data }) => this.hear(data);
      socket.onclose = () => this.lose();
      this.socket = socket;
    });
  }

  /** Send a message and return its id; nothing is sent where the server is gone. */
  send(
    type: MessageType,
    content: Message["content"],
    callbacks: ICallbacks = {},
    metadata: Message["metadata"] = {},
    buffers: Buffers = [],
  ): string {
    this.serial += 1;
    const id = `${this.serial}`;
    if (this.connectionStatus !== "connected") return id;
    this.waiting.set(id, callbacks);
    this.socket?.send(JSON.stringify({ type, id, content, metadata, buffers: buffers.length }));
    for (const buffer of buffers) this.socket?.send(buffer as ArrayBuffer);
    if (this.waiting.size === 1) this.statusChanged.emit(this.status);
    return id;
  }

  private hear(data: string | ArrayBuffer): void {
    if (typeof data === "string") {
      this.message = JSON.parse(data) as Message;
      this.buffers = [];
    } else {
      this.buffers.push(new DataView(data));
    }
    const message = this.message;
    if (message?.buffers !== this.buffers.length) return;
    if (message.type === "idle") this.end(message.parent);
    else this.onMessage(message, this.buffers);
  }

  /** The process has dealt with a message. */
  private end(id: string): void {
    const callbacks = this.waiting.get(id);
    this.waiting.delete(id);
    callbacks?.iopub?.status?.({
      content: { execution_state: "idle" },
    } as Parameters<NonNullable<NonNullable<ICallbacks["iopub"]>["status"]>>[0]);
    if (!this.waiting.size) this.statusChanged.emit(this.status);
  }

  /** The server is gone: say so, and load the page again when it answers. */
  private lose(): void {
    this.waiting.clear();
    this.connectionStatusChanged.emit(this.connectionStatus);
    this.statusChanged.emit(this.status);
    const again = () => {
      const socket = new WebSocket(this.url);
      socket.onopen = () => location.reload();
      socket.onerror = () => setTimeout(again, RETRY_MILLISECONDS);
    };
    setTimeout(again, RETRY_MILLISECONDS);
  }
}

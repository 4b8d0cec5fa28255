// One end of a comm, whose other end is in Python.

import type { ICallbacks, IClassicComm } from "@jupyter-widgets/base";
import type { Buffers, Connection, MessageType } from "./connection";

type Listener = (message: unknown) => void;
type Data = Parameters<IClassicComm["send"]>[0];
type Metadata = Parameters<IClassicComm["send"]>[2];

export class Comm implements IClassicComm {
  private heard: unknown[] = [];
  private onMessage: Listener | undefined;
  private onClose: Listener | undefined;

  constructor(
    private readonly connection: Connection,
    readonly comm_id: string,
    readonly target_name: string,
  ) {}

  open(data: Data, callbacks?: ICallbacks, metadata?: Metadata, buffers?: Buffers): string {
    return this.tell("comm_open", data, callbacks, metadata, buffers);
  }

  send(data: Data, callbacks?: ICallbacks, metadata?: Metadata, buffers?: Buffers): string {
    return this.tell("comm_msg", data, callbacks, metadata, buffers);
  }

  close(data?: Data, callbacks?: ICallbacks, metadata?: Metadata, buffers?: Buffers): string {
    return this.tell("comm_close", data ?? {}, callbacks, metadata, buffers);
  }

  /** Hear messages from now on, and first those that came before: of a model that is being made. */
  on_msg(listener: Listener): void {
    this.onMessage = listener;
    for (const message of this.heard.splice(0)) listener(message);
  }

  on_close(listener: Listener): void {
    this.onClose = listener;
  }

  hear(message: unknown): unknown {
    if (this.onMessage) return this.onMessage(message);
    this.heard.push(message);
    return undefined;
  }

  end(message: unknown): void {
    this.onClose?.(message);
  }

  private tell(
    type: MessageType,
    data: Data,
    callbacks?: ICallbacks,
    metadata?: Metadata,
    buffers?: Buffers,
  ): string {
    const content = {
      comm_id: this.comm_id,
      target_name: this.target_name,
      data: data as Record<string, unknown>,
    };
    return this.connection.send(type, content, callbacks, metadata ?? {}, buffers);
  }
}

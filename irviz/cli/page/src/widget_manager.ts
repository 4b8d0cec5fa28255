// The widgets of the page: models and views of what Python has.

import "anywidget";
import * as base from "@jupyter-widgets/base";
import { ManagerBase } from "@jupyter-widgets/base-manager";
import * as controls from "@jupyter-widgets/controls";
import { defined } from "./amd_define";
import { Comm } from "./comm";
import type { Buffers, Connection, Message } from "./connection";

type Classes = Record<string, unknown>;
type Metadata = Message["metadata"];

const VIEWER = "static/viewer";
const { AnyModel } = defined() as { AnyModel: typeof base.WidgetModel };

/** anywidget's model, for which the viewer's script is the one that the page has loaded. */
class PageModel extends AnyModel {
  override get(name: string) {
    const value = super.get(name);
    const isViewer = name === "_esm" && value === VIEWER; // it is not sent with the state
    return isViewer ? new URL(`${VIEWER}.js${location.search}`, location.href).href : value;
  }
}

const MODULES: Record<string, () => Classes> = {
  "@jupyter-widgets/base": () => base,
  "@jupyter-widgets/controls": () => controls,
  anywidget: () => ({ ...defined(), AnyModel: PageModel }),
};

export class PageManager extends ManagerBase {
  private readonly comms = new Map<string, Comm>();
  private dealt: Promise<unknown> = Promise.resolve();

  /** `kernel` is what widgets ask for the state of the connection. */
  constructor(readonly kernel: Connection) {
    super();
    kernel.onMessage = (message, buffers) => {
      // one after the other: a message may need the model that the one before it makes
      this.dealt = this.dealt.then(() => this.deal(message, buffers)).catch(() => {});
    };
  }

  /** Make the models of all widgets that Python has. */
  load(): Promise<void> {
    return this._loadFromKernel();
  }

  protected async loadClass(name: string, module: string): Promise<never> {
    const found = MODULES[module]?.()[name];
    if (!found) throw new Error(`The page has no widget ${name} of ${module}.`);
    return found as never;
  }

  protected async _create_comm(
    target: string,
    id: string = base.uuid(),
    data?: unknown,
    metadata?: Metadata,
    buffers?: Buffers,
  ): Promise<Comm> {
    const comm = this.comm(id, target);
    if (data !== undefined || metadata !== undefined)
      comm.open((data ?? {}) as never, {}, metadata as never, buffers);
    return comm;
  }

  protected async _get_comm_info(): Promise<Record<string, never>> {
    return {};
  }

  private comm(id: string, target: string): Comm {
    const comm = new Comm(this.kernel, id, target);
    this.comms.set(id, comm);
    return comm;
  }

  private async deal(message: Message, buffers: DataView[]): Promise<void> {
    const { type, parent, content, metadata } = message;
    const { comm_id: id } = content;
    const heard = { header: { msg_type: type }, parent_header: { msg_id: parent } };
    const full = { ...heard, content, metadata, buffers };
    const comm = this.comms.get(id);
    if (type === "comm_open") {
      if (content.target_name !== this.comm_target_name || this.has_model(id)) return;
      await this.handle_comm_open(this.comm(id, this.comm_target_name), full as never);
    } else if (type === "comm_msg") {
      await comm?.hear(full);
    } else {
      this.comms.delete(id);
      comm?.end(full);
    }
  }
}

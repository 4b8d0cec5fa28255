// Files that are dropped on the viewer.

import { refusal } from "./rail_rows";
import type { State } from "./state";

export const hasFiles = ({ dataTransfer }: DragEvent) =>
  dataTransfer?.types.includes("Files") ?? false;

/** Send the file that was dropped, or say why it cannot be sent. */
export async function dropFiles(state: State, event: DragEvent) {
  const files = [...(event.dataTransfer?.files ?? [])];
  if (!hasFiles(event) || !state.can("OpenFile")) return;
  event.preventDefault();
  event.stopPropagation();
  const why = refusal(files);
  if (why) state.ask({ action: "Say", words: why, isError: true });
  else {
    for (const file of files) {
      state.ask({ action: "OpenFile", name: file.name }, [await file.arrayBuffer()]);
    }
  }
}

// Files that are dropped on the viewer.

import type { State } from "../state";

const MOST_BYTES = 8 * 2 ** 20; // what a server passes on to the kernel in one message

export const hasFiles = ({ dataTransfer }: DragEvent) =>
  dataTransfer?.types.includes("Files") ?? false;

/** Say why a dropped file cannot be sent to the kernel, or "" when it can. */
export function refusal(files: readonly Pick<File, "name" | "size">[]): string {
  const [file] = files;
  if (!file || files.length > 1) return "Drop one file at a time.";
  if (file.size > MOST_BYTES) {
    return `${file.name} has more than 8 MB: open it with irviz.explore("${file.name}").`;
  }
  return "";
}

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

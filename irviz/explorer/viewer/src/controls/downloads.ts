// Files that Python made, which the browser saves.

import type { Download } from "../schema";

/** Let the browser save a file. */
export function download(file: Download, content: BlobPart, owner: Document) {
  const url = URL.createObjectURL(new Blob([content], { type: file.type }));
  const link = owner.createElement("a");
  link.href = url;
  link.download = file.name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000); // the browser may ask where to save it
}

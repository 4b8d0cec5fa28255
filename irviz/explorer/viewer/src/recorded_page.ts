// The page of a file without a kernel: where its recording is, and how it is packed.

import type { Recording } from "./schema";

/** Put the texts in the place of their numbers. */
export function restored(value: unknown, texts: readonly string[]): unknown {
  if (Array.isArray(value)) return value.map((one) => restored(one, texts));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value);
  const [[key, number] = []] = entries;
  if (entries.length === 1 && key === "$" && typeof number === "number") return texts[number] ?? "";
  return Object.fromEntries(entries.map(([name, one]) => [name, restored(one, texts)]));
}

/** Unpack JSON from gzip from base64. */
export async function unpack(text: string): Promise<Recording> {
  const bytes = Uint8Array.from(atob(text.trim()), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const { recording, texts } = await new Response(stream).json();
  return restored(recording, texts) as Recording;
}

/** Read the recording of a page and show it, or say that it cannot be read. */
export async function showPage(
  page: Document,
  show: (recording: Recording, element: HTMLElement) => void,
): Promise<void> {
  const element = page.getElementById("irviz-page");
  if (!element) return;
  try {
    show(await unpack(page.getElementById("irviz-recording")?.textContent ?? ""), element);
  } catch (error) {
    element.textContent = `This file is damaged, or the browser too old for it: ${error}`;
  }
}

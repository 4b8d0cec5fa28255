// The page of a file without a kernel: where its recording is, and how it is packed.

import type { Recording } from "../schema";

/** Put the values in the place of their numbers; a value has only numbers of those before it. */
export function restored(value: unknown, values: readonly unknown[]): unknown {
  const known: unknown[] = [];
  for (const one of values) known.push(filledIn(one, known));
  return filledIn(value, known);
}

function filledIn(value: unknown, known: readonly unknown[]): unknown {
  if (Array.isArray(value)) return value.map((one) => filledIn(one, known));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value);
  const [[key, number] = []] = entries;
  if (entries.length === 1 && key === "$" && typeof number === "number") return known[number] ?? "";
  return Object.fromEntries(entries.map(([name, one]) => [name, filledIn(one, known)]));
}

/** Unpack JSON from gzip from base64. */
export async function unpack(text: string): Promise<Recording> {
  const bytes = Uint8Array.from(atob(text.trim()), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const { recording, values } = await new Response(stream).json();
  return restored(recording, values) as Recording;
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

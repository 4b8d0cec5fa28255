// What is pointed at, in some words.

import type { ReadonlySignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { NodeFacts } from "../schema";
import { beside, type Size } from "./viewport";

/** What is pointed at, and where in the pane: where the pointer is, and from where to where the part
 * goes down. `ends` says which nodes an edge joins, `words` are those of the part. */
export interface Pointed {
  x: number;
  top: number;
  bottom: number;
  facts: NodeFacts | undefined;
  ends: string;
  words: string;
}

interface Props {
  pointed: ReadonlySignal<Pointed | null>;
  size: ReadonlySignal<Size>;
}

export function Tooltip({ pointed, size }: Props) {
  const element = useRef<HTMLDivElement>(null);
  const shown = pointed.value;
  useLayoutEffect(() => {
    if (!shown || !element.current) return;
    const { offsetWidth: width, offsetHeight: height } = element.current;
    const at = beside(shown, { width, height }, size.peek());
    element.current.style.transform = `translate(${at.x}px, ${at.y}px)`;
  }, [shown, size]);
  if (!shown) return null;
  const { facts, ends } = shown;
  return (
    <div ref={element} class="irviz-tooltip" role="tooltip">
      {facts ? (
        <>
          <div>
            <b>{facts.name || facts.operator || facts.kind}</b>{" "}
            <span class="irviz-tooltip-kind">
              {facts.operator && facts.name ? facts.operator : facts.kind}
            </span>
          </div>
          <div class="irviz-tooltip-type">{facts.type}</div>
          {facts.value ? <div>{facts.value}</div> : null}
        </>
      ) : null}
      {ends ? <b>{ends}</b> : null}
      {linesBeside(shown).map((line) => (
        <div key={line}>{line}</div>
      ))}
    </div>
  );
}

/** Return the lines of the picture's words that the facts do not say. */
export function linesBeside({ facts, words }: Pick<Pointed, "facts" | "words">): string[] {
  const lines = words.split("\n").filter(Boolean);
  if (!facts) return lines;
  const isSaid = (line: string) =>
    line.endsWith(`: ${facts.type}`) || (facts.operator !== "" && line.endsWith(facts.operator));
  return lines.filter((line) => !isSaid(line));
}

// What the shapes, signs and colours mean that are in the picture.

import { useLayoutEffect, useRef } from "preact/hooks";
import { readSvg } from "./markup";
import type { LegendEntry } from "./schema";

export function Legend({ entries, id }: { entries: readonly LegendEntry[]; id: string }) {
  return (
    <ul id={id} class="irviz-legend">
      {entries.map(({ sample, words }) => (
        <li key={words}>
          <Sample svg={sample} />
          {words}
        </li>
      ))}
    </ul>
  );
}

function Sample({ svg }: { svg: string }) {
  const element = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => {
    try {
      element.current?.replaceChildren(readSvg(svg));
    } catch {
      element.current?.replaceChildren(); // the words stay
    }
  }, [svg]);
  return <span ref={element} class="irviz-legend-sample" aria-hidden="true" />;
}

// What the shapes, signs and colours mean that are in the picture.

import { useSignal } from "@preact/signals";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { readSvg } from "../controls/safe_markup";
import type { State } from "../state";

/** As much as has room in one row, so that the picture keeps its height; a button shows the rest. */
export function Legend({ state }: { state: State }) {
  const element = useRef<HTMLUListElement>(null);
  const id = useId();
  const isOpen = useSignal(false);
  const isCut = useSignal(false);
  const { legend } = state.scene.value;
  const hasFlows = state.selection.value.node !== "";
  useLayoutEffect(() => {
    const list = element.current;
    if (!list) return;
    const observer = new ResizeObserver(() => {
      isCut.value = isOpen.peek() || !list.clientHeight || list.scrollHeight > list.clientHeight;
    });
    observer.observe(list);
    return () => observer.disconnect();
  }, [legend, hasFlows, isOpen.value]);
  if (!legend.length) return null;
  return (
    <>
      <ul ref={element} id={id} class={isOpen.value ? "irviz-legend irviz-open" : "irviz-legend"}>
        {legend.map(({ sample, words }) => (
          <li key={words}>
            <Sample svg={sample} />
            {words}
          </li>
        ))}
        {hasFlows ? (
          <>
            <li class="irviz-flow-in">into the selected node</li>
            <li class="irviz-flow-out">out of the selected node</li>
          </>
        ) : null}
      </ul>
      <button
        type="button"
        class="irviz-button"
        aria-expanded={isOpen.value}
        aria-controls={id}
        style={{ visibility: isCut.value ? "visible" : "hidden" }}
        onClick={() => {
          isOpen.value = !isOpen.value;
        }}
      >
        Legend
      </button>
    </>
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

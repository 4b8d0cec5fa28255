// The whole picture, small, with the part of it that is seen.

import { useSignal, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { State } from "../state";
import { placeOfMap, usualPlace } from "./overview_map_place";
import type { PictureView } from "./picture_view";
import { type Rect, visiblePart } from "./viewport";

const LARGEST = { width: 150, height: 130 }; // px
const SHARE = 0.28; // of the pane's width and height, which it covers at most
const LEAST = 24; // px of the narrower side, so that there is something to point at

const GAP = 8; // px between the map and the edges of the pane
const SETTLED_AFTER = 200; // ms without a move, after which the map may change its corner

/** Shown where not everything is seen. It does what a drag of the picture does, and keys do. */
export function OverviewMap({ state, view }: { state: State; view: PictureView }) {
  if (view.isAllVisible.value) return null;
  return <Shown state={state} view={view} />;
}

function Shown({ state, view }: { state: State; view: PictureView }) {
  const element = useRef<SVGSVGElement>(null);
  const picture = view.picture.value;
  if (!picture) return null;
  const { frame } = picture;
  const rects = picture.rects();
  const hits = state.hits.value.flatMap((id) => rects.get(id) ?? []);
  const pane = view.size.value;
  const share = Math.min(
    Math.min(LARGEST.width, SHARE * pane.width) / frame.width,
    Math.min(LARGEST.height, SHARE * pane.height) / frame.height,
  );
  const width = Math.max(frame.width * share, LEAST);
  const height = Math.max(frame.height * share, LEAST);
  const place = useSignal(usualPlace);
  useSignalEffect(() => {
    const [seen, drawn] = [view.seen.value, view.picture.value];
    if (!seen || !drawn) return;
    const timer = setTimeout(() => {
      const box = { width: width + 2 * GAP, height: height + 2 * GAP };
      const next = placeOfMap([...drawn.rects().values()], seen, pane, box, place.peek().corner);
      const { corner, isOver } = place.peek();
      if (next.corner !== corner || next.isOver !== isOver) place.value = next;
    }, SETTLED_AFTER);
    return () => clearTimeout(timer);
  });
  const goTo = (event: PointerEvent) => {
    event.stopPropagation();
    const [seen, matrix] = [view.seen.peek(), element.current?.getScreenCTM()];
    if (!(event.buttons & 1) || !seen || !matrix) return;
    element.current?.setPointerCapture(event.pointerId);
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
    view.move({ x, y, scale: seen.scale });
  };
  const still = (event: Event) => event.stopPropagation();
  return (
    <svg
      ref={element}
      class="irviz-overview"
      data-corner={place.value.corner}
      data-over={place.value.isOver ? "" : undefined}
      aria-hidden="true"
      width={width}
      height={height}
      viewBox={`${frame.x} ${frame.y} ${frame.width} ${frame.height}`}
      preserveAspectRatio="none"
      onPointerDown={goTo}
      onPointerMove={goTo}
      onPointerOver={still}
      onClick={still}
      onDblClick={still}
    >
      <path class="irviz-overview-nodes" d={outline(rects.values())} />
      <path class="irviz-overview-found" d={outline(hits)} />
      <Seen view={view} frame={frame} />
    </svg>
  );
}

/** The part that is seen, drawn again whenever it moves. */
function Seen({ view, frame }: { view: PictureView; frame: Rect }) {
  const seen = view.seen.value;
  if (!seen) return null;
  const part = visiblePart(seen, view.size.value);
  const [left, top] = [Math.max(part.x, frame.x), Math.max(part.y, frame.y)];
  const right = Math.min(part.x + part.width, frame.x + frame.width);
  const bottom = Math.min(part.y + part.height, frame.y + frame.height);
  const size = { width: Math.max(right - left, 0), height: Math.max(bottom - top, 0) };
  return <rect class="irviz-overview-seen" x={left} y={top} {...size} />;
}

/** Return the path around all rectangles. */
const outline = (rects: Iterable<Rect>) =>
  [...rects].map(({ x, y, width, height }) => `M${x} ${y}h${width}v${height}h${-width}z`).join("");

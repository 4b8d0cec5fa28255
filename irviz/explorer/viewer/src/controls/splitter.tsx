// The line between two parts, which can be dragged, or moved with the keyboard.

import { useSignal } from "@preact/signals";
import { RANGES, type Range, remember, type Size, type Sizes } from "../page/pane_sizes";

const STEP = 24; // px an arrow key moves it

/** A size inside of its range. */
const clamped = (px: number, { least, most }: Range) =>
  Math.round(Math.min(Math.max(px, least), most));

/** Where a key moves a splitter to, undefined where it does not; `sign` as for `Splitter`. */
export function sizeAfter(
  px: number,
  key: string,
  isVertical: boolean,
  sign: 1 | -1,
  range: Range,
): number | undefined {
  const [less, more] = isVertical ? ["ArrowLeft", "ArrowRight"] : ["ArrowUp", "ArrowDown"];
  if (key === less) return clamped(px - sign * STEP, range);
  if (key === more) return clamped(px + sign * STEP, range);
  if (key === "Home") return range.least;
  if (key === "End") return range.most;
  if (key === "Enter") return range.usual;
  return undefined;
}

interface Props {
  sizes: Sizes;
  name: Size;
  label: string;
  /** Whether it stands between a left and a right part. */
  isVertical: boolean;
  /** 1 where the part that it sizes is before it, -1 where it is after it. */
  sign: 1 | -1;
}

export function Splitter({ sizes, name, label, isVertical, sign }: Props) {
  const range = RANGES[name];
  const size = sizes[name];
  const grip = useSignal<{ at: number; from: number } | null>(null);
  const place = (event: PointerEvent) => (isVertical ? event.clientX : event.clientY);
  const resize = (px: number) => {
    size.value = clamped(px, range);
    remember(name, size.value);
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a separator that can be moved is no <hr>
    <div
      role="separator"
      tabIndex={0}
      class={`irviz-splitter irviz-splitter-${name}`}
      title={`${label}: drag, or use the arrow keys; double click for the usual size`}
      aria-label={label}
      aria-orientation={isVertical ? "vertical" : "horizontal"}
      aria-valuenow={size.value}
      aria-valuemin={range.least}
      aria-valuemax={range.most}
      data-dragged={grip.value ? "" : undefined}
      onPointerDown={(event) => {
        if (event.button !== 0) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        grip.value = { at: place(event), from: size.value };
      }}
      onPointerMove={(event) => {
        if (grip.value) resize(grip.value.from + sign * (place(event) - grip.value.at));
      }}
      onPointerUp={() => {
        grip.value = null;
      }}
      onPointerCancel={() => {
        grip.value = null;
      }}
      onDblClick={() => resize(range.usual)}
      onKeyDown={(event) => {
        const px = sizeAfter(size.value, event.key, isVertical, sign, range);
        if (px === undefined) return;
        event.preventDefault();
        event.stopPropagation();
        resize(px);
      }}
    />
  );
}

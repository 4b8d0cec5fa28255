// The signs on buttons: outlines of 16 by 16 in the colour of the text.

const PATHS = {
  search: "M7 2.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 0 0 0-9zM10.3 10.3L14 14",
  chevron: "M6 4l4 4-4 4",
  down: "M4 6l4 4 4-4",
  up: "M4 10l4-4 4 4",
  back: "M10 3L5 8l5 5",
  forward: "M6 3l5 5-5 5",
  swap: "M2 5.5h11M10 2.5l3 3-3 3M14 10.5H3M6 7.5l-3 3 3 3",
  close: "M4 4l8 8M12 4l-8 8",
  run: "M5 3l8 5-8 5z",
  graph: "M5.5 2h5v3.5h-5zM1.5 10.5h5V14h-5zM9.5 10.5h5V14h-5zM8 5.5v2.5M4 10.5V8h8v2.5",
  loops: "M2 3.500h12M4.500 6.500h9.500M7 9.500h7M9.500 12.500h4.500",
  split: "M2 2.5h12v11H2zM2 8.5h12M4.5 11h4",
  text: "M2.5 3.5h11M2.5 6.5h7M5 9.5h8.5M2.5 12.5h6",
  full: "M2.5 6v-3.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10",
  unfull: "M6 2.5V6H2.5M13.5 6H10V2.5M10 13.5V10h3.5M2.5 10H6v3.5",
  help: "M5.5 6a2.5 2.5 0 1 1 3.6 2.3c-.8.4-1.1.9-1.1 1.7M8 12.6v.2",
  theme: "M13.500 9.500A5.800 5.800 0 1 1 6.500 2.500a4.600 4.600 0 0 0 7 7z",
  side: "M2 2.5h12v11H2zM10 2.5v11",
  below: "M2 2.5h12v11H2zM2 9h12",
  more: "M3.5 8h.01M8 8h.01M12.500 8h.01",
  undo: "M5.5 3L2.500 6l3 3M2.500 6h7a3.500 3.500 0 0 1 0 7H6",
  redo: "M10.500 3l3 3-3 3M13.500 6h-7a3.500 3.500 0 0 0 0 7H10",
  rename: "M3 13l.600-2.600L10.800 3.200l2 2L5.600 12.400zM9.300 4.700l2 2",
  drop: "M3 4.500h10M6.500 4.500V3h3v1.500M4.500 4.500l.600 8.500h5.800l.600-8.500M6.800 7v3.700M9.200 7v3.700",
  copy: "M5.500 5.500h8v8h-8zM10.500 5.500v-3h-8v8h3",
  check: "M3 8.500l3.500 3.500L13 4.500",
  changed: "M8 3l5.500 10h-11z",
  colour: "M8 2c3 3.800 4.500 6 4.500 7.700a4.500 4.500 0 0 1-9 0C3.500 8 5 5.800 8 2z",
  difference: "M2.500 6h11M2.500 10h11M10.500 3L5.500 13",
  stop: "M4.500 4.500h7v7h-7z",
  times: "M1.500 3h13v3h-13zM1.500 7.500h8v2.500h-8zM1.500 11.500h4.500v2.500h-4.500z",
  minus: "M3.500 8h9",
  plus: "M3.500 8h9M8 3.500v9",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="irviz-icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}

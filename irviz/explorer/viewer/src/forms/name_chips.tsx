// A choice of several names, each a button.

import type { ChipTraits } from "../schema";
import { type Model, useTrait, widget } from "./widget_traits";

const MANY = 3; // of more names, all or none can be chosen at once

function Chips({ model }: { model: Model<ChipTraits> }) {
  const [options, value] = [useTrait(model, "options"), useTrait(model, "value")];
  const label = useTrait(model, "label");
  const isAll = value.length === options.length;
  const choose = (isChosen: (name: string) => boolean) => {
    model.set("value", options.filter(isChosen));
    model.save_changes();
  };
  return (
    <>
      <span class="widget-label" aria-hidden="true">
        {label}
      </span>
      <fieldset class="irviz-chips" aria-label={label}>
        {options.map((name) => (
          <button
            key={name}
            type="button"
            class="irviz-chip"
            aria-pressed={value.includes(name)}
            onClick={() => choose((one) => value.includes(one) !== (one === name))}
          >
            {name}
          </button>
        ))}
        {options.length > MANY && (
          <button type="button" class="irviz-chips-all" onClick={() => choose(() => !isAll)}>
            {isAll ? "none" : "all"}
          </button>
        )}
        {!options.length && <span class="irviz-hint">none there</span>}
      </fieldset>
    </>
  );
}

export default widget(Chips);

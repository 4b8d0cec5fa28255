// A field for words, and below it a card for each pass that they fit.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Card, PassPickerTraits } from "../schema";
import { type Model, useTrait, widget } from "./widget_traits";

function PassPicker({ model }: { model: Model<PassPickerTraits> }) {
  const [value, chosen] = [useTrait(model, "value"), useTrait(model, "chosen")];
  const [cards, answered] = [useTrait(model, "cards"), useTrait(model, "answered")];
  const isOpen = useSignal(chosen === "");
  const at = useSignal(0);
  const takesFirst = useSignal(false); // Enter was faster than the answer
  const list = useRef<HTMLDivElement>(null);
  // useId counts anew in each bundle
  const id = useRef(`irviz-passes-${Math.random()}`).current;
  const shown = isOpen.value || !chosen ? cards : cards.filter(({ name }) => name === chosen);

  const choose = (card: Card | undefined) => {
    takesFirst.value = false;
    if (!card) return;
    isOpen.value = false;
    model.set("chosen", card.name);
    model.set("value", card.title);
    model.save_changes();
  };
  useEffect(() => {
    at.value = 0;
    if (takesFirst.peek() && answered === value) choose(cards[0]);
  }, [answered, value]);
  useEffect(() => {
    const option = list.current?.children[at.value];
    if (isOpen.value) option?.scrollIntoView({ block: "nearest" });
  }, [at.value]);
  const press = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") at.value = Math.min(at.value + 1, shown.length - 1);
    else if (event.key === "ArrowUp") at.value = Math.max(at.value - 1, 0);
    else if (event.key !== "Enter") return;
    else if (answered === model.get("value")) choose(shown[at.value]);
    else takesFirst.value = true;
    event.preventDefault();
  };
  return (
    <>
      <input
        class="irviz-field"
        type="search"
        role="combobox"
        aria-label="Pass"
        aria-expanded={isOpen.value}
        aria-controls={id}
        aria-autocomplete="list"
        aria-activedescendant={shown.length ? `${id}-${at.value}` : undefined}
        autoComplete="off"
        spellcheck={false}
        placeholder={useTrait(model, "placeholder")}
        value={value}
        onInput={(event) => {
          isOpen.value = true;
          model.set("value", event.currentTarget.value);
          model.save_changes();
        }}
        onFocus={() => {
          isOpen.value = true;
        }}
        onKeyDown={press}
      />
      <div ref={list} id={id} class="irviz-cards" role="listbox" aria-label="Passes">
        {shown.map((card, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the keys
          // biome-ignore lint/a11y/useFocusableInteractive: the field keeps the focus
          <div
            key={card.name}
            id={`${id}-${index}`}
            class={index === at.value && isOpen.value ? "irviz-card irviz-at" : "irviz-card"}
            role="option"
            aria-selected={card.name === chosen}
            onPointerDown={(event) => event.preventDefault()} // else the field loses the focus
            onClick={() => choose(card)}
          >
            <p class="irviz-card-head">
              <b>{card.title}</b> <small>{card.tag}</small>{" "}
              <span class={card.would.endsWith("nothing") ? "irviz-nothing" : ""}>
                {card.would}
              </span>
            </p>
            <p>{card.summary}</p>
          </div>
        ))}
      </div>
    </>
  );
}

export default widget(PassPicker);

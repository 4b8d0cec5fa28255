// Buttons that show other functions of a stage than the one that it lacks.

import { Button } from "../controls/button";
import type { State } from "../state";

export function OtherFunctions({ state, names }: { state: State; names: readonly string[] }) {
  return names.map((name) => (
    <Button
      key={name}
      title={`Show ${name} of this stage`}
      isDisabled={!state.can("Focus")}
      onPress={() => state.ask({ action: "Focus", function: name })}
    >
      Show {name}
    </Button>
  ));
}

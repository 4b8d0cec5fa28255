"""The inputs of a session, from which the arguments of any of its functions are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from tvm import ir

from irviz.errors import InputError
from irviz.ir.functions import relax_function
from irviz.ir.shapes.type_check import Argument
from irviz.runtime.inputs.argument_lists import Array, Inputs, Plan, plan_inputs


@dataclass(frozen=True, eq=False)
class CallInputs:
    """What functions are called with: see `argument_lists`."""

    inputs: Inputs = None
    params: Mapping[str, Array] = field(default_factory=dict)
    labels: NDArray[np.int64] | None = None
    seed: int = 0
    sizes: Mapping[str, int] = field(default_factory=dict)

    def plan(self, mod: ir.IRModule, function: str) -> Plan:
        """Plan the arguments for a function of a module; raise InputError."""
        source = relax_function(mod, function)
        return plan_inputs(source, self.inputs, self.params, seed=self.seed, sizes=self.sizes)

    def cases(self, mod: ir.IRModule, function: str) -> list[list[Argument]]:
        """Return the arguments of each case for a function of a module; raise InputError."""
        cases = self.plan(mod, function).argument_lists()
        if self.labels is not None and len(self.labels) != len(cases):
            raise InputError(
                f"there are {len(self.labels)} labels and {len(cases)} cases: give one label for "
                "each case"
            )
        return cases

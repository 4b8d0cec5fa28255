"""Run an exported program with torch, for comparison with the imported module."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from irviz.errors import RunError
from irviz.loaders.file_limits import one_line
from irviz.loaders.models.imported_layers import described
from irviz.loaders.models.torch_converters import as_pairs, is_complex
from irviz.model.graph.graph import NodeId, grouped
from irviz.model.runs.execution_trace import Array
from irviz.model.runs.run_result import Origin, OriginRun, ValueRecorder

if TYPE_CHECKING:
    import torch
    from torch.export.graph_signature import InputSpec, OutputSpec
    from torch.fx import Node
    from torch.utils._pytree import TreeSpec


class Returned(NamedTuple):
    """What a program returns: the leaves of its structure, where a set is the number of an output.

    Other leaves are constants.
    """

    structure: TreeSpec
    leaves: tuple[object, ...]

    @classmethod
    def of(cls, program: torch.export.ExportedProgram) -> Returned:
        """Return what a program returns."""
        numbers = itertools.count()
        kinds = "USER_OUTPUT", "LOSS_OUTPUT"
        specs = [one for one in program.graph_signature.output_specs if one.kind.name in kinds]
        leaves = (one.arg.value if is_constant(one) else {next(numbers)} for one in specs)
        return cls(program.call_spec.out_spec, tuple(leaves))

    @property
    def template(self) -> object:
        """The structure, with the leaves in their places."""
        return self.structure.unflatten(self.leaves)


@dataclass(frozen=True, eq=False)
class ProgramOrigin(Origin):
    """A program in memory, whose weights may be replaced by arguments.

    `nodes` are those of its graph whose values are recorded, by the module's variables.
    """

    program: torch.export.ExportedProgram
    nodes: Mapping[str, Node]
    returned: Returned
    name = "torch"
    is_isolated = False

    def run(self, arguments: Mapping[str, Array], budget: int) -> OriginRun:
        """Run the program's graph node by node; raise RunError, naming the node, if one fails."""
        import torch

        program, nodes = self.program, self.nodes
        ids = grouped((node.name, NodeId(variable)) for variable, node in nodes.items())
        recorder = ValueRecorder(budget)

        interpreter = torch.fx.Interpreter(program.graph_module)
        interpreter.extra_traceback = False  # it would follow the reason
        run_node = interpreter.run_node

        def recorded(node: Node) -> Any:
            try:
                value = run_node(node)
            except Exception as failure:
                raise RunError(f"{described(node)}: {one_line(failure)}") from failure
            for one in ids.get(node.name, ()):
                recorder.add(one, _arrays(value))
            return value

        interpreter.run_node = recorded
        with torch.no_grad():
            values = interpreter.run(*_arguments(program, arguments))
        specs = program.graph_signature.output_specs
        kinds = torch.export.graph_signature.OutputKind
        outputs = [
            array
            for value, spec in zip(values, specs, strict=True)
            if spec.kind in (kinds.USER_OUTPUT, kinds.LOSS_OUTPUT)
            for array in _arrays(value)
        ]
        labels = {NodeId(variable): described(node) for variable, node in nodes.items()}
        return OriginRun(tuple(outputs), recorder.trace("main"), labels)

    def value(self, outputs: Sequence[Array]) -> object:
        """Return outputs in the structure of what the program returns."""
        structure, leaves = self.returned
        given = (outputs[min(one)] if isinstance(one, set) else one for one in leaves)
        return structure.unflatten(given)


def _arguments(
    program: torch.export.ExportedProgram, arguments: Mapping[str, Array]
) -> list[object]:
    """Return the values of the graph's placeholders; constants are in the program."""
    import torch

    targets = {spec.arg.name: spec.target for spec in program.graph_signature.input_specs}
    found: list[object] = []
    for node in program.graph.find_nodes(op="placeholder"):
        target = targets.get(node.name)
        if node.name in arguments:
            given = _torch_tensor(arguments[node.name])
            is_paired = is_complex(node.meta.get("val"))
            found.append(torch.view_as_complex(given) if is_paired else given)
        elif target in program.state_dict:
            found.append(program.state_dict[target])
        else:
            found.append(program.constants.get(target, node.meta.get("val")))
    return found


def _torch_tensor(array: Array) -> torch.Tensor:
    import torch

    if array.dtype.name == "bfloat16":  # which NumPy does not have itself
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(np.array(array))


def _arrays(value: object) -> list[Array]:
    import torch
    from torch.utils import _pytree

    return [torch_array(one) for one in _pytree.tree_leaves(value) if isinstance(one, torch.Tensor)]


def torch_array(value: Any) -> Any:
    """Return a tensor as an array, with complex numbers as pairs."""
    if isinstance(value, np.ndarray):
        return value
    if str(value.dtype) == "torch.bfloat16":  # which NumPy does not have itself
        import ml_dtypes
        import torch

        return value.detach().cpu().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return as_pairs(value.detach()).cpu().numpy()


def is_constant(spec: InputSpec | OutputSpec) -> bool:
    """Tell whether an input or output of a program is a constant of its graph."""
    return type(spec.arg).__name__ == "ConstantArgument"

"""Run an exported program with torch, for comparison with the imported module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from irviz.errors import RunError
from irviz.loaders.file_errors import one_line
from irviz.loaders.models.torch_importer import ImportedProgram, described
from irviz.model.graph.graph import NodeId
from irviz.model.runs.origin import Origin, OriginRun, ValueRecorder
from irviz.model.runs.trace import Array

if TYPE_CHECKING:
    import torch
    from torch.fx import Node


@dataclass(frozen=True, eq=False)
class ProgramOrigin(Origin):
    """A program in memory, whose weights may be replaced by arguments."""

    imported: ImportedProgram
    name = "torch"
    is_isolated = False

    def run(self, arguments: Mapping[str, Array], budget: int) -> OriginRun:
        """Run the program's graph node by node; raise RunError, naming the node, if one fails."""
        import torch

        program, nodes = self.imported.program, self.imported.nodes
        ids: dict[str, list[NodeId]] = {}
        for variable, node in nodes.items():
            ids.setdefault(node.name, []).append(NodeId(variable))
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


def _arguments(
    program: torch.export.ExportedProgram, arguments: Mapping[str, Array]
) -> list[object]:
    """Return the values of the graph's placeholders; constants are in the program."""
    targets = {spec.arg.name: spec.target for spec in program.graph_signature.input_specs}
    found: list[object] = []
    for node in program.graph.find_nodes(op="placeholder"):
        target = targets.get(node.name)
        if node.name in arguments:
            found.append(_tensor(arguments[node.name]))
        elif target in program.state_dict:
            found.append(program.state_dict[target])
        else:
            found.append(program.constants.get(target, node.meta.get("val")))
    return found


def _tensor(array: Array) -> torch.Tensor:
    import torch

    if array.dtype.name == "bfloat16":  # which NumPy does not have itself
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(np.array(array))


def _arrays(value: object) -> list[Array]:
    """Return the tensors of a node's value."""
    import torch
    from torch.utils import _pytree

    tensors = (one for one in _pytree.tree_leaves(value) if isinstance(one, torch.Tensor))
    return [
        (one.float() if one.dtype is torch.bfloat16 else one).detach().cpu().numpy()
        for one in tensors
    ]

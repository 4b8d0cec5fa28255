"""Run an ONNX model by ONNX's own reference evaluator, beside the imported module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from irviz.loaders.models.onnx_file import read_model
from irviz.loaders.models.origin_file import OriginFile
from irviz.model.graph.graph import NodeId
from irviz.model.runs.origin import Origin, OriginRun, ValueRecorder
from irviz.model.runs.trace import Array

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True, eq=False)
class OnnxOrigin(Origin):
    """An ONNX model, which is read again in the worker.

    Attributes:
        file: The model's file or bytes.
        variables: The names of the module's variables, by the names of the model's values.
    """

    file: OriginFile
    variables: Mapping[str, str]
    name = "ONNX's reference evaluator"
    is_isolated = True

    def run(self, arguments: Mapping[str, Array], budget: int) -> OriginRun:
        """Run the model; raise RunError if its file has been changed."""
        from onnx.reference import ReferenceEvaluator

        model = read_model(self.file.read(), self.file.path)
        weights = {tensor.name for tensor in model.graph.initializer}
        self._replace_weights(model, arguments)
        feeds = {
            one.name: arguments[self.variables[one.name]]
            for one in model.graph.input
            if one.name not in weights
        }
        found = dict(ReferenceEvaluator(model).run(None, feeds, intermediate=True))
        recorder, labels = ValueRecorder(budget), dict[NodeId, str]()
        for node in model.graph.node:
            for value in node.output:
                variable = self.variables.get(value)
                if variable is not None and isinstance(found.get(value), np.ndarray):
                    recorder.add(NodeId(variable), [found[value]])
                    labels[NodeId(variable)] = f"{node.op_type} {node.name or value}"
        outputs = tuple(np.asarray(found[one.name]) for one in model.graph.output)
        return OriginRun(outputs, recorder.trace("main"), labels)

    def _replace_weights(self, model: onnx.ModelProto, arguments: Mapping[str, Array]) -> None:
        from onnx import numpy_helper

        for tensor in model.graph.initializer:
            given = arguments.get(self.variables.get(tensor.name, ""))
            if given is not None and not np.array_equal(given, numpy_helper.to_array(tensor)):
                tensor.CopyFrom(numpy_helper.from_array(np.asarray(given), tensor.name))

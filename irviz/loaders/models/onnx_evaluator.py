"""Run an ONNX model by ONNX's own reference evaluator, beside the imported module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from irviz.errors import RunError
from irviz.loaders.models.file_digest import digest_of
from irviz.loaders.models.onnx_file import read_model
from irviz.model.graph.graph import NodeId
from irviz.model.runs.origin import Origin, OriginRun, ValueRecorder
from irviz.model.runs.trace import Array

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True, eq=False)
class OnnxOrigin(Origin):
    """An ONNX model, by its bytes or by its file, which is read again in the worker.

    Attributes:
        content: The model; empty where it is in a file.
        path: The file.
        digest: A hash of the file's content.
        variables: The names of the module's variables, by the names of the model's values.
    """

    content: bytes
    path: Path | None
    digest: bytes
    variables: Mapping[str, str]
    name = "ONNX's reference evaluator"
    is_isolated = True

    def run(self, arguments: Mapping[str, Array], budget: int) -> OriginRun:
        """Run the model; raise RunError if its file has been changed."""
        from onnx.reference import ReferenceEvaluator

        model = self._model()
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

    def _model(self) -> onnx.ModelProto:
        import onnx

        if self.path is None:
            return onnx.load_model_from_string(self.content)
        content = self.path.read_bytes()
        if digest_of(content) != self.digest:
            raise RunError(f"{str(self.path)!r} has changed since it was opened")
        return read_model(content, self.path)

    def _replace_weights(self, model: onnx.ModelProto, arguments: Mapping[str, Array]) -> None:
        from onnx import numpy_helper

        for tensor in model.graph.initializer:
            given = arguments.get(self.variables.get(tensor.name, ""))
            if given is not None and not np.array_equal(given, numpy_helper.to_array(tensor)):
                tensor.CopyFrom(numpy_helper.from_array(np.asarray(given), tensor.name))

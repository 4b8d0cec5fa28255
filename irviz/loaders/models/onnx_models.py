"""Load ONNX models."""

from __future__ import annotations

import contextlib
import io
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tvm import relax

from irviz.errors import LoadError
from irviz.loaders.file_errors import one_line
from irviz.loaders.loaded_model import Loaded, Missing, detach_weights, opaque_note
from irviz.loaders.models.imported_layers import onnx_layers
from irviz.loaders.models.importer_defects import mend
from irviz.loaders.models.onnx_evaluator import OnnxOrigin
from irviz.loaders.models.onnx_file import external_locations, inlined, read_model
from irviz.loaders.models.onnx_missing_operators import watch
from irviz.loaders.models.origin_file import OriginFile

if TYPE_CHECKING:
    import onnx

_OLDEST = 3
_MAX_MESSAGE = 2**31 - 1
"""Protobuf's limit on the size of a message, in bytes."""


def from_onnx_file(content: bytes, path: Path | None, missing: Missing = "error") -> Loaded:
    """Return the model in an ONNX file; raise LoadError for others. Runs in the worker.

    External weights are read from the folder of `path` and from nowhere else.
    """
    model = read_model(content, path)
    loaded, variables = _imported(model, missing)
    if not variables:
        return loaded
    return replace(loaded, origin=OnnxOrigin(OriginFile.of(content, path), variables))


def from_model(model: onnx.ModelProto, missing: Missing = "error") -> Loaded:
    """Return an ONNX model as TVM imports it, with its weights as parameters.

    Raises LoadError if TVM cannot import it.
    """
    loaded, variables = _imported(inlined(model), missing)
    if not variables or model.ByteSize() > _MAX_MESSAGE or external_locations(model):
        return loaded
    content = OriginFile.of(model.SerializeToString(), None)
    return replace(loaded, origin=OnnxOrigin(content, variables))


def _imported(model: onnx.ModelProto, missing: Missing) -> tuple[Loaded, dict[str, str]]:
    """Return the imported model, and the names of its variables by the names of the ONNX values.

    Without an origin that can be run, there are no names.
    """
    from tvm.relax.frontend.onnx.onnx_frontend import ONNXGraphImporter

    importer = ONNXGraphImporter(None, "float32", keep_params_in_input=True, sanitize=True)
    opaque = watch(importer, model, missing)
    opsets = (one.version for one in model.opset_import if one.domain in ("", "ai.onnx"))
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")  # by onnx's checker and by the importer
        try:
            if model.ir_version < _OLDEST:
                raise ValueError(f"Model IR version {model.ir_version} not supported")
            mod = importer.from_onnx(model.graph, next(opsets, 1))
        except MemoryError:
            raise
        except Exception as failure:  # the importer raises errors of any class
            words = one_line(failure)
            raise LoadError(f"the ONNX model cannot be imported by TVM: {words}") from failure
    values = importer._nodes.items()  # where the importer keeps them
    variables = {name: value.name for name, value in values if isinstance(value, relax.Var)}
    layers = {"main": onnx_layers(mod, model.graph, importer._nodes)}
    mod, notes = mend(mod)
    if opaque:
        notes, variables = (opaque_note(opaque), *notes), {}
    return Loaded(*detach_weights(mod), notes=notes, layers=layers), variables

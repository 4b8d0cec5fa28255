"""Load TensorFlow Lite models, as TVM imports them."""

from __future__ import annotations

import warnings
from typing import Any

from irviz.errors import LoadError
from irviz.loaders.file_limits import FileError, file_errors, one_line
from irviz.loaders.loaded_model import Loaded
from irviz.loaders.models.imported_layers import tflite_layers

_AGAIN = "write it again with tf.lite.TFLiteConverter"
_NEEDED = "install irviz[tflite], as in pip install 'irviz[tflite]'"


def from_tflite_file(content: bytes) -> Loaded:
    """Return the model in a TensorFlow Lite file, with its weights as constants.

    Runs in the worker. Raises LoadError if TVM cannot import it.
    """
    try:
        import tflite
    except ImportError:
        raise FileError(f"is a TensorFlow Lite model: {_NEEDED}") from None
    from tvm.relax.frontend.tflite import from_tflite
    from tvm.relax.frontend.tflite.tflite_frontend import OperatorConverter

    with file_errors("is not a complete TensorFlow Lite model", _AGAIN):
        model = tflite.Model.GetRootAsModel(content, 0)
        if model.SubgraphsLength() < 1:
            raise FileError(f"is a TensorFlow Lite model without a graph: {_AGAIN}")
        codes = [model.OperatorCodes(index) for index in range(model.OperatorCodesLength())]
        has_sizes = tflite.BuiltinOperator.SHAPE in [code.BuiltinCode() for code in codes]
    tables: list[Any] = []  # of the values by name: of main, then of the graphs that it calls

    def converter(model: Any, graph: Any, table: Any, builder: Any) -> OperatorConverter:
        tables.append(table)
        return OperatorConverter(model, graph, table, builder)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mod = from_tflite(model, op_converter=converter)
    except MemoryError:
        raise
    except Exception as failure:  # the importer raises errors of any class
        raise LoadError(
            f"the TensorFlow Lite model cannot be imported by TVM: {one_line(failure)}"
            + ("; it computes sizes as it runs: convert it with a fixed batch size" * has_sizes)
        ) from failure
    # a second copy of the constants
    mod["main"] = mod["main"].without_attr("params").without_attr("num_input")
    return Loaded(mod, layers=tflite_layers(mod, tables[0].exprs))

"""Call a smaller module with the values that its parameters have in the run that fails.

A parameter keeps its argument. A parameter that takes the place of a removed node has the value of
this node in that run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from tvm import ir, relax, tirx

from irviz.errors import InputError, RunError
from irviz.ir.module_functions import drawable_function
from irviz.ir.shapes.check_arguments import ShapeValue
from irviz.ir.shapes.symbolic_shapes import parameter_types, type_dims
from irviz.runtime.inputs.argument_conversion import Array
from irviz.runtime.inputs.synthetic_inputs import RANDOM
from irviz.runtime.run import CallInputs, TraceRequest, run
from irviz.session.bisect import Bisection

_BUDGET = 1 << 28
"""The bytes of values that are kept."""


def failing_values(found: Bisection) -> dict[str, object]:
    """Return the arguments that a bisection fails with and the values of nodes then, by name.

    The nodes are those of the module that the pass was applied to. For a pass that itself fails
    there are none, as nothing is run.
    """
    stage, before, session = found.stage, found.before, found.session
    if stage is None or before is None or stage.error:
        return {}
    values = dict(found.arguments or _given(found))
    own = parameter_types(drawable_function(before.module, session.function))
    inputs = CallInputs({name: values.get(name, RANDOM) for name in own})
    traced = TraceRequest(budget=_BUDGET)
    config = session.config_for(before)
    try:
        trace = run(before.module, session.function, inputs, trace=traced, config=config).trace
    except (RunError, InputError):  # such as a PrimFunc, which has no nodes
        return values
    for node, visit in trace.visits.items() if trace is not None else ():
        arrays = visit.value.arrays
        if arrays and all(one is not None for one in arrays) and str(node) not in values:
            values[str(node)] = arrays[0] if len(arrays) == 1 else arrays
    return values


def _given(found: Bisection) -> Mapping[str, object]:
    """Return the arguments of a session by name; given arrays with all of their cases."""
    call, first = found.session.call_inputs, found.session.tree.lineage()[0]
    try:
        plan = call.plan(first.module, found.session.function)
    except ValueError:
        return {}
    columns = dict(zip(plan.types, plan.argument_lists().columns, strict=True))
    return {name: rows if len(rows) > 1 else rows[0] for name, rows in columns.items()}


def followed_inputs(
    mod: ir.IRModule, function: str, values: Mapping[str, object]
) -> dict[str, object]:
    """Return the inputs of a function by name, from values; "random" for those that do not fit.

    Of an array that is larger than its parameter now, the first rows and columns are left.
    """
    types = parameter_types(drawable_function(mod, function))
    found = {name: _fitted(values.get(name), type_) for name, type_ in types.items()}
    return {name: RANDOM if value is None else value for name, value in found.items()}


def _fitted(value: object, type_: ir.Type) -> object | None:
    """Return a value, or the part of it that a type has room for, None if it does not fit."""
    match type_:
        case ir.TupleType() if isinstance(value, Sequence) and len(value) == len(type_.fields):
            fields = [_fitted(*pair) for pair in zip(value, type_.fields, strict=True)]
            return None if any(one is None for one in fields) else tuple(fields)
        case relax.TensorType() if isinstance(value, np.ndarray):
            return _cropped(value, type_)
        case ir.PrimType() if isinstance(value, bool | int | float):
            return value
        case relax.ShapeType() if isinstance(value, ShapeValue):
            return value
    return None


def _cropped(array: Array, type_: relax.TensorType) -> Array | None:
    dims = type_dims(type_)
    if dims is None or (type_.dtype is not None and str(array.dtype) != str(type_.dtype)):
        return None
    cases = array.ndim - len(dims)
    if cases not in (0, 1):
        return None
    sizes = [
        int(dim.value) if isinstance(dim, tirx.IntImm) else have
        for dim, have in zip(dims, array.shape[cases:], strict=True)
    ]
    if any(size > have for size, have in zip(sizes, array.shape[cases:], strict=True)):
        return None
    parts = (slice(None),) * cases + tuple(slice(size) for size in sizes)
    return np.ascontiguousarray(array[parts]).reshape((*array.shape[:cases], *sizes))

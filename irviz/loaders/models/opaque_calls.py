"""Calls of functions that TVM does not have, in place of operators that its importers lack."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import relax


def emitted_call(
    builder: relax.BlockBuilder,
    name: str,
    operands: Sequence[relax.Expr],
    types: relax.TensorType | list[relax.TensorType],
    *,
    has_new_sizes: bool,
) -> relax.Expr:
    """Emit a call of a function by its name; return its result, a tuple for several types.

    With `has_new_sizes` the types have symbols that are new, or no shape, and the function makes
    its results.
    """
    if not has_new_sizes:
        return builder.emit(relax.call_dps_packed(name, operands, types))
    several = types if isinstance(types, list) else [types]
    loose = [relax.TensorType(dtype=one.dtype, ndim=one.ndim) for one in several]
    type_ = loose[0] if len(loose) == 1 else relax.TupleType(loose)
    made = builder.emit(relax.op.call_pure_packed(name, *operands, ty_args=[type_]))
    if len(loose) == 1:
        parts = [made]
    else:
        parts = [builder.emit(relax.TupleGetItem(made, at)) for at in range(len(loose))]
    cast = [
        part if one.shape is None else builder.match_cast(part, one)
        for part, one in zip(parts, several, strict=True)
    ]
    return builder.emit(relax.Tuple(cast)) if isinstance(types, list) else cast[0]

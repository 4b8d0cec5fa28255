"""The sizes at which a call is tried, and the work of a PrimFunc at these sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tvm import ir, relax, sym, tirx
from tvm_ffi import structural_map

from irviz.ir.tir.scoped_names import used_vars
from irviz.ir.tir.statements import flatten, nested_statements
from irviz.transforms.kernels.sample_inputs import small_sizes
from irviz.transforms.kernels.signature import Signature, TensorSignature

_SCALES = (1, 4, 16)
"""Factors for the small sizes, tried in turn until every size computed from them is positive."""


def sample_signature(call: ir.Call, callee: tirx.PrimFunc | None) -> Signature | None:
    """Return a call's signature with static sizes: small ones stand in for symbolic sizes.

    Sizes that are static in the callee are used as they are. Returns None when no sizes fit.
    """
    types = call_tensor_types(call)
    out = call.ty_args[0]
    inputs = len(types) - (len(out.fields) if isinstance(out, ir.TupleType) else 1)
    given = _callee_sizes(types, callee)
    symbols = [var for type_ in types for dim in type_.shape.values for var in used_vars(dim)]
    free = [var for var in dict.fromkeys(symbols) if var not in given]
    taken = {dim.value for t in types for dim in t.shape.values if isinstance(dim, tirx.IntImm)}
    for scale in _SCALES:
        small = (size * scale for size in small_sizes() if size * scale not in taken)
        sizes = given | dict(zip(free, small, strict=False))
        tensors = [
            TensorSignature(tuple(str(_value(dim, sizes)) for dim in t.shape.values), str(t.dtype))
            for t in types
        ]
        if all(dim.isdigit() for tensor in tensors for dim in tensor.dims):
            return Signature(tuple(tensors[:inputs]), tuple(tensors[inputs:]))
    return None


def call_tensor_types(call: ir.Call) -> list[relax.TensorType]:
    """Return the types of a call's inputs and outputs, which are tensors of known shape."""
    packed, out = call.args[1], call.ty_args[0]
    fields = packed.fields if isinstance(packed, ir.Tuple) else [packed]
    outs = out.fields if isinstance(out, ir.TupleType) else [out]
    return [*(field.ty for field in fields), *outs]


def input_types(signature: Signature) -> list[relax.TensorType]:
    """Return the types of the inputs of a static signature."""
    return [relax.TensorType([*map(int, t.dims)], t.dtype) for t in signature.inputs]


def statement_count(function: tirx.PrimFunc, signature: Signature) -> int:
    """Estimate how many statements a PrimFunc executes at these sizes."""
    tensors = [*signature.inputs, *signature.outputs]
    sizes = {
        own: int(dim)
        for param, tensor in zip(function.params, tensors, strict=False)
        if tirx.is_buffer_var(param)
        for own, dim in zip(param.ty.shape, tensor.dims, strict=False)
        if isinstance(own, ir.Var)
    }
    total = 0
    stack = [(stmt, 1) for stmt in flatten(function.body)]
    while stack:
        stmt, times = stack.pop()
        if isinstance(stmt, tirx.For):
            extent = _value(stmt.extent, sizes)
            times *= extent if isinstance(extent, int) else 1
        inner = nested_statements(stmt)
        total += 0 if inner else times
        stack += [(each, times) for part in inner for each in flatten(part)]
    return total


def _callee_sizes(
    types: Sequence[relax.TensorType], callee: tirx.PrimFunc | None
) -> dict[ir.Var, int]:
    """Return the symbolic sizes of a call that are static in the callee."""
    return {
        dim: int(own.value)
        for type_, param in zip(types, callee.params if callee is not None else (), strict=False)
        if tirx.is_buffer_var(param)
        for dim, own in zip(type_.shape.values, param.ty.shape, strict=False)
        if isinstance(dim, ir.Var) and isinstance(own, tirx.IntImm)
    }


def _value(value: ir.Expr, sizes: Mapping[ir.Var, int]) -> int | str:
    """Return the value of an expression, "" if it is unknown."""
    if isinstance(value, tirx.IntImm):
        return int(value.value)
    if isinstance(value, ir.Var):
        return sizes.get(value, "")
    known = {
        var: tirx.IntImm(str(var.ty.dtype), sizes[var]) for var in used_vars(value) if var in sizes
    }
    found = sym.Analyzer().simplify(
        structural_map(value, (ir.Var, lambda var: known.get(var, var)), order="post")
    )
    return int(found.value) if isinstance(found, tirx.IntImm) else ""

"""The sizes that a call is tried at, and how much work a PrimFunc is at them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tvm import ir, relax, sym, tirx
from tvm_ffi import structural_map

from irviz.ir.scoped_names import variables
from irviz.ir.statements import flat, parts
from irviz.transforms.kernels.sample import small_sizes
from irviz.transforms.kernels.signature import Signature, Tensor

_SCALES = (1, 4, 16)
"""Small sizes are taken so many times as large when a size made of them is not above zero."""


def of_call(call: ir.Call, callee: tirx.PrimFunc | None) -> Signature | None:
    """Return a call's signature in numbers: its own sizes, and small ones for the symbolic.

    A size that the callee has in numbers is that. Returns None when there are none that fit.
    """
    types = tensors_of(call)
    out = call.ty_args[0]
    inputs = len(types) - (len(out.fields) if isinstance(out, ir.TupleType) else 1)
    given = _fixed(types, callee)
    symbols = [var for type_ in types for dim in type_.shape.values for var in variables(dim)]
    free = [var for var in dict.fromkeys(symbols) if var not in given]
    taken = {dim.value for t in types for dim in t.shape.values if isinstance(dim, tirx.IntImm)}
    for scale in _SCALES:
        small = (size * scale for size in small_sizes() if size * scale not in taken)
        sizes = given | dict(zip(free, small, strict=False))
        tensors = [
            Tensor(tuple(str(_number(dim, sizes)) for dim in t.shape.values), str(t.dtype))
            for t in types
        ]
        if all(dim.isdigit() for tensor in tensors for dim in tensor.dims):
            return Signature(tuple(tensors[:inputs]), tuple(tensors[inputs:]))
    return None


def tensors_of(call: ir.Call) -> list[relax.TensorType]:
    """Return the types of what a call reads and writes; they are tensors of known shape."""
    packed, out = call.args[1], call.ty_args[0]
    fields = packed.fields if isinstance(packed, ir.Tuple) else [packed]
    outs = out.fields if isinstance(out, ir.TupleType) else [out]
    return [*(field.ty for field in fields), *outs]


def types_of(signature: Signature) -> list[relax.TensorType]:
    """Return the types of the inputs of a signature in numbers."""
    return [relax.TensorType([*map(int, t.dims)], t.dtype) for t in signature.inputs]


def steps(function: tirx.PrimFunc, signature: Signature) -> int:
    """Return about how many statements a PrimFunc executes at these sizes."""
    tensors = [*signature.inputs, *signature.outputs]
    sizes = {
        own: int(dim)
        for param, tensor in zip(function.params, tensors, strict=False)
        if tirx.is_buffer_var(param)
        for own, dim in zip(param.ty.shape, tensor.dims, strict=False)
        if isinstance(own, ir.Var)
    }
    total = 0
    stack = [(stmt, 1) for stmt in flat(function.body)]
    while stack:
        stmt, times = stack.pop()
        if isinstance(stmt, tirx.For):
            extent = _number(stmt.extent, sizes)
            times *= extent if isinstance(extent, int) else 1
        inner = parts(stmt)
        total += 0 if inner else times
        stack += [(each, times) for part in inner for each in flat(part)]
    return total


def _fixed(types: Sequence[relax.TensorType], callee: tirx.PrimFunc | None) -> dict[ir.Var, int]:
    """Return the sizes that the callee has in numbers where the call has names."""
    return {
        dim: int(own.value)
        for type_, param in zip(types, callee.params if callee is not None else (), strict=False)
        if tirx.is_buffer_var(param)
        for dim, own in zip(type_.shape.values, param.ty.shape, strict=False)
        if isinstance(dim, ir.Var) and isinstance(own, tirx.IntImm)
    }


def _number(value: ir.Expr, sizes: Mapping[ir.Var, int]) -> int | str:
    """Return an expression's number, "" where it has none."""
    if isinstance(value, tirx.IntImm):
        return int(value.value)
    if isinstance(value, ir.Var):
        return sizes.get(value, "")
    known = {
        var: tirx.IntImm(str(var.ty.dtype), sizes[var]) for var in variables(value) if var in sizes
    }
    found = sym.Analyzer().simplify(
        structural_map(value, (ir.Var, lambda var: known.get(var, var)), order="post")
    )
    return int(found.value) if isinstance(found, tirx.IntImm) else ""

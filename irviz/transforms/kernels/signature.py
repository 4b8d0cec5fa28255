"""Signatures of destination-passing functions, and what fits one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tvm import ir, relax, tirx

from irviz.ir.type_and_expression_labels import dim_label

_DIM = r"(?:[^\W\d]\w*|\d+|\.\.\.)"
_ONE_ELLIPSIS = r"(?![^()]*\.\.\.[^()]*\.\.\.)"
_TENSOR = rf"\({_ONE_ELLIPSIS}(?:{_DIM}(?:,{_DIM})*)?\)"
_TENSORS = rf"({_TENSOR}(?:,{_TENSOR})*)"
_NAME = re.compile(r"[^\W\d]\w*")
_TEXT = re.compile(f"{_TENSORS}->{_TENSORS}")


# The notation is NumPy's for generalized ufuncs. A name stands for one size; symbolic sizes are
# compared as text.


@dataclass(frozen=True)
class TensorSignature:
    """A tensor's dimensions (names, numbers, or `...` for any number of them) and its dtype."""

    dims: tuple[str, ...]
    dtype: str

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions as numbers; all have to be static."""
        return tuple(map(int, self.dims))

    def __str__(self) -> str:
        return f"({','.join(self.dims)})"


@dataclass(frozen=True)
class Signature:
    """The tensors that a function reads and writes, in the order of its arguments."""

    inputs: tuple[TensorSignature, ...]
    outputs: tuple[TensorSignature, ...]

    @property
    def tensors(self) -> tuple[TensorSignature, ...]:
        """The inputs, then the outputs."""
        return (*self.inputs, *self.outputs)

    def __str__(self) -> str:
        return f"{','.join(map(str, self.inputs))}->{','.join(map(str, self.outputs))}"


def parse_signature(text: str, dtype: str = "float32") -> Signature:
    """Parse NumPy's notation for generalized ufuncs: `(b,m),(n,m),(n)->(b,n)`.

    Equal names are equal sizes; `...` is any number of dimensions, the same ones everywhere.
    Raises ValueError when the text is not a signature.
    """
    found = _TEXT.fullmatch(re.sub(r"\s*([(),]|->)\s*", r"\1", text))
    if not found:
        raise ValueError(
            f"{text!r} is not a signature; write one as in NumPy's ufuncs: '(b,m),(n,m),(n)->(b,n)'"
        )
    inputs, outputs = (
        tuple(
            TensorSignature(tuple(filter(None, dims.split(","))), dtype)
            for dims in re.findall(r"\(([^()]*)\)", side)
        )
        for side in found.groups()
    )
    return Signature(inputs, outputs)


def signature_of_prim_func(function: tirx.PrimFunc, outputs: int) -> Signature | None:
    """Return a PrimFunc's signature; its last `outputs` parameters are what it writes.

    Returns None when it has parameters that are not buffers.
    """
    if not all(isinstance(param.ty, tirx.BufferType) for param in function.params):
        return None
    tensors = tuple(tensor_signature(p.ty.shape, p.ty.dtype) for p in function.params)
    inputs = len(tensors) - outputs
    return Signature(tensors[:inputs], tensors[inputs:])


def call_types(call: ir.Call) -> tuple[list[ir.Type], list[ir.Type]]:
    """Return the types of the inputs and of the outputs of a `call_tir` or `call_dps_packed`."""
    packed, out = call.args[1], call.ty_args[0]
    inputs = packed.fields if isinstance(packed, ir.Tuple) else [packed]
    outputs = out.fields if isinstance(out, ir.TupleType) else [out]
    return [each.ty for each in inputs], list(outputs)


def signature_of_call(call: ir.Call) -> Signature | None:
    """Return a call's signature, None when an argument is not a tensor of known shape."""
    sides = []
    for types in call_types(call):
        if not all(
            isinstance(each, relax.TensorType)
            and each.dtype is not None
            and isinstance(each.shape, relax.ShapeExpr)
            for each in types
        ):
            return None
        sides.append(tuple(tensor_signature(t.shape.values, t.dtype) for t in types))
    return Signature(*sides)


def tensor_signature(dims: Iterable[ir.Expr], dtype: object) -> TensorSignature:
    """Return the signature of a tensor with these dimensions."""
    return TensorSignature(tuple(map(dim_label, dims)), str(dtype))


def fits(pattern: Signature, call: Signature) -> bool:
    """Tell whether a call matches a signature, with one size for each name.

    >>> linear = parse_signature("(b,m),(n,m),(n)->(b,n)")
    >>> fits(linear, parse_signature("(1,784),(128,784),(128)->(1,128)"))
    True
    >>> fits(linear, parse_signature("(1,784),(128,784),(10)->(1,128)"))
    False
    """
    sizes: dict[str, tuple[str, ...]] = {}
    return all(
        len(wanted) == len(given)
        and all(_unify(w, g, sizes) for w, g in zip(wanted, given, strict=True))
        for wanted, given in ((pattern.inputs, call.inputs), (pattern.outputs, call.outputs))
    )


def _unify(
    pattern: TensorSignature, given: TensorSignature, sizes: dict[str, tuple[str, ...]]
) -> bool:
    names, dims = pattern.dims, given.dims
    if "..." in names:
        start = names.index("...")
        end = len(dims) - (len(names) - start - 1)
        if end < start or sizes.setdefault("...", dims[start:end]) != dims[start:end]:
            return False
        names, dims = names[:start] + names[start + 1 :], dims[:start] + dims[end:]
    return (
        pattern.dtype == given.dtype
        and len(dims) == len(names)
        and all(_unify_dim(name, dim, sizes) for name, dim in zip(names, dims, strict=True))
    )


def _unify_dim(pattern: str, given: str, sizes: dict[str, tuple[str, ...]]) -> bool:
    if pattern.isidentifier():
        return sizes.setdefault(pattern, (given,)) == (given,)
    # a number matches itself; an expression such as `n * 2` is compared as text, n substituted
    return given == _NAME.sub(lambda name: sizes.get(name[0], (name[0],))[0], pattern)

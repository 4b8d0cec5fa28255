"""Evaluate shapes and sizes in bytes for known values of the symbolic sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

import tvm
from tvm import ir, relax

from irviz.errors import IrvizError
from irviz.ir.shapes.symbolic_shapes import dim_names, evaluate_dim, solve_dim, type_dims

Shape = tuple[int, ...]


class UnknownSizeError(IrvizError, ValueError):
    """A size depends on an unknown symbolic size, `name`."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the size {name!r} is not known")
        self.name = name


class ShapeEvaluator:
    """Evaluates the sizes in one function, and learns symbolic sizes from known shapes.

    `asked` collects the names that evaluated sizes contained.
    """

    def __init__(self, sizes: Mapping[str, int], asked: dict[str, None] | None = None) -> None:
        self.asked: dict[str, None] = {} if asked is None else asked
        self._sizes = dict(sizes)

    def inside(self) -> ShapeEvaluator:
        """Return an evaluator for a called function, which learns by itself."""
        return ShapeEvaluator(self._sizes, self.asked)

    def of(self, size: ir.Expr) -> int:
        """Return a size's value; raise UnknownSizeError if it depends on an unknown one."""
        names = sorted(dim_names(size))
        self.asked.update(dict.fromkeys(names))
        found = evaluate_dim(size, self._sizes)
        if found is None:
            raise UnknownSizeError(next((n for n in names if n not in self._sizes), str(size)))
        return found

    def shape(self, dims: Iterable[ir.Expr]) -> Shape:
        """Return a shape's value; raise UnknownSizeError if it depends on an unknown size."""
        return tuple(map(self.of, dims))

    def known(self, type_: ir.Type | None) -> Shape | None:
        """Return the shape in a type, or None if it is unknown."""
        dims = None if type_ is None else type_dims(type_)
        try:
            return None if dims is None else self.shape(dims)
        except UnknownSizeError:
            return None

    def learn(self, type_: ir.Type | None, shape: Shape | None) -> None:
        """Learn symbolic sizes in a type from the shape of a value of this type."""
        dims = None if type_ is None else type_dims(type_)
        for dim, size in zip(dims or (), shape or (), strict=False):
            own = {name: value for name, value in self._sizes.items() if name not in dim_names(dim)}
            found = solve_dim(dim, size, own)
            if found is not None:
                self._sizes[found[0]] = found[1]


def nbytes(shape: Shape, dtype: object) -> int:
    """Return a tensor's size in bytes."""
    type_ = tvm.DataType(str(dtype))
    return prod(shape) * ((int(type_.bits) * int(type_.lanes) + 7) // 8)


def tensor_types(type_: ir.Type | None) -> list[relax.TensorType]:
    """Return the tensor types in a type: its own, or those of a tuple's fields in order."""
    if isinstance(type_, ir.TupleType):
        return [found for field in type_.fields for found in tensor_types(field)]
    return [type_] if isinstance(type_, relax.TensorType) else []

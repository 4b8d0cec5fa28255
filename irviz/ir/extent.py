"""What shapes are, and how many bytes they take, when the symbolic sizes in them are known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

import tvm
from tvm import ir, relax, tirx

from irviz.ir.sizes import evaluated, names_of, shape_of, solved

Shape = tuple[int, ...]


class UnknownSizeError(ValueError):
    """A size that depends on a symbolic one which nobody has told; `name` is that one's."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the size {name!r} is not known")
        self.name = name


class Extents:
    """Evaluates the sizes of one function by the names in them, and learns more on the way.

    `asked` are the names that sizes were made of.
    """

    def __init__(self, sizes: Mapping[str, int], asked: dict[str, None] | None = None) -> None:
        self.asked: dict[str, None] = {} if asked is None else asked
        self._sizes = dict(sizes)

    def inside(self) -> Extents:
        """Return those of a called function, which has names of its own."""
        return Extents(self._sizes, self.asked)

    def of(self, size: ir.Expr) -> int:
        """Return what a size is; raise UnknownSizeError for one that depends on another."""
        if isinstance(size, tirx.IntImm):
            return int(size.value)
        names = sorted(names_of(size))
        self.asked.update(dict.fromkeys(names))
        found = evaluated(size, self._sizes)
        if found is None:
            raise UnknownSizeError(next((n for n in names if n not in self._sizes), str(size)))
        return found

    def shape(self, dims: Iterable[ir.Expr]) -> Shape:
        """Return a shape; raise UnknownSizeError where it depends on what is not known."""
        return tuple(self.of(dim) for dim in dims)

    def known(self, type_: ir.Type | None) -> Shape | None:
        """Return the shape that a type says, None where that is not known."""
        dims = None if type_ is None else shape_of(type_)
        try:
            return None if dims is None else self.shape(dims)
        except UnknownSizeError:
            return None

    def learn(self, type_: ir.Type | None, shape: Shape | None) -> None:
        """Learn the sizes in a type from the shape of a value that it describes."""
        dims = None if type_ is None else shape_of(type_)
        for dim, size in zip(dims or (), shape or (), strict=False):
            own = {name: value for name, value in self._sizes.items() if name not in names_of(dim)}
            found = solved(dim, size, own)
            if found is not None:
                self._sizes[found[0]] = found[1]


def nbytes(shape: Shape, dtype: object) -> int:
    """Return how many bytes a tensor takes."""
    type_ = tvm.DataType(str(dtype))
    return prod(shape) * ((int(type_.bits) * int(type_.lanes) + 7) // 8)


def tensors(type_: ir.Type | None) -> list[relax.TensorType]:
    """Return the tensors in a type, those of a tuple's fields in their order."""
    if isinstance(type_, ir.TupleType):
        return [found for field in type_.fields for found in tensors(field)]
    return [type_] if isinstance(type_, relax.TensorType) else []

"""Unique names for a PrimFunc's variables, and its expressions as text with these names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import tvm_ffi
from tvm import ir, tirx

from irviz.ir.labels import dim_label

_USUAL_INTEGERS = ("int32", "int64")
_NON_WORD = re.compile(r"\W", re.ASCII)


class ScopedNames:
    """Assigns names as TVMScript does: a name that is taken in this scope gets a number.

    TVM distinguishes variables by identity, so two variables in one scope can have one name.
    """

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._names: dict[ir.Var, str] = {}
        self._taken = set(reserved)
        self._has_renamed = False

    def define(self, var: ir.Var) -> str:
        """Return the variable's name; a new variable gets one."""
        if var in self._names:
            return self._names[var]
        hint = _NON_WORD.sub("_", str(var.name))
        hint = name = hint if hint[:1].isidentifier() else f"v{hint}"
        number = 0
        while name in self._taken:
            number += 1
            name = f"{hint}_{number}"
        self._has_renamed |= name != var.name
        self._names[var] = name
        self._taken.add(name)
        return name

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Release the names defined in the `with` block at its end."""
        names, taken = dict(self._names), set(self._taken)
        yield
        self._names, self._taken = names, taken

    def text(self, value: object) -> str:
        """Return an expression, a statement without nested ones, or another object as one line."""
        if isinstance(value, tirx.IntImm) and value.ty.dtype in _USUAL_INTEGERS:
            return str(value.value)  # as most are, and TVM takes long to print them
        value = self.rename(value)
        if not isinstance(value, (ir.Expr, ir.TensorRegion, tirx.Stmt)):
            return " ".join(str(value).split())
        # TVM prints declarations of the variables above, and a comment on metadata below
        lines = [line for line in str(value).splitlines() if line and not line.startswith("#")]
        return dim_label(lines[-1]) if lines else ""

    def rename(self, value: object) -> object:
        """Return an expression whose variables have the names of this scope."""
        if not self._has_renamed or not isinstance(value, tvm_ffi.Object):
            return value
        return tvm_ffi.structural_map(value, (ir.Var, self._rename_var))

    def _rename_var(self, var: ir.Var) -> ir.Var:
        name = self._names.get(var, var.name)
        return var if name == var.name else ir.Var(name, var.ty)


def used_vars(value: ir.Expr) -> list[ir.Var]:
    """Return the variables in an expression, each once for every use."""
    if isinstance(value, tirx.IntImm):  # as most are
        return []
    if isinstance(value, ir.Var) and isinstance(value.ty, ir.PrimType):
        return [value]
    found: list[ir.Var] = []
    tvm_ffi.structural_walk(value, (ir.Var, found.append))
    return found

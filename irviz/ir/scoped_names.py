"""Names for a PrimFunc's variables, and its expressions as text of these names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import tvm_ffi
from tvm import ir, tirx

from irviz.ir.type_label import dim_label

_NO_NAME = re.compile(r"\W", re.ASCII)


class ScopedNames:
    """Names as TVMScript gives them: a name that is taken gets a number, for as long as it is.

    TVM's variables are told apart by identity, so two that are seen together may be called alike.
    """

    def __init__(self) -> None:
        self._names: dict[ir.Var, str] = {}
        self._taken: set[str] = set()
        self._has_renamed = False

    def define(self, var: ir.Var) -> str:
        """Return the variable's name, given to it now if it has none yet."""
        if var in self._names:
            return self._names[var]
        hint = name = _NO_NAME.sub("_", str(var.name)) or "v"
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
        """Let the names that are given inside of it be free again after it."""
        names, taken = dict(self._names), set(self._taken)
        yield
        self._names, self._taken = names, taken

    def text(self, value: object) -> str:
        """Return an expression, a statement with none inside or any other object as one line."""
        value = self.renamed(value)
        if not isinstance(value, (ir.Expr, ir.TensorRegion, tirx.Stmt)):
            return " ".join(str(value).split())
        # TVM writes declarations of the variables above, and a remark about metadata below
        lines = [line for line in str(value).splitlines() if line and not line.startswith("#")]
        return dim_label(lines[-1]) if lines else ""

    def renamed(self, value: object) -> object:
        """Return an expression with the variables in it called as they are here."""
        if not self._has_renamed or not isinstance(value, tvm_ffi.Object):
            return value
        return tvm_ffi.structural_map(value, (ir.Var, self._as_seen))

    def _as_seen(self, var: ir.Var) -> ir.Var:
        name = self._names.get(var, var.name)
        return var if name == var.name else ir.Var(name, var.ty)


def variables(value: ir.Expr) -> list[ir.Var]:
    """Return the variables of an expression, one as often as it stands there."""
    found: list[ir.Var] = []
    tvm_ffi.structural_walk(value, (ir.Var, found.append))
    return found

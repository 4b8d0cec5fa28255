"""Walk over the statements of a PrimFunc, without recursion."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import tvm_ffi
from tvm import ir, s_tir, tirx

from irviz.errors import PrintError
from irviz.ir.tvmscript import marked_lines
from irviz.ir.type_and_expression_labels import dim_label

_Part = TypeVar("_Part", bound=tvm_ffi.Object)


def walk_statements(body: tirx.Stmt) -> Iterator[tuple[tirx.Stmt, int]]:
    """Yield statements in the order of the text, each with its nesting level; never recurse."""
    stack = [(stmt, 0) for stmt in reversed(flatten(body))]
    while stack:
        stmt, level = stack.pop()
        yield stmt, level
        inner = [each for part in nested_statements(stmt) for each in flatten(part)]
        stack += [(each, level + 1) for each in reversed(inner)]


def flatten(stmt: tirx.Stmt) -> list[tirx.Stmt]:
    """Return the statements of a sequence, or the statement itself."""
    return [each for each, _ in flatten_with_paths(stmt, "")]


def flatten_with_paths(stmt: tirx.Stmt, path: str) -> list[tuple[tirx.Stmt, str]]:
    """Return what `flatten` returns, each with TVM's access path; `path` leads to `stmt`."""
    found: list[tuple[tirx.Stmt, str]] = []
    stack = [(stmt, path)]
    while stack:
        each, at = stack.pop()
        if isinstance(each, tirx.SeqStmt):
            inner = [(part, f"{at}.seq[{number}]") for number, part in enumerate(each.seq)]
            stack += reversed(inner)
        else:
            found.append((each, at))
    return found


def nested_statements(stmt: tirx.Stmt) -> list[tirx.Stmt]:
    """Return the statements directly inside a statement, in the order of the text."""
    match stmt:
        case tirx.For() | tirx.While() | tirx.AttrStmt():
            inside = [stmt.body]
        case tirx.IfThenElse():
            inside = [stmt.then_case, stmt.else_case]
        case s_tir.SBlockRealize():
            inside = [stmt.block.init, stmt.block.body]
        case s_tir.SBlock():
            inside = [stmt.init, stmt.body]
        case _:
            inside = []
    return [part for part in inside if part is not None]


# --- The line of TVMScript that each statement of a PrimFunc begins at ---------------------------


_MAX_PRINTED_NESTING = 500  # TVM's printer recurses, and ends the process some way past 1000


def script_lines(prim_func: tirx.PrimFunc) -> dict[tirx.Stmt, list[str]]:
    """Return the first line of each statement, once for each of its occurrences.

    The result is empty if TVM cannot print the function.
    """
    lines: dict[tirx.Stmt, list[str]] = defaultdict(list)
    # with syntactic sugar two statements can share a line, and a line takes one mark
    for text, starting in _marked_lines(prim_func, prim_func, syntax_sugar=False):
        for stmt in starting:
            lines[stmt].append(text.strip())
    return dict(lines)


def statement_numbers(prim_func: tirx.PrimFunc, name: str = "") -> dict[tirx.Stmt, int]:
    """Return the number of each statement's first line in the function's TVMScript, from 1.

    With a name, that is how many lines it is below the function's `def` in a module. Of several
    statements that share a line, and for one that stands in several places, only the first is
    there. The result is empty if TVM cannot print the function.
    """
    numbers: dict[tirx.Stmt, int] = {}
    start = 0
    # by itself a function has other attributes than in a module, which are a line more
    printed = ir.IRModule({name: prim_func}) if name else prim_func
    marked = _marked_lines(prim_func, printed, syntax_sugar=True)
    for number, (text, starting) in enumerate(marked, 1):
        if name and text.lstrip().startswith("def "):
            start = number
        for stmt in starting:
            numbers.setdefault(stmt, number - start)
    return numbers


def _marked_lines(
    prim_func: tirx.PrimFunc, printed: tirx.PrimFunc | ir.IRModule, *, syntax_sugar: bool
) -> list[tuple[str, list[tirx.Stmt]]]:
    """Return the lines of TVMScript, each with the statements that begin there; [] for none."""
    statements: dict[tirx.Stmt, None] = {}
    for stmt, level in walk_statements(prim_func.body):
        if level > _MAX_PRINTED_NESTING:
            return []
        statements[stmt] = None
    try:
        return list(marked_lines(printed, statements, syntax_sugar=syntax_sugar))
    except PrintError:
        return []


# --- Unique names for a PrimFunc's variables, and its expressions as text with these names -------


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
        return dim_label(str(value))

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
    return parts_of(value, ir.Var)


def is_number(expr: object, number: int) -> bool:
    """Tell whether an expression is this integer."""
    return isinstance(expr, tirx.IntImm) and int(expr.value) == number


def parts_of(value: object, kind: type[_Part]) -> list[_Part]:
    """Return the parts of an object that are of a class, each once for every use."""
    found: list[_Part] = []
    tvm_ffi.structural_walk(value, (kind, found.append))
    return found

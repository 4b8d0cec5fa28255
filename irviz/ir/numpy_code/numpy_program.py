"""Translate TVM functions to a NumPy program, as source that can be run."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import ir, relax, tirx

from irviz.errors import NotFoundError, NumPyError
from irviz.ir.module_functions import function_named
from irviz.ir.numpy_code.prim_func import (
    CALL_TIR,
    Origins,
    function_name,
    write_prim_func,
)
from irviz.ir.numpy_code.relax_function import CALL_TIR_SOURCE, CONSTANTS, RelaxWriter

_GAP = "\n" * 3


@dataclass(frozen=True, eq=False)
class NumPyFunction:
    """One function as Python, with the origins of its lines and the functions that it calls."""

    name: str
    source: str
    lines: Mapping[int, object]
    callees: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class NumPyProgram:
    """A Python program on NumPy arrays, written from TVM functions.

    Attributes:
        source: The source code, with its imports.
        name: The name of the requested function.
        constants: The arrays that the source refers to as `constants`.
        lines: By line number, from 1: the name of the function in the module, and the binding or
            statement that the line was written from; for a `def` line, the function itself.
    """

    source: str
    name: str
    constants: tuple[NDArray[np.generic], ...] = ()
    lines: Mapping[int, tuple[str, object]] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the text."""
        return self.source

    def compile(self) -> Callable[..., Any]:
        """Compile the source; a function made from a PrimFunc writes to its last arguments."""
        import ml_dtypes  # which few need

        known: dict[str, Any] = {
            "np": np,
            "math": math,
            "ml_dtypes": ml_dtypes,
            CONSTANTS: self.constants,
        }
        exec(compile(self.source, f"<{self.name}>", "exec"), known)  # noqa: S102 # our own text
        found: Callable[..., Any] = known[self.name]
        return found


def to_numpy(what: ir.IRModule | tirx.PrimFunc, function: str = "") -> NumPyProgram:
    """Translate a function to readable Python that loops over NumPy arrays.

    A PrimFunc becomes a function `lnumpy_NAME` that takes its buffers as arrays and writes to those
    of its outputs. A Relax function becomes one that allocates the outputs of each call_tir; the
    PrimFuncs that it calls are translated with it.

    Args:
        what: A PrimFunc, or a module.
        function: The function of the module; by default "main", or the only one.

    Raises:
        NotFoundError: The module has no such function.
        NumPyError: The function uses a construct that NumPy lacks; the message gives its line.
    """
    if isinstance(what, tirx.PrimFunc):
        name = function or str((what.attrs or {}).get("global_symbol", "main"))
        what = ir.IRModule({name: what})
    names = [gvar.name_hint for gvar in what.functions]
    name = function or ("main" if "main" in names or len(names) != 1 else names[0])
    constants: list[tvm.runtime.Tensor] = []
    written: dict[str, NumPyFunction] = {}
    waiting = [name]
    while waiting:
        current = waiting.pop()
        written[current] = write_function(what, current, constants)
        waiting += [callee for callee in written[current].callees if callee not in written]
    return _program(list(reversed(written.values())), name, constants)


def write_function(
    mod: ir.IRModule, name: str, constants: list[tvm.runtime.Tensor]
) -> NumPyFunction:
    """Write one function of a module without its imports, and add its constants to others.

    Raises NotFoundError and NumPyError as `to_numpy` does.
    """
    function = function_named(mod, name)
    origins: Origins = {}
    callees: tuple[str, ...] = ()
    if isinstance(function, tirx.PrimFunc):
        tree = write_prim_func(function, name, origins)
    elif isinstance(function, relax.Function):
        writer = RelaxWriter(mod, constants, origins)
        tree = writer.function(function, name)
        callees = tuple(writer.callees)
    else:
        names = [gvar.name_hint for gvar in mod.functions]
        raise NotFoundError(f"the module has no function {name!r}: it has {names}")
    origins[tree] = function
    source = ast.unparse(ast.fix_missing_locations(tree))
    try:
        written = ast.parse(source).body
    except SyntaxError as failure:  # Python indents 100 times at most
        message = f"{name} cannot be written as NumPy, as Python cannot read it: {failure.msg}"
        raise NumPyError(message, "more nesting than Python can read") from None
    pairs = zip(_statements([tree]), _statements(written), strict=True)
    lines = {parsed.lineno: origins[one] for one, parsed in pairs if one in origins}
    return NumPyFunction(name, source, lines, callees)


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for one in body:
        yield one
        yield from _statements([*getattr(one, "body", ()), *getattr(one, "orelse", ())])


def heading(texts: Sequence[str]) -> str:
    """Return the imports and the helper function that functions need."""
    used = [module for module in ("math", "ml_dtypes") if any(f"{module}." in one for one in texts)]
    imports = "\n".join([*(f"import {module}" for module in used), "import numpy as np"])
    is_calling = any(f"{CALL_TIR}(" in text for text in texts)
    return _GAP.join([imports, *([CALL_TIR_SOURCE.strip()] if is_calling else [])])


def _program(
    functions: list[NumPyFunction], name: str, constants: list[tvm.runtime.Tensor]
) -> NumPyProgram:
    source = heading([one.source for one in functions])
    lines: dict[int, tuple[str, object]] = {}
    for one in functions:
        source += _GAP
        start = source.count("\n")
        lines |= {start + line: (one.name, origin) for line, origin in one.lines.items()}
        source += one.source
    arrays = tuple(tensor.numpy() for tensor in constants)
    return NumPyProgram(source + "\n", function_name(name), arrays, lines)

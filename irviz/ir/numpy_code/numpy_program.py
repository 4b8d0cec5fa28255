"""A program of NumPy that does what functions of TVM do, as text that can be run."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import ir, relax, tirx

from irviz.errors import NotFoundError
from irviz.ir.module_functions import function_named
from irviz.ir.numpy_code.prim_func import CALL_TIR, function_name, write_prim_func
from irviz.ir.numpy_code.relax_function import CALL_TIR_SOURCE, CONSTANTS, RelaxWriter


@dataclass(frozen=True, eq=False)
class NumPyProgram:
    """Python functions over NumPy arrays.

    Attributes:
        source: Their text, with its imports.
        name: The name of the function that was asked for.
        constants: The arrays that the text calls `constants`.
    """

    source: str
    name: str
    constants: tuple[NDArray[np.generic], ...] = ()

    def __str__(self) -> str:
        """Return the text."""
        return self.source

    def compile(self) -> Callable[..., Any]:
        """Return the function; a PrimFunc's writes its result into its last arguments."""
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
    """Write a function as loops over NumPy arrays: readable Python that can be run.

    A PrimFunc becomes a function `lnumpy_NAME` that takes its buffers as arrays, and writes into
    those of its outputs. A Relax function becomes one that allocates the outputs of each call_tir,
    with those of all PrimFuncs that it calls.

    Args:
        what: A PrimFunc, or a module.
        function: Which function of the module; "main", or the only one, if it is left out.

    Raises:
        NotFoundError: The module has no such function.
        NumPyError: A construct that NumPy does not have; the message has its line.
    """
    if isinstance(what, tirx.PrimFunc):
        name = function or str((what.attrs or {}).get("global_symbol", "main"))
        return _program([write_prim_func(what, name)], name, [])
    names = [gvar.name_hint for gvar in what.functions]
    name = function or ("main" if "main" in names or len(names) != 1 else names[0])
    constants: list[NDArray[np.generic]] = []
    written: dict[str, ast.FunctionDef] = {}
    waiting = [name]
    while waiting:
        current = waiting.pop()
        one = function_named(what, current)
        if isinstance(one, tirx.PrimFunc):
            written[current] = write_prim_func(one, current)
        elif isinstance(one, relax.Function):
            writer = RelaxWriter(what, constants)
            written[current] = writer.function(one, current)
            waiting += [callee for callee in writer.callees if callee not in written]
        else:
            raise NotFoundError(f"the module has no function {current!r}: it has {names}")
    return _program(list(reversed(written.values())), name, constants)


def _program(
    functions: list[ast.FunctionDef], name: str, constants: list[NDArray[np.generic]]
) -> NumPyProgram:
    texts = [ast.unparse(ast.fix_missing_locations(one)) for one in functions]
    if any(f"{CALL_TIR}(" in text for text in texts):
        texts.insert(0, CALL_TIR_SOURCE.strip())
    used = [module for module in ("math", "ml_dtypes") if any(f"{module}." in one for one in texts)]
    imports = "\n".join([*(f"import {module}" for module in used), "import numpy as np"])
    source = "\n\n\n".join([imports, *texts]) + "\n"
    return NumPyProgram(source, function_name(name), tuple(constants))

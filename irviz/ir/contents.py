"""What is in a module beside the graphs of its functions."""

from __future__ import annotations

from tvm import ir, relax, tirx

from irviz.ir.attributes import attributes
from irviz.ir.callee import python_functions
from irviz.model.contents import Contents, FunctionFacts


def contents(mod: ir.IRModule) -> Contents:
    """Return the functions of a module, in the order of their names, and its attributes."""
    python = python_functions(mod)
    functions = [
        FunctionFacts(
            str(gvar.name_hint),
            _kind(function),
            not _attributes(function, "global_symbol"),
            tuple(item for item in _attributes(function) if item[0] != "global_symbol"),
        )
        for gvar, function in mod.functions.items()
        if gvar.name_hint not in python
    ]
    functions += [FunctionFacts(name, "Python function", False, ()) for name in python]
    return Contents(tuple(sorted(functions, key=lambda one: one.name)), attributes(mod.attrs))


def _kind(function: ir.BaseFunc) -> str:
    if isinstance(function, relax.Function):
        return "Function" if function.is_pure else "Function, impure"
    return "PrimFunc" if isinstance(function, tirx.PrimFunc) else type(function).__name__


def _attributes(function: ir.BaseFunc, name: str = "") -> tuple[tuple[str, str], ...]:
    found = attributes(getattr(function, "attrs", None))
    return tuple(item for item in found if not name or item[0] == name)

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
        _facts(str(gvar.name_hint), function)
        for gvar, function in mod.functions.items()
        if gvar.name_hint not in python
    ]
    functions += [FunctionFacts(name, "Python function", False, ()) for name in python]
    return Contents(tuple(sorted(functions, key=lambda one: one.name)), attributes(mod.attrs))


def _facts(name: str, function: ir.BaseFunc) -> FunctionFacts:
    found = attributes(getattr(function, "attrs", None))
    others = tuple(item for item in found if item[0] != "global_symbol")
    return FunctionFacts(name, _kind(function), len(others) == len(found), others)


def _kind(function: ir.BaseFunc) -> str:
    if isinstance(function, relax.Function):
        return "Function" if function.is_pure else "Function, impure"
    return "PrimFunc" if isinstance(function, tirx.PrimFunc) else type(function).__name__

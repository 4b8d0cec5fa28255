"""A module's functions and attributes, as plain data."""

from __future__ import annotations

from tvm import ir, relax, tirx

from irviz.ir.module_functions import python_functions
from irviz.ir.text.expression_labels import attributes
from irviz.model.graph.module_contents import FunctionInfo, ModuleContents


def contents(mod: ir.IRModule) -> ModuleContents:
    """Return the functions of a module, in alphabetical order, and its attributes."""
    python = python_functions(mod)
    functions = [
        _facts(str(gvar.name_hint), function)
        for gvar, function in mod.functions.items()
        if gvar.name_hint not in python
    ]
    functions += [FunctionInfo(name, "Python function", False, ()) for name in python]
    return ModuleContents(tuple(sorted(functions, key=lambda one: one.name)), attributes(mod.attrs))


def _facts(name: str, function: ir.BaseFunc) -> FunctionInfo:
    attrs = attributes(getattr(function, "attrs", None))
    others = tuple(item for item in attrs if item[0] != "global_symbol")
    return FunctionInfo(name, _kind(function), len(others) == len(attrs), others)


def _kind(function: ir.BaseFunc) -> str:
    if isinstance(function, relax.Function):
        return "Relax function" if function.is_pure else "Relax function, impure"
    return "PrimFunc" if isinstance(function, tirx.PrimFunc) else type(function).__name__

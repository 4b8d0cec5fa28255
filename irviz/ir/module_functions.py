"""The functions of a module, by name and kind."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TypeVar

import tvm_ffi
from tvm import ir, relax, tirx

from irviz.errors import NotFoundError
from irviz.ir.type_and_expression_labels import attributes
from irviz.model.graph.graph import FunctionInfo, ModuleContents
from irviz.units import first_names

_MOST_NAMES = 3
_OTHER = "an IRModule with an @R.function, or another stage"
_Function = TypeVar("_Function", bound=ir.BaseFunc)


class NoFunctionError(NotFoundError):
    """The module has no function of a name; the message lists its functions."""


def relax_functions(mod: ir.IRModule) -> dict[str, relax.Function]:
    """Return the module's Relax functions by name, in alphabetical order."""
    return _functions_of_class(mod, relax.Function)


def prim_funcs(mod: ir.IRModule) -> dict[str, tirx.PrimFunc]:
    """Return the module's PrimFuncs by name, in alphabetical order."""
    return _functions_of_class(mod, tirx.PrimFunc)


def _functions_of_class(mod: ir.IRModule, kind: type[_Function]) -> dict[str, _Function]:
    return dict(_of_class(_Functions(mod.functions), kind))  # type: ignore[arg-type]  # a class


class _Functions:
    """The functions that a module has now: if it changes, TVM gives it another map.

    TVM's map hashes all that it contains.
    """

    def __init__(self, by_variable: tvm_ffi.Map[ir.GlobalVar, ir.BaseFunc]) -> None:
        self.by_variable = by_variable

    def __hash__(self) -> int:
        return hash(self.by_variable.__chandle__())

    def __eq__(self, other: object) -> bool:
        is_same = isinstance(other, _Functions) and self.by_variable.same_as(other.by_variable)
        return bool(is_same)


@lru_cache(maxsize=256)  # the stages of a compile, with Relax functions and PrimFuncs
def _of_class(functions: _Functions, kind: type[_Function]) -> dict[str, _Function]:
    found = {v.name_hint: one for v, one in functions.by_variable.items() if isinstance(one, kind)}
    return dict(sorted(found.items()))


def with_functions(mod: ir.IRModule, changed: Mapping[str, ir.BaseFunc]) -> ir.IRModule:
    """Return a module with the functions of these names replaced."""
    functions = {gvar: changed.get(gvar.name_hint, one) for gvar, one in mod.functions.items()}
    return ir.IRModule(functions, attrs=mod.attrs, global_infos=mod.global_infos)


def drawable_functions(mod: ir.IRModule) -> dict[str, relax.Function | tirx.PrimFunc]:
    """Return the functions that have a graph, by name: Relax functions, then PrimFuncs."""
    return {**relax_functions(mod), **prim_funcs(mod)}


def python_functions(mod: ir.IRModule) -> frozenset[str]:
    """Return the names of a BasePyModule's Python functions, even after passes or loading.

    A pass or a file keeps only an ExternFunc with a mark of each, and the module's own list is
    lost.
    """
    marked = [
        str(name)
        for name, function in _functions_of_class(mod, relax.ExternFunc).items()
        if function.attrs is not None and "is_pyfunc" in function.attrs.keys()  # noqa: SIM118 - no iterator
    ]
    return frozenset([*marked, *map(str, getattr(mod, "pyfuncs", None) or ())])


def function_named(mod: ir.IRModule, name: str) -> ir.BaseFunc | None:
    """Return the module's function of this name and any kind, or None."""
    return mod[name] if name in mod else None  # noqa: SIM401 - a module has no get()


def relax_function(mod: ir.IRModule, name: str) -> relax.Function:
    """Return the Relax function of this name, or raise NoFunctionError."""
    found = function_named(mod, name)
    if isinstance(found, relax.Function):
        return found
    if found is None:
        raise NoFunctionError(f"the module has no function {name!r}; {_advice(mod)}")
    article = "an" if isinstance(found, relax.ExternFunc) else "a"
    advice = _advice(mod) if relax_functions(mod) else f"the module has none: give {_OTHER}"
    raise NoFunctionError(
        f"{name!r} is {article} {type(found).__name__}, not a Relax function; {advice}"
    )


def drawable_function(mod: ir.IRModule, name: str) -> relax.Function | tirx.PrimFunc:
    """Return the Relax function or PrimFunc of this name, or raise NoFunctionError."""
    found = function_named(mod, name)
    return found if isinstance(found, tirx.PrimFunc) else relax_function(mod, name)


def default_function(mod: ir.IRModule) -> str:
    """Return "main", or the first name of a Relax function, or that of a PrimFunc."""
    functions = relax_functions(mod)
    return "main" if "main" in functions else next(iter(drawable_functions(mod)), "main")


def _advice(mod: ir.IRModule) -> str:
    if functions := relax_functions(mod):
        return f"its Relax functions are {', '.join(map(repr, functions))}: give one of these"
    if kernels := list(prim_funcs(mod)):
        named = first_names([*map(repr, kernels)], _MOST_NAMES)
        return (
            f"it has only the PrimFuncs {named}: look at one of these, as by "
            "session.select_function, or at a stage before they were compiled by themselves"
        )
    if not mod.functions:
        return f"it is empty: give {_OTHER}"
    return f"it has no Relax function at all: give {_OTHER}"


# --- A module's functions and attributes, as plain data ------------------------------------------


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

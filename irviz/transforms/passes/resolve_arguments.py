"""Plain arguments -> what TVM takes: names are looked up in the module, targets created."""

from __future__ import annotations

import enum
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import ir, relax, tirx

from irviz.errors import TransformError
from irviz.ir.functions import function_named, relax_function, relax_functions
from irviz.transforms.passes import hints
from irviz.transforms.passes.parameters import ParameterKind, PassParameter


@dataclass(frozen=True)
class NameScope:
    """Where names are looked up: a module, and the function that a call applies to, if any."""

    mod: ir.IRModule
    function: str | None = None


def resolve_argument(parameter: PassParameter, value: object, scope: NameScope) -> object:
    """Return a checked argument as TVM takes it.

    Raises TransformError or NoFunctionError for a name that the module does not have.
    """
    if value is None:
        return None
    if parameter.kind is ParameterKind.BOOL and isinstance(value, tuple):
        return _functions(value, scope)  # names of functions, given instead
    if parameter.kind is ParameterKind.CHOICE and issubclass(parameter.item, enum.Enum):
        return parameter.item[str(value)]
    reader: Callable[[Any, NameScope], object] | None = _READERS.get(parameter.kind)
    return value if reader is None else reader(value, scope)


def make_target(text: str) -> tvm.target.Target:
    """Create a target; raise TransformError with TVM's message when that fails."""
    try:
        return tvm.target.Target(text)
    except Exception as failure:  # TVM raises what its C++ side threw, of any class
        said = (str(failure).strip().splitlines() or [repr(failure)])[-1].strip(" '")
        raise TransformError(
            f"{text!r} is not a target: {said}; give a kind such "
            "as 'llvm' or 'cuda', or a dict such as {'kind': 'llvm', 'num-cores': 4}"
        ) from failure


def pattern_module(prefix: str) -> str:
    """Return the module that registers the patterns with this prefix, "" if it is unknown."""
    return hints.PATTERN_MODULES.get(prefix.partition(".")[0], "")


def _function(name: str, scope: NameScope) -> str:
    relax_function(scope.mod, name)
    return name


def _functions(names: tuple[str, ...], scope: NameScope) -> list[str]:
    missing = [name for name in names if function_named(scope.mod, name) is None]
    if missing:
        there = ", ".join(sorted(repr(gvar.name_hint) for gvar in scope.mod.functions))
        raise TransformError(
            f"the module has no function {missing[0]!r}; its functions are {there}: give some "
            "of these"
        )
    return list(names)


def _variables(names: tuple[str, ...], scope: NameScope) -> list[ir.Var]:
    function = scope.function or "main"
    params = {param.name: param for param in relax_function(scope.mod, function).params}
    missing = [name for name in names if name not in params]
    if missing:
        there = ", ".join(map(repr, params)) or "none"
        raise TransformError(
            f"{function!r} has no parameter {missing[0]!r}; its parameters are {there}: give "
            "some of these"
        )
    return [params[name] for name in names]


def _device(parts: tuple[str, int, str], scope: NameScope) -> relax.VDevice:  # noqa: ARG001
    kind, number, memory = parts
    return relax.VDevice(make_target(kind), number, memory)


def _sizes(sizes: Mapping[str, int], scope: NameScope) -> dict[str, tirx.IntImm]:
    known = symbolic_names(scope.mod, scope.function)
    missing = [name for name in sizes if name not in known]
    if missing:
        where = "the module" if scope.function is None else repr(scope.function)
        there = ", ".join(map(repr, known)) or "none"
        raise TransformError(
            f"{where} has no symbolic variable {missing[0]!r}; those it has are {there}: give "
            "sizes for some of these"
        )
    return {name: tirx.IntImm("int64", size) for name, size in sizes.items()}


def symbolic_names(mod: ir.IRModule, function: str | None = None) -> tuple[str, ...]:
    """Return the names of the symbolic variables of a Relax function, or of all of them."""
    chosen = relax_functions(mod).values() if function is None else [relax_function(mod, function)]
    found = [
        variable.name for one in chosen for variable in relax.analysis.defined_symbolic_vars(one)
    ]
    return tuple(dict.fromkeys(found))


def _patterns(prefix: object, scope: NameScope) -> object:  # noqa: ARG001
    if not isinstance(prefix, str):
        return prefix
    if pattern_module(prefix):
        importlib.import_module(pattern_module(prefix))
    found = list(relax.backend.pattern_registry.get_patterns_with_prefix(prefix))
    if not found:
        raise TransformError(
            f"no pattern is registered whose name begins with {prefix!r}; TVM has patterns for "
            f"{', '.join(map(repr, hints.PATTERN_MODULES))}: give one of these, or register "
            "yours with tvm.relax.backend.pattern_registry.register_patterns"
        )
    return found


_READERS: Mapping[ParameterKind, Callable[[Any, NameScope], object]] = {
    ParameterKind.TARGET: lambda value, _: make_target(value),
    ParameterKind.DEVICE: _device,
    ParameterKind.FUNCTION: _function,
    ParameterKind.FUNCTIONS: _functions,
    ParameterKind.LIST: lambda value, _: list(value),
    ParameterKind.NAMES: lambda value, _: list(value),
    ParameterKind.VARS: _variables,
    ParameterKind.DIMS: _sizes,
    ParameterKind.LAYOUTS: lambda value, _: {name: list(one) for name, one in value.items()},
    ParameterKind.PATTERNS: _patterns,
}

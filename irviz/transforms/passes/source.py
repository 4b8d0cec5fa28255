"""A user's function as source that stands in a script, with what it uses of its module."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import sys
import textwrap
import types
import weakref
from collections.abc import Callable, Iterator

from irviz.transforms.python import Script, UnwritableError

_HOMES = ("tvm", "tvm_ffi", "numpy")
"""What a script may import beside Python's own modules."""

_TAKEN = frozenset({"arrays", "function", "functions", "gvar", "mod", "params", "sch", "tvm"})
"""The names that the statements of a script have themselves."""

_names: weakref.WeakKeyDictionary[Script, dict[str, object]] = weakref.WeakKeyDictionary()
"""What each script has under a name: another cell may have defined another function so."""


def define(function: Callable[..., object], script: Script) -> str:
    """Let a user's function stand before the statements; return its name there.

    What it uses of the module it is from is written too, if that is an import of TVM or NumPy,
    a plain value or another such function. Raises UnwritableError for anything else.
    """
    if not isinstance(function, types.FunctionType) or not function.__name__.isidentifier():
        raise UnwritableError(f"{function!r} is no function that was defined by def")
    if not _claim(function.__name__, function, script):
        return function.__name__
    if function.__code__.co_freevars:
        names = ", ".join(function.__code__.co_freevars)
        raise UnwritableError(
            f"{function.__name__} uses {names} of the function that it was defined in"
        )
    definition, above = _definition(function)
    early = _names_in(definition.args, definition.returns, *definition.decorator_list[above:])
    for name in sorted(early | _names_used(function.__code__)):
        if name in function.__globals__ and not hasattr(builtins, name):
            _bring(name, function.__globals__[name], function, name in early, script)
    script.define(_from_line(function, definition, above))
    return function.__name__


def _bring(
    name: str, value: object, user: types.FunctionType, is_early: bool, script: Script
) -> None:
    """Write what a function has under a name; `is_early` when its definition needs it."""
    if isinstance(value, types.FunctionType) and value.__module__ == user.__module__:
        if value.__name__ != name:
            raise UnwritableError(f"{user.__name__} calls {value.__name__} by another name, {name}")
        define(value, script)
    elif isinstance(value, types.ModuleType) or hasattr(value, "__module__"):
        script.add(needs=(import_of(name, value, user.__name__),))
    elif is_plain(value) and not is_early:
        if _claim(name, value, script):
            script.add(f"{name} = {value!r}")
    else:
        raise UnwritableError(f"{user.__name__} uses {name}, which a script does not have")


def _claim(name: str, value: object, script: Script) -> bool:
    """Tell whether a name is new in the script; raise UnwritableError when it is another's."""
    taken = _names.setdefault(script, {})
    if name in _TAKEN or taken.get(name, value) is not value:
        raise UnwritableError(f"the script has something else under the name {name}")
    is_new = name not in taken
    taken[name] = value
    return is_new


def import_of(name: str, value: object, user: str) -> str:
    """Return the statement that gives a name its value; raise UnwritableError if none does."""
    home = value.__name__ if isinstance(value, types.ModuleType) else str(value.__module__)
    root = home.partition(".")[0]
    if root not in _HOMES and root not in sys.stdlib_module_names:
        raise UnwritableError(f"{user} uses {name} of {home}, and a script has only TVM and NumPy")
    if isinstance(value, types.ModuleType):
        home, _, known_as = home.rpartition(".")
    else:
        known_as = str(getattr(value, "__name__", name))
        if getattr(importlib.import_module(home), known_as, None) is not value:
            raise UnwritableError(f"{user} uses {name}, which {home} does not have")
    statement = f"from {home} import {known_as}" if home else f"import {known_as}"
    return statement + (f" as {name}" if name != known_as else "")


def is_plain(value: object) -> bool:
    """Tell whether a value is what its repr says, as text, numbers and lists of them are."""
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False


def _definition(function: types.FunctionType) -> tuple[ast.FunctionDef, int]:
    """Return the definition, and how many decorators belong to irviz, with those above them."""
    try:
        source = textwrap.dedent(inspect.getsource(function))
        definition = ast.parse(source).body[0]
    except (OSError, TypeError, SyntaxError) as failure:
        raise UnwritableError(f"the source of {function.__name__} cannot be found") from failure
    if not isinstance(definition, ast.FunctionDef):
        raise UnwritableError(f"{function.__name__} was not defined by def")
    above = 0
    for count, decorator in enumerate(definition.decorator_list, 1):
        for name in _names_in(decorator):
            value = function.__globals__.get(name)
            home = getattr(value, "__module__", None) or getattr(value, "__name__", "")
            above = count if str(home).partition(".")[0] == "irviz" else above
    return definition, above


def _from_line(
    function: types.FunctionType, definition: ast.FunctionDef, above: int
) -> types.FunctionType:
    """Return the function as if it began below its first decorators."""
    left = definition.decorator_list[above:]
    line = function.__code__.co_firstlineno - 1 + (left[0].lineno if left else definition.lineno)
    code = function.__code__.replace(co_firstlineno=line)
    return types.FunctionType(code, function.__globals__, function.__name__)


def _names_in(*parts: ast.AST | None) -> set[str]:
    nodes = (node for part in parts if part is not None for node in ast.walk(part))
    return {node.id for node in nodes if isinstance(node, ast.Name)}


def _names_used(code: types.CodeType) -> set[str]:
    return {name for each in _codes(code) for name in each.co_names}


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)

"""The source of a user's function for a script, with the globals that it uses."""

from __future__ import annotations

import ast
import builtins
import importlib
import sys
import types
from collections.abc import Callable, Iterator

from irviz.transforms.python_script import PythonScript, UnwritableError, source_of

_IMPORTABLE = ("tvm", "tvm_ffi", "numpy")
"""The packages that a script may import, besides the standard library."""

_RESERVED = frozenset({"arrays", "function", "functions", "gvar", "mod", "params", "sch", "tvm"})
"""The names that a script uses itself."""


def define_function(function: Callable[..., object], script: PythonScript) -> str:
    """Define a user's function in a script, with the globals that it uses; return its name.

    Globals may be imports of TVM, NumPy or the standard library, literals, and functions of the
    same module. Raises UnwritableError for anything else.
    """
    if not isinstance(function, types.FunctionType) or not function.__name__.isidentifier():
        raise UnwritableError(f"{function!r} is not a function that was defined by def")
    if not _claim(function.__name__, function, script):
        return function.__name__
    if function.__code__.co_freevars:
        names = ", ".join(function.__code__.co_freevars)
        raise UnwritableError(
            f"{function.__name__} uses {names} of the function that it was defined in"
        )
    definition, source = _definition(function)
    early = _names_in(definition.args, definition.returns, *definition.decorator_list)
    used = {name for code in _codes(function.__code__) for name in code.co_names}
    for name in sorted(early | used):
        if name in function.__globals__ and not hasattr(builtins, name):
            _write_global(name, function.__globals__[name], function, name in early, script)
    script.define(source)
    return function.__name__


def _write_global(
    name: str, value: object, user: types.FunctionType, is_early: bool, script: PythonScript
) -> None:
    """Write a global of a function; `is_early` if it is needed when the function is defined."""
    if isinstance(value, types.FunctionType) and value.__module__ == user.__module__:
        if value.__name__ != name:
            raise UnwritableError(f"{user.__name__} calls {value.__name__} by another name, {name}")
        define_function(value, script)
    elif isinstance(value, types.ModuleType) or hasattr(value, "__module__"):
        script.add(needs=(import_statement(name, value, user.__name__),))
    elif is_literal(value) and not is_early:
        if _claim(name, value, script):
            script.add(f"{name} = {value!r}")
    else:
        raise UnwritableError(f"{user.__name__} uses {name}, which a script does not have")


def _claim(name: str, value: object, script: PythonScript) -> bool:
    """Reserve a name; return whether it is new. Raise UnwritableError if it is in use."""
    if name in _RESERVED or script.names.get(name, value) is not value:
        raise UnwritableError(f"the script uses the name {name} for something else")
    is_new = name not in script.names
    script.names[name] = value
    return is_new


def import_statement(name: str, value: object, user: str) -> str:
    """Return the import statement for a name; raise UnwritableError if there is none."""
    home = value.__name__ if isinstance(value, types.ModuleType) else str(value.__module__)
    root = home.partition(".")[0]
    if root not in _IMPORTABLE and root not in sys.stdlib_module_names:
        raise UnwritableError(f"{user} uses {name} of {home}, and a script has only TVM and NumPy")
    if isinstance(value, types.ModuleType):
        home, _, known_as = home.rpartition(".")
    else:
        known_as = str(getattr(value, "__name__", name))
        if getattr(importlib.import_module(home), known_as, None) is not value:
            raise UnwritableError(f"{user} uses {name}, which {home} does not have")
    statement = f"from {home} import {known_as}" if home else f"import {known_as}"
    return statement + (f" as {name}" if name != known_as else "")


def is_literal(value: object) -> bool:
    """Tell whether a value equals its repr, as text, numbers and lists of them do."""
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False


def _definition(function: types.FunctionType) -> tuple[ast.FunctionDef, str]:
    """Return the definition and its source, without the decorators up to the last one of irviz."""
    source = source_of(function)
    try:
        definition = ast.parse(source).body[0]
    except SyntaxError as failure:
        raise UnwritableError(f"the source of {function.__name__} cannot be found") from failure
    if not isinstance(definition, ast.FunctionDef):
        raise UnwritableError(f"{function.__name__} was not defined by def")
    above = 0
    for count, decorator in enumerate(definition.decorator_list, 1):
        for name in _names_in(decorator):
            value = function.__globals__.get(name)
            home = getattr(value, "__module__", None) or getattr(value, "__name__", "")
            above = count if str(home).partition(".")[0] == "irviz" else above
    left = definition.decorator_list = definition.decorator_list[above:]
    first = left[0].lineno if left else definition.lineno
    return definition, "\n".join(source.splitlines()[first - 1 :])


def _names_in(*parts: ast.AST | None) -> set[str]:
    nodes = (node for part in parts if part is not None for node in ast.walk(part))
    return {node.id for node in nodes if isinstance(node, ast.Name)}


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)

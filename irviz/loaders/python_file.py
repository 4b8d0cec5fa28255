"""Read the modules that a Python file defines. Only these are read; nothing is run."""

from __future__ import annotations

import ast
from itertools import count

from tvm import ir

from irviz.errors import LoadError
from irviz.loaders.loaded import Loaded
from irviz.loaders.tvmscript.modules import modules_of
from irviz.loaders.tvmscript.syntax_tree import RefusedError, parse_tree, start_line
from irviz.loaders.upgrade.parse import NotPythonError
from irviz.loaders.upgrade.upgrade import upgrade

_DECORATORS = ("ir_module", "prim_func", "function")
_MAX_LISTED = 12


class UnknownModuleNameError(LoadError):
    """The file defines several modules, or none of this name; the message lists them."""


def from_python(text: str, file: str, which: str = "") -> Loaded:
    """Return a module that Python text defines, upgraded if it is in an older dialect.

    Args:
        text: The text.
        file: The text's name in errors.
        which: The module's name, if there are several. A repeated name has `#2` after it.

    Raises:
        UnknownModuleNameError: If the text defines no such module.
        LoadError: If TVM cannot read the module.
        RefusedError: If a part of the module is not TVMScript.
    """
    try:
        return Loaded(_module(text, file, which))
    except UnknownModuleNameError:
        raise
    except (RefusedError, LoadError) as refusal:
        try:
            new = upgrade(text)
        except NotPythonError:
            raise refusal from None
        if new.text == text:
            raise
        module = _module(new.text, f"{file} in today's TVMScript", which)
        lines = _line_range(_choose(parse_tree(text, file), file, which))
        notes = tuple(f"{file}, {note}" for note in new.notes if note.line in lines)
        return Loaded(module, notes=notes)


def _module(text: str, file: str, which: str) -> ir.IRModule:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    tree = parse_tree(text, file)
    kept = [*_shared_definitions(tree), _choose(tree, file, which)]
    numbers = {line for node in kept for line in _line_range(node)}
    # the other lines become empty, so that errors name the lines of the file
    only = "\n".join(line if number in numbers else "" for number, line in enumerate(lines, 1))
    (module,) = modules_of(only, file).values()
    return module


def _choose(tree: ast.Module, file: str, which: str) -> ast.stmt:
    """Return the definition with this name, or the only one; raise UnknownModuleNameError."""
    definitions = _definitions(tree)
    names = list(definitions)
    if which in names:
        return definitions[which]
    if not names:
        raise UnknownModuleNameError(
            f"{file} defines no module: write `@I.ir_module` above a class of functions, or "
            "`@T.prim_func(s_tir=True)` or `@R.function` above a function"
        )
    listed = ", ".join(map(repr, names[:_MAX_LISTED]))
    listed += f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    if which:
        raise UnknownModuleNameError(f"{file} defines no {which!r}: there is {listed}")
    if len(names) > 1:
        raise UnknownModuleNameError(f"{file} defines {len(names)} modules: name one of {listed}")
    return definitions[names[0]]


def _definitions(tree: ast.Module) -> dict[str, ast.stmt]:
    """Return the statements with a decorator of TVMScript, by name; repeated names are numbered."""
    found: dict[str, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and _is_tvmscript(node):
            names = (node.name if at == 1 else f"{node.name}#{at}" for at in count(1))
            found[next(name for name in names if name not in found)] = node
    return found


def _is_tvmscript(node: ast.ClassDef | ast.FunctionDef) -> bool:
    callees = [one.func if isinstance(one, ast.Call) else one for one in node.decorator_list]
    return any(
        (one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "")) in _DECORATORS
        for one in callees
    )


def _shared_definitions(tree: ast.Module) -> list[ast.stmt]:
    """Return the symbolic sizes and the constants that TVM prints beside the definitions."""
    return [
        node
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Call)
        and (node.targets[0].id == "metadata" or getattr(node.value.func, "id", "") == "TypeVar")
    ]


def _line_range(node: ast.stmt) -> range:
    return range(start_line(node), (node.end_lineno or 0) + 1)

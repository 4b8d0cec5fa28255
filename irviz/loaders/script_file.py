"""A Python script -> the modules that it defines. Only those are read; nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import count

from tvm import ir

from irviz.ir.admission import RefusedError
from irviz.ir.text_limits import parsed
from irviz.loaders.loaded import Loaded, LoadError
from irviz.loaders.tvmscript import modules_of
from irviz.loaders.upgrade.readable import NotPython
from irviz.loaders.upgrade.upgrade import upgraded

_DECORATORS = ("ir_module", "prim_func", "function")
_MOST_SHOWN = 12


def from_script(text: str, name: str, which: str = "") -> Loaded:
    """Return a module that a script defines, upgraded where it is in an older dialect.

    `which` names one where there are several; a name that is there again has "#2" behind it.
    Raises LoadError, which lists what there is, and RefusedError for what no module needs.
    """
    try:
        return _loaded(text, name, which)
    except (RefusedError, LoadError) as refusal:
        if isinstance(refusal, UnknownError):
            raise
        try:
            new = upgraded(text)
        except NotPython:
            raise refusal from None
        if new.text == text:
            raise
        found = _loaded(new.text, f"{name} in today's TVMScript", which)
        lines = _lines_of(text, name, which)
        notes = tuple(f"{name}, {note}" for note in new.notes if note.line in lines)
        return Loaded(found.module, notes=notes)


class UnknownError(LoadError):
    """There are several modules, or none of the name; the message lists them."""


def _loaded(text: str, name: str, which: str) -> Loaded:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    tree = parsed(text, name)
    parts = _definitions(tree)
    if not parts:
        raise UnknownError(
            f"{name} defines no module: write `@I.ir_module` above a class of functions, or "
            "`@T.prim_func(s_tir=True)` or `@R.function` above a function"
        )
    kept = [*_shared(tree), parts[_chosen(list(parts), name, which)]]
    wanted = {line for one in kept for line in range(_first(one), (one.end_lineno or 0) + 1)}
    # what is left out leaves its lines empty, so that errors name the lines of the file
    only = "\n".join(line if at in wanted else "" for at, line in enumerate(lines, 1))
    return Loaded(_module(only, name))


def _lines_of(text: str, name: str, which: str) -> range:
    """Return the lines of a definition."""
    parts = _definitions(parsed(text, name))
    part = parts[_chosen(list(parts), name, which)]
    return range(_first(part), (part.end_lineno or 0) + 1)


def _module(text: str, name: str) -> ir.IRModule:
    (module,) = modules_of(text, name).values()
    return module


def _chosen(names: list[str], name: str, which: str) -> str:
    if which in names:
        return which
    listed = ", ".join(map(repr, names[:_MOST_SHOWN]))
    listed += f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
    if which:
        raise UnknownError(f"{name} defines no {which!r}: there is {listed}")
    if len(names) > 1:
        raise UnknownError(f"{name} defines {len(names)} modules: name one of {listed}")
    return names[0]


def _definitions(tree: ast.Module) -> dict[str, ast.stmt]:
    """Return what has one of TVMScript's decorators, by name; what comes again is another one."""
    found: dict[str, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and any(_is_marked(node)):
            names = (node.name if at == 1 else f"{node.name}#{at}" for at in count(1))
            found[next(name for name in names if name not in found)] = node
    return found


def _is_marked(node: ast.ClassDef | ast.FunctionDef) -> Iterator[bool]:
    for decorator in node.decorator_list:
        callee = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = callee.attr if isinstance(callee, ast.Attribute) else getattr(callee, "id", "")
        yield name in _DECORATORS


def _shared(tree: ast.Module) -> list[ast.stmt]:
    """Return what stands beside the definitions of a text that TVM wrote: sizes and constants."""
    return [
        node
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Call)
        and (node.targets[0].id == "metadata" or getattr(node.value.func, "id", "") == "TypeVar")
    ]


def _first(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)])

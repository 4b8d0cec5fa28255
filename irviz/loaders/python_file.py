"""Read the modules that a Python file defines. Only these are read; nothing is run."""

from __future__ import annotations

import ast
from itertools import count

from tvm import ir

from irviz.errors import LoadError
from irviz.loaders.file_errors import FileError
from irviz.loaders.loaded_model import Loaded
from irviz.loaders.tvmscript.find_definitions import Definition, definitions, line_range, only_lines
from irviz.loaders.tvmscript.imported_names import imported_names
from irviz.loaders.tvmscript.read_modules import modules_of
from irviz.loaders.tvmscript.syntax_tree import RefusedError, parse_tree
from irviz.loaders.upgrade.upgrade import upgrade

_MAX_LISTED = 12


def from_python(text: str, file: str, which: str = "") -> Loaded:
    """Return a module that Python text defines, upgraded if it is in an older dialect.

    Args:
        text: The text.
        file: The text's name in errors.
        which: The module's name, if there are several. A repeated name has `#2` after it.

    Raises:
        RefusedError: If a part of the module is not TVMScript.
        LoadError: If the text defines no such module, or TVM cannot read it.
    """
    lines = _choose(parse_tree(text, file), file, which).lines
    try:
        return Loaded(_module(text, file, which))
    except FileError:
        raise
    except LoadError as refusal:
        try:
            new = upgrade(text)
        except RefusedError:
            raise refusal from None
        if new.text == text:
            raise
        notes = tuple(f"{file}, {note}" for note in new.notes if note.line in lines)
        return Loaded(_module(new.text, f"{file} in today's TVMScript", which), notes=notes)


def _module(text: str, file: str, which: str) -> ir.IRModule:
    tree = parse_tree(text, file)
    kept = {*_shared_lines(tree), *_choose(tree, file, which).lines}
    (module,) = modules_of(only_lines(text, kept), file, imported_names(tree)).values()
    return module


def _choose(tree: ast.Module, file: str, which: str) -> Definition:
    """Return the definition with this name, or the only one; raise LoadError."""
    found: dict[str, Definition] = {}
    for one in definitions(tree):
        numbered = (one.name if at == 1 else f"{one.name}#{at}" for at in count(1))
        found[next(name for name in numbered if name not in found)] = one
    names = list(found)
    if which in found:
        return found[which]
    if not names:
        raise LoadError(
            f"{file} defines no module: write `@I.ir_module` above a class of functions, or "
            "`@T.prim_func(s_tir=True)` or `@R.function` above a function"
        )
    listed = ", ".join(map(repr, names[:_MAX_LISTED]))
    listed += f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    if which:
        raise LoadError(f"{file} defines no {which!r}: there is {listed}")
    if len(names) > 1:
        raise LoadError(f"{file} defines {len(names)} modules: name one of {listed}")
    return found[names[0]]


def _shared_lines(tree: ast.Module) -> list[int]:
    """Return the lines of the symbolic sizes and constants that TVM prints beside definitions."""
    shared = [
        node
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Call)
        and (node.targets[0].id == "metadata" or getattr(node.value.func, "id", "") == "TypeVar")
    ]
    return [line for node in shared for line in line_range(node)]

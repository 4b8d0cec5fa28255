"""Read the modules that a Python file defines. Only these are read; nothing is run."""

from __future__ import annotations

import ast

from tvm import ir

from irviz.errors import LoadError
from irviz.gc_pause import gc_paused
from irviz.ir.node_ids import unique_id
from irviz.loaders.file_limits import FileError
from irviz.loaders.loaded_model import Loaded
from irviz.loaders.tvmscript import syntax_tree
from irviz.loaders.tvmscript.allowed_names import imported_names
from irviz.loaders.tvmscript.read_modules import modules_of
from irviz.units import first_names

_MAX_LISTED = 12
NO_MODULE = "defines no module"


@gc_paused()  # syntax trees are many small values: a tenth faster without collections
def from_python(text: str, file: str, which: str) -> Loaded:
    """Return a module that Python text defines, upgraded if it is in an older dialect.

    `file` is the text's name in errors, and `which` the module's, if there are several; a repeated
    name has `#2` after it. Raises RefusedError for a part that is not TVMScript, and LoadError if
    the text defines no such module, or TVM cannot read it.
    """
    tree = syntax_tree.parse_tree(text, file)
    lines = _choose(tree, file, which).lines
    try:
        return Loaded(_module(text, tree, file, which))
    except FileError:
        raise
    except LoadError as refusal:
        # here, as libcst takes half as long to load as TVM
        from irviz.loaders.upgrade.upgrade import upgrade

        try:
            new = upgrade(text)
        except syntax_tree.RefusedError:
            raise refusal from None
        if new.text == text:
            raise
        notes = tuple(f"{file}, {note}" for note in new.notes if note.line in lines)
        file = f"{file} in today's TVMScript"
        return Loaded(
            _module(new.text, syntax_tree.parse_tree(new.text, file), file, which), notes=notes
        )


def _module(text: str, tree: ast.Module, file: str, which: str) -> ir.IRModule:
    kept = {*_shared_lines(tree), *_choose(tree, file, which).lines}
    (module,) = modules_of(syntax_tree.only_lines(text, kept), file, imported_names(tree)).values()
    return module


def _choose(tree: ast.Module, file: str, which: str) -> syntax_tree.Definition:
    """Return the definition with this name, or the only one; raise LoadError."""
    seen: dict[str, int] = {}
    found = {str(unique_id(one.name, seen)): one for one in syntax_tree.definitions(tree)}
    names = list(found)
    if which in found:
        return found[which]
    if not names:
        raise LoadError(
            f"{file} {NO_MODULE}: write `@I.ir_module` above a class of functions, or "
            "`@T.prim_func(s_tir=True)` or `@R.function` above a function; if code builds the "
            "module, run it, and give the module to irviz.load"
        )
    listed = first_names([*map(repr, names)], _MAX_LISTED)
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
    return [line for node in shared for line in syntax_tree.line_range(node)]

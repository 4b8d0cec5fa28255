"""A module or a function as TVMScript that Python can run, where that says all of it."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

import tvm
from tvm import ir, tirx
from tvm_ffi import structural_equal

_TAKEN = frozenset(
    {"tvm", "np", "mod", "sch", "arrays", "base64", "zlib", "relax", "tirx", "s_tir"}
)
"""Names that a script has for other things."""
_ROOTS = frozenset({"I", "R", "T", "Axis", "TypeVar", "cls", "range"})


@dataclass(frozen=True)
class Source:
    """A definition in TVMScript: what it defines, and the imports it needs."""

    name: str
    text: str
    imports: tuple[str, ...]


def module_source(mod: ir.IRModule) -> Source | None:
    """Return a module's class in TVMScript; None when reading it would not give the module."""
    return _source(mod, "Module")


def prim_func_source(function: tirx.PrimFunc, name: str) -> Source | None:
    """Return a PrimFunc's definition in TVMScript; None when reading it would give another."""
    return _source(function.with_attr("global_symbol", name), name)


def _source(value: ir.IRModule | tirx.PrimFunc, name: str) -> Source | None:
    names = [g.name_hint for g in value.functions] if isinstance(value, ir.IRModule) else [name]
    if not all(one.isidentifier() for one in names):
        return None  # such a name is printed as it is, and could say anything
    try:
        text = value.script(show_meta=False)
        if not _says_only_tvmscript(text):
            return None
        is_same = structural_equal(tvm.script.from_source(text), value, map_free_vars=False)
    except Exception:  # the printer and the parser raise what they like; there is another way
        return None
    if not is_same:
        return None
    lines = text.splitlines()
    imports = tuple(line[2:] for line in lines if re.fullmatch(r"# from [\w. ]+", line))
    body = "\n".join(line for line in lines if line[2:] not in imports)
    return Source(name, body.strip(), imports)


def _says_only_tvmscript(text: str) -> bool:
    """Tell whether a text has nothing but definitions that speak of TVMScript's names.

    Names come from the module, and a module may come from a file.
    """
    tree = ast.parse(text)
    if not all(_is_definition(node) for node in tree.body):
        return False
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Lambda):
            return False
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            return False
        if isinstance(node, ast.Call):
            root: ast.expr = node.func
            while isinstance(root, ast.Attribute | ast.Call | ast.Subscript):
                root = root.func if isinstance(root, ast.Call) else root.value
            if not isinstance(root, ast.Name) or root.id not in _ROOTS:
                return False
    return True


def _is_definition(node: ast.stmt) -> bool:
    """Tell whether it defines a module, a function, or a symbolic size by a name that is free."""
    match node:
        case ast.ClassDef() | ast.FunctionDef():
            return node.name not in _TAKEN
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="TypeVar"))):
            return name not in {*_TAKEN, *_ROOTS}
        case _:
            return False

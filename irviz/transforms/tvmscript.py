"""A module or a function as an expression that reads it from TVMScript, where that says all."""

from __future__ import annotations

import ast

import tvm
from tvm import ir, tirx
from tvm_ffi import structural_equal

_ROOTS = frozenset({"I", "R", "T", "Axis", "TypeVar", "cls", "range"})


def module_source(mod: ir.IRModule) -> str | None:
    """Return the expression that reads a module; None when it would give another module."""
    return _source(mod, [gvar.name_hint for gvar in mod.functions])


def prim_func_source(function: tirx.PrimFunc, name: str) -> str | None:
    """Return the expression that reads a PrimFunc; None when it would give another."""
    return _source(function.with_attr("global_symbol", name), [name])


def _source(value: ir.IRModule | tirx.PrimFunc, names: list[str]) -> str | None:
    if not all(name.isidentifier() for name in names):
        return None  # such a name is printed as it is, and could say anything
    try:
        text = value.script(show_meta=False)
        if "'''" in text or not _says_only_tvmscript(text):
            return None
        is_same = structural_equal(tvm.script.from_source(text), value)
    except Exception:  # the printer and the parser raise what they like; there is another way
        return None
    body = "\n".join(line for line in text.splitlines() if not line.startswith("# from "))
    return f"tvm.script.from_source(r'''\n{body.strip()}\n''')" if is_same else None


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
    """Tell whether it defines a module, a function, or a symbolic size."""
    match node:
        case ast.ClassDef() | ast.FunctionDef():
            return True
        case ast.Assign(targets=[ast.Name()], value=ast.Call(func=ast.Name(id="TypeVar"))):
            return True
        case _:
            return False

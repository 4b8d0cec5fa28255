"""A second look at a text that was found to be TVMScript: at every part, wherever it stands.

The first look goes from part to part as TVM does, and knows what each is for. Should it pass over
one, that says nothing here but what is harmless: no name of Python is called, no attribute is
private, no function of a dialect is unknown.
"""

from __future__ import annotations

import ast
import builtins

from irviz.ir.dialect import DECORATORS, FUNCTIONS, METHODS, may_call, may_stand, why_not
from irviz.ir.scope import Text, dotted

_CALLED = frozenset({"range", "TypeVar"})
_PYTHONS = frozenset(dir(builtins)) - _CALLED
_LOADED = ("ir.load_json", "script.ir_module")


def look_again(text: Text) -> None:
    """Raise RefusedError for what no text needs, anywhere in it."""
    nodes = list(ast.walk(text.tree))
    bound = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    bound |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        match node:
            case ast.Name(id=name) if name.startswith("__"):
                raise text.refused(node, f"the name {name} is refused: it begins with underscores")
            case ast.Attribute(attr=name) if name.startswith("_"):
                raise text.refused(node, f"{name} is refused: it is private")
            case ast.Attribute() if id(node) not in inner:
                _check_dotted(node, text)
            case ast.Dict(values=values):
                _check_no_type(values, text)
            case ast.Call():
                _check_call(node, bound, text)


def _check_call(node: ast.Call, bound: set[str], text: Text) -> None:
    match node.func:
        case ast.Name(id=name):
            if name in _PYTHONS - bound:
                raise text.refused(node, f"a call of {name} is refused: that is Python's")
        case ast.Attribute() as function:
            _check_method(function, text)
            if dotted(function) == ("R", "call_packed"):  # they become attributes
                _check_no_type([one.value for one in node.keywords if one.arg != "ty_args"], text)
        case _:
            raise text.refused(node, "a call of this is refused: it has no name")


def _check_no_type(nodes: list[ast.expr], text: Text) -> None:
    """Raise RefusedError for a type in attributes: TVM keeps the Python function behind it."""
    parts = [part for node in nodes for part in ast.walk(node)]
    inner = {id(part.func) for part in parts if isinstance(part, ast.Call)}
    inner |= {id(part.value) for part in parts if isinstance(part, ast.Attribute)}
    for part in parts:
        if (
            id(part) not in inner
            and isinstance(part, ast.Attribute)
            and dotted(part)[0] in FUNCTIONS
        ):
            raise text.refused(part, "a type in attributes is refused: TVM would keep a function")


def _check_dotted(node: ast.Attribute, text: Text) -> None:
    root, path = dotted(node)
    is_known = (
        root not in FUNCTIONS
        or may_call(root, path)
        or may_stand(root, path)
        or f"{root}.{path}" in DECORATORS
    )
    if not is_known:
        raise text.refused(node, why_not(root, path))


def _check_method(node: ast.Attribute, text: Text) -> None:
    root, path = dotted(node)
    is_known = (
        root in FUNCTIONS
        or node.attr in METHODS
        or text.is_module(node.value)
        or (root == "tvm" and path in _LOADED)
    )
    if not is_known:
        raise text.refused(node, f"a call of {node.attr} is refused: no value has such a method")

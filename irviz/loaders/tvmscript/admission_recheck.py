"""Check every node of an admitted text again, wherever it stands.

`admission` follows the text as TVM does and knows the role of each node. This check does not, and
so catches a node that `admission` missed: no builtin of Python is called, no attribute is private,
and every function of a dialect is known.
"""

from __future__ import annotations

import ast
import builtins

from irviz.loaders.tvmscript import allowed_names as allowed
from irviz.loaders.tvmscript.names_and_scopes import SourceText, dotted, is_private, ptx_instruction

_CALLABLE = frozenset({"range", "TypeVar"})
_BUILTINS = frozenset(dir(builtins)) - _CALLABLE
_SPECIAL_FLOATS = ("inf", "-inf", "nan")
_TVM_CALLS = allowed.TVM_CALLS | {"ir.load_json", "script.ir_module"}


def audit_text(text: SourceText) -> None:
    """Raise RefusedError for anything in a text that TVMScript does not need."""
    nodes = list(ast.walk(text.tree))
    bound = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    bound |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        match node:
            case ast.Name(id=name) if is_private(name):
                raise text.refused(node, f"the name {name} is refused: it begins with underscores")
            case ast.Attribute(attr=name) if (
                name.startswith("_")
                and not text.is_function(node)
                and not allowed.may_call(*dotted(node))
            ):
                raise text.refused(node, f"{name} is refused: it is private")
            case ast.Attribute() if id(node) not in inner:
                _check_dotted(node, text)
            case ast.Dict(values=values):
                _refuse_types(values, text)
            case ast.Call():
                _check_call(node, bound, text)


def is_special_float(node: ast.Call) -> bool:
    """Tell whether a call is `float("inf")`, `float("-inf")` or `float("nan")`."""
    match node:
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=value)], keywords=[]):
            return value in _SPECIAL_FLOATS
        case _:
            return False


def _check_call(node: ast.Call, bound: set[str], text: SourceText) -> None:
    match node.func:
        case ast.Name(id=name):
            if name in _BUILTINS - bound and not is_special_float(node):
                raise text.refused(node, f"a call of {name} is refused: it is a builtin of Python")
        case ast.Attribute() as function:
            _check_method(function, text)
            if allowed.keeps_arguments(*dotted(function)):
                values = [one.value for one in node.keywords if one.arg != "ty_args"]
                _refuse_types([*node.args, *values], text)
        case ast.Subscript() as function if ptx_instruction(function) is not None:
            pass
        case _:
            raise text.refused(node, "a call of an expression is refused: TVMScript calls names")


def _refuse_types(nodes: list[ast.expr], text: SourceText) -> None:
    """Raise RefusedError for a type in attributes: TVM would keep the Python function behind it."""
    parts = [part for node in nodes for part in ast.walk(node)]
    inner = {id(part.func) for part in parts if isinstance(part, ast.Call)}
    inner |= {id(part.value) for part in parts if isinstance(part, ast.Attribute)}
    for part in parts:
        if (
            id(part) not in inner
            and isinstance(part, ast.Attribute)
            and dotted(part)[0] in allowed.FUNCTIONS
            and ".".join(dotted(part)) not in allowed.PLACED
        ):
            raise text.refused(part, "a type in attributes is refused: TVM would keep a function")


def _check_dotted(node: ast.Attribute, text: SourceText) -> None:
    root, path = dotted(node)
    is_known = (
        root not in allowed.FUNCTIONS
        or allowed.may_call(root, path)
        or allowed.may_reference(root, path)
        or f"{root}.{path}" in allowed.PLACED
        or f"{root}.{path}" in allowed.DECORATORS
    )
    if not is_known:
        raise text.refused(node, allowed.refusal_reason(root, path))


def _check_method(node: ast.Attribute, text: SourceText) -> None:
    root, path = dotted(node)
    is_known = (
        root in allowed.FUNCTIONS
        or node.attr in allowed.METHODS | allowed.INDEXERS
        or text.is_module(node.value)
        or (root == "tvm" and path in _TVM_CALLS)
    )
    if not is_known:
        raise text.refused(node, f"a call of {node.attr} is refused: no value has such a method")

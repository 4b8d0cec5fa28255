"""Admit a text for TVM's parser if parsing it can do nothing but build a module.

Every node of the syntax tree has to be one that TVMScript needs; anything unknown is refused. The
imports of TVM's own script modules are removed from the text, and never executed.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from irviz.gc_pause import gc_paused
from irviz.loaders.tvmscript.admission_recheck import audit_text
from irviz.loaders.tvmscript.admitted_expressions import check_expression
from irviz.loaders.tvmscript.admitted_statements import check_decorator, check_function
from irviz.loaders.tvmscript.dialect import MEANINGS, METADATA, imported_names
from irviz.loaders.tvmscript.source_text import SourceText, TextScope, dotted
from irviz.loaders.tvmscript.syntax_tree import (
    Definition,
    definitions,
    line_range,
    only_lines,
    python_lines,
    too_deep,
)
from irviz.loaders.tvmscript.syntax_tree import RefusedError as RefusedError

_IMPORTED = {
    ("typing", "TypeVar", None),
    ("__future__", "annotations", None),
    *(
        (module, name, alias)
        for module in ("tvm.script", "tvm.script.parser")
        for name, alias in (("ir", "I"), ("relax", "R"), ("tirx", "T"))
    ),
}
_IMPORTS = "from tvm.script import ir as I, relax as R, tirx as T"


@dataclass(frozen=True)
class AdmittedText:
    """A text that TVM may parse, with its imports blanked out, and what they mean."""

    text: str
    name: str
    definitions: tuple[Definition, ...]
    imported: Mapping[str, str]

    def only(self, definition: Definition) -> str:
        """Return the text with this definition alone, on its own lines."""
        others = [one.lines for one in self.definitions if one != definition]
        return _without_lines(self.text, {line for lines in others for line in lines})


def admit(
    text: str, name: str = "<text>", imported: Mapping[str, str] | None = None
) -> AdmittedText:
    """Return a text for TVM's parser; raise RefusedError if it contains more than TVMScript.

    `name` is the text's name in errors. `imported` are names that imports outside of it bind.
    """
    text = "\n".join(python_lines(text))
    with gc_paused():
        whole = SourceText(text, name)
        without = _without_imports(whole)
        imported = {**(imported or {}), **imported_names(whole.tree)}
        if without != text or imported:
            whole = SourceText(without, name, imported)
        try:
            _check_text(whole)
            audit_text(whole)
            return AdmittedText(without, name, tuple(definitions(whole.tree)), whole.imported)
        except RecursionError:
            raise too_deep(name) from None


def _without_imports(text: SourceText) -> str:
    """Return the text with its outermost imports replaced by empty lines."""
    taken: dict[int, ast.stmt] = {}
    imported: set[int] = set()
    for statement in text.tree.body:
        for line in line_range(statement):
            other = taken.setdefault(line, statement)
            if other is not statement and _is_import(other, statement):
                raise text.refused(statement, "an import on a line with something else is refused")
        if _is_import(statement):
            _check_import(statement, text)
            imported.update(line_range(statement))
    return _without_lines("\n".join(text.lines), imported)


def _without_lines(text: str, dropped: set[int]) -> str:
    return only_lines(text, {*range(1, text.count("\n") + 2)} - dropped)


def _is_import(*statements: ast.stmt) -> bool:
    return any(isinstance(one, ast.Import | ast.ImportFrom) for one in statements)


def _check_import(node: ast.stmt, text: SourceText) -> None:
    match node:
        case ast.Import(names=[ast.alias(name="tvm", asname=None)]):
            return
        case ast.ImportFrom(module=module, names=names, level=0):
            if all(
                (module, one.name, one.asname) in _IMPORTED or (module, one.name) in MEANINGS
                for one in names
            ):
                return
    raise text.refused(node, f"this import is refused: TVMScript needs only `{_IMPORTS}`")


def _check_text(text: SourceText) -> None:
    scope = TextScope(text)
    for node in text.tree.body:
        match node:
            case ast.ClassDef():
                _check_module(node, scope)
            case ast.FunctionDef():
                check_function(node, scope)
            case ast.Assign(targets=[ast.Name(id="metadata")]):
                check_metadata(node, text)
            case ast.Assign():
                sizes = [_symbolic_size(node, text)]
                scope = scope.with_bound(sizes).with_sizes(sizes)
            case ast.Expr(value=ast.Constant(value=str())):
                pass
            case _:
                raise text.refused(
                    node, "this is refused: a text defines only modules and functions"
                )


def _check_module(node: ast.ClassDef, scope: TextScope) -> None:
    check_decorator(node, ("I.ir_module",), scope)
    scope.text.check_module(node, node.name)
    if node.bases or node.keywords or getattr(node, "type_params", []):
        raise scope.text.refused(
            node,
            f"the base class of {node.name} is refused: modules with Python functions are not read",
        )
    for part in node.body:
        match part:
            case ast.FunctionDef():
                check_function(part, scope)
            case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
                pass
            case ast.Expr(value=ast.Call(func=function) as call) if dotted(function)[0] == "I":
                check_expression(call, scope)
            case ast.Assign(targets=[ast.Name()], value=ast.Call(func=function) as call) if dotted(
                function
            ) == ("R", "ExternFunc"):
                check_expression(call, scope.having(allows_strings=True))
            case _:
                raise scope.text.refused(
                    part,
                    "this is refused in a module: a module has functions, and attributes set by I",
                )


def _symbolic_size(node: ast.Assign, text: SourceText) -> str:
    """Return the name of a symbolic size, which is written `n = TypeVar("n")`."""
    match node:
        case ast.Assign(
            targets=[ast.Name(id=name) as target],
            value=ast.Call(
                func=ast.Name(id="TypeVar"), args=[ast.Constant(value=argument)], keywords=[]
            ),
        ) if argument == name:
            return text.bind(target, name)
        case _:
            raise text.refused(
                node,
                'this assignment is refused: outside functions only n = TypeVar("n") is admitted',
            )


# --- metadata ----------------------------------------------------------------------------------
#
# Check the JSON of a text's constants: `metadata = tvm.ir.load_json("...")`.
#
# Unchecked it could contain a function of TVM's registry, which the parser would call, or a
# string under another name, which a shape would evaluate. So only plain values are admitted,
# each under the name of its own type. A string is used only where the text itself may have one.


_PLAIN = re.compile(
    r"None|bool|int|float|ffi\.(?:String|Array|Map|Shape|Tensor)"
    r"|ir\.(?:GenericConst|IntImm|FloatImm|PrimType|Range|SourceName|Span|TupleType|Var)"
    r"|ir\.String(?:Imm|Type)"
    r"|relax\.(?:\w+Type|expr\.ShapeExpr)|relax\.distributed\.\w+"
    r"|(?:ir|tirx)\.(?:Add|Sub|Mul|Div|Mod|FloorDiv|FloorMod|Min|Max|Cast|Var)"
)


def check_metadata(node: ast.Assign, text: SourceText) -> None:
    """Raise RefusedError unless the metadata are plain values; the text may then use them."""
    match node.value:
        case ast.Call(
            func=function, args=[ast.Constant(value=str() as json_text)], keywords=[]
        ) if ast.unparse(function) == "tvm.ir.load_json":
            pass
        case _:
            raise text.refused(node, 'this is refused: write metadata = tvm.ir.load_json("...")')
    if text.has_metadata:
        raise text.refused(node, "a second metadata is refused: a text has one")
    try:
        is_plain = _is_plain(json.loads(json_text))
    except (ValueError, RecursionError, LookupError, TypeError) as failure:
        raise text.refused(node, f"the metadata is not TVM's JSON: {failure}") from None
    if not is_plain:
        wanted = " and ".join(sorted(METADATA))
        raise text.refused(node, f"these metadata are refused: only {wanted} are admitted")
    text.has_metadata = True


def _is_plain(content: Any) -> bool:
    nodes: list[Any] = content["nodes"]
    if not isinstance(nodes, list) or not all(_PLAIN.fullmatch(node["type"]) for node in nodes):
        return False
    root = nodes[_index(content["root_index"])]
    if root["type"] != "ffi.Map" or len(root["data"]) % 2:
        return False
    pairs = zip(root["data"][::2], root["data"][1::2], strict=True)
    return all(
        _is_under_own_type(nodes, nodes[_index(key)], nodes[_index(at)]) for key, at in pairs
    )


def _is_under_own_type(nodes: list[Any], kind: Any, values: Any) -> bool:
    """Tell whether values are an array under the name of their own type."""
    if (
        kind["type"] != "ffi.String"
        or kind["data"] not in METADATA
        or values["type"] != "ffi.Array"
    ):
        return False
    return all(nodes[_index(i)]["type"] == kind["data"] for i in values["data"])


def _index(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TypeError(f"{value!r} is not the index of a node")
    return value

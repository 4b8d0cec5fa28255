"""Admit a text for TVM's parser if parsing it can do nothing but build a module.

Every node of the syntax tree has to be one that TVMScript needs; anything unknown is refused. The
imports of TVM's own script modules are removed from the text, and never executed.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from irviz.gc_pause import gc_paused
from irviz.loaders.tvmscript import allowed_names as allowed
from irviz.loaders.tvmscript.admission_recheck import audit_text
from irviz.loaders.tvmscript.admitted_expressions import check_expression
from irviz.loaders.tvmscript.names_and_scopes import (
    RESERVED,
    SourceText,
    TextScope,
    callee_name,
    dotted,
    is_private,
)
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
        imported = {**(imported or {}), **allowed.imported_names(whole.tree)}
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
                (module, one.name, one.asname) in _IMPORTED
                or (module, one.name) in allowed.MEANINGS
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
            case ast.Assign(targets=[ast.Name()], value=ast.Call() as call) if (
                callee_name(call) == "R.ExternFunc"
            ):
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


# --- Check the JSON of a text's constants: `metadata = tvm.ir.load_json("...")` ------------------
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
        wanted = " and ".join(sorted(allowed.METADATA))
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
        or kind["data"] not in allowed.METADATA
        or values["type"] != "ffi.Array"
    ):
        return False
    return all(nodes[_index(i)]["type"] == kind["data"] for i in values["data"])


def _index(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TypeError(f"{value!r} is not the index of a node")
    return value


_TYPES = frozenset(f"R.{name}" for name in allowed.TYPES["R"]) | {"R.DTensor", "R.Prim"}
_OF_THE_VM = "__vmtir__"
"""The prefix of the functions that TVM makes for its virtual machine."""
_NO_TARGET = "an assignment to this is refused: TVMScript assigns to names"


def check_function(node: ast.FunctionDef, scope: TextScope) -> str:
    """Check a function; return the name of its decorator, such as "T.prim_func"."""
    decorator = check_decorator(node, ("T.prim_func", "R.function"), scope)
    if node.name in RESERVED or is_private(node.name.removeprefix(_OF_THE_VM)):
        raise scope.text.refused(node, f"a function called {node.name} is refused")
    sizes = _type_parameters(node, scope)
    scope = scope.with_bound(sizes).with_sizes(sizes)
    names = scope.text.parameters(node, node.args)
    _check_signature(node, scope)
    _block(node.body, scope.with_bound(names))
    return decorator


def _check_signature(node: ast.FunctionDef, scope: TextScope) -> None:
    """Check the types of parameters and the result, which may use earlier parameters."""
    types = [(one.arg, one.annotation) for one in node.args.args]
    parts = [part for _, one in types if one is not None for part in ast.walk(one)]
    quoted = [part.value for part in parts if isinstance(part, ast.Constant)]
    signature = scope.having(in_signature=True).with_sizes(
        [value for value in quoted if isinstance(value, str)]
    )
    for name, annotation in types:
        _check(signature, annotation)
        signature = signature.with_sizes([name])
    _check(signature, node.returns)


def check_decorator(
    node: ast.FunctionDef | ast.ClassDef, wanted: Sequence[str], scope: TextScope
) -> str:
    """Return the name of the only decorator; raise RefusedError if it is not in `wanted`."""
    listed = "@" + " or @".join(wanted)
    if len(node.decorator_list) != 1:
        raise scope.text.refused(node, f"{node.name} needs one decorator: {listed}")
    (decorator,) = node.decorator_list
    name = callee_name(decorator)
    if name not in wanted:
        raise scope.text.refused(decorator, f"this decorator is refused: write {listed}")
    if isinstance(decorator, ast.Call):
        _check_options(decorator, name, scope)
    return name


def _check_options(decorator: ast.Call, name: str, scope: TextScope) -> None:
    if decorator.args:
        raise scope.text.refused(decorator.args[0], f"@{name} takes only True and False")
    for option in decorator.keywords:
        is_flag = isinstance(option.value, ast.Constant) and isinstance(option.value.value, bool)
        if not is_flag or option.arg not in allowed.DECORATORS[name]:
            options = ", ".join(f"{one}=True or False" for one in sorted(allowed.DECORATORS[name]))
            raise scope.text.refused(
                option.value, f"this option of @{name} is refused: it may have {options}"
            )


def _type_parameters(node: ast.FunctionDef, scope: TextScope) -> list[str]:
    """Return the symbolic sizes that a function declares, as `n` in `def main[n](...)`."""
    parameters = getattr(node, "type_params", [])  # Python 3.12 or newer
    for one in parameters:
        bound = getattr(one, "bound", None)
        is_int = isinstance(bound, ast.Name) and bound.id == "int"
        has_default = getattr(one, "default_value", None) is not None
        if type(one).__name__ != "TypeVar" or has_default or not (bound is None or is_int):
            raise scope.text.refused(one, "this type parameter is refused: write a plain name")
    return [scope.text.bind(one, one.name) for one in parameters]


def _block(body: Sequence[ast.stmt], scope: TextScope) -> TextScope:
    """Check statements in order; return the scope after them."""
    for statement in body:
        if type(statement) not in _CHECKS:
            raise scope.text.refused_kind(statement)
        bound = _CHECKS[type(statement)](statement, scope)
        scope = scope.with_bound(bound or ())
    return scope


def _check(scope: TextScope, *nodes: ast.expr | None) -> None:
    for node in nodes:
        if node is not None:
            check_expression(node, scope)


# --- statements: each function returns the names that are bound after it, or None ---------------


def _functiondef(node: ast.FunctionDef, scope: TextScope) -> list[str]:
    scope.text.bind(node, node.name)
    if check_function(node, scope) != "R.function":
        raise scope.text.refused(
            node, "a PrimFunc inside a function is refused: TVM does not read it"
        )
    return [node.name]


def _assign(node: ast.Assign, scope: TextScope) -> list[str]:
    if len(node.targets) != 1:
        raise scope.text.refused(node, "a = b = c is refused: TVMScript assigns one name at a time")
    (target,) = node.targets
    _check(scope, node.value)
    _refuse_type(node.value, scope)
    if scope.text.is_module(node.value):
        if not isinstance(target, ast.Name):
            raise scope.text.refused(target, _NO_TARGET)
        scope.text.check_module(target, target.id)
        return []
    if isinstance(target, ast.Subscript):
        _check(scope, target)
        return []
    return _targets(target, scope)


def _refuse_type(node: ast.expr, scope: TextScope) -> None:
    """Raise RefusedError if a variable would become a type, which could be called later."""
    parts: list[ast.expr] = []
    match node:
        case ast.Attribute() if dotted(node)[0] in allowed.FUNCTIONS:
            raise scope.text.refused(node, "a type in a variable is refused: write it in full")
        case ast.Call() if callee_name(node) in _TYPES:
            raise scope.text.refused(node, "a type in a variable is refused: write it in full")
        case ast.List() | ast.ListComp() | ast.Dict():
            raise scope.text.refused(node, "a list in a variable is refused: write a tuple")
        case ast.Tuple(elts=parts) | ast.BoolOp(values=parts):
            pass
        case ast.Subscript(value=value):
            parts = [value]
        case ast.BinOp(left=first, right=second) | ast.IfExp(body=first, orelse=second):
            parts = [first, second]
    for part in parts:
        _refuse_type(part, scope)


def _annassign(node: ast.AnnAssign, scope: TextScope) -> list[str]:
    _check(scope, node.value, node.annotation)
    if node.value is not None:
        _refuse_type(node.value, scope)
    return _targets(node.target, scope)


def _augassign(node: ast.AugAssign, scope: TextScope) -> None:
    if isinstance(node.target, ast.Name):
        scope.text.bind(node.target, node.target.id)
    elif not isinstance(node.target, ast.Subscript):
        raise scope.text.refused(node.target, "an assignment to this is refused")
    operation = ast.BinOp(left=node.target, op=node.op, right=node.value)
    _check(scope, ast.copy_location(operation, node))


def _targets(target: ast.expr, scope: TextScope) -> list[str]:
    match target:
        case ast.Name(id=name):
            return [scope.text.bind(target, name)]
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return [name for one in elements for name in _targets(one, scope)]
        case _:
            raise scope.text.refused(target, _NO_TARGET)


def _for(node: ast.For, scope: TextScope) -> None:
    _refuse_else(node, scope)
    match node.iter:
        case ast.Call(func=ast.Name(id="range"), args=arguments, keywords=keywords):
            if any(one.arg is None for one in keywords):
                raise scope.text.refused(node.iter, "** is refused")
            _check(scope, *arguments)
            _check(scope.having(allows_strings=True), *(one.value for one in keywords))
        case _:
            _check_dialect_call(node.iter, ("T",), scope)
    _block(node.body, scope.with_bound(_targets(node.target, scope)))


def _refuse_else(node: ast.For | ast.While, scope: TextScope) -> None:
    if node.orelse:
        raise scope.text.refused(node.orelse[0], "else after a loop is refused")


def _check_dialect_call(node: ast.expr, roots: Sequence[str], scope: TextScope) -> None:
    if not (isinstance(node, ast.Call) and dotted(node.func)[0] in roots):
        raise scope.text.refused(
            node, f"this is refused here: only a call of {' or '.join(roots)} is admitted"
        )
    _check(scope, node)


def _branches(node: ast.If | ast.While, scope: TextScope) -> None:
    if isinstance(node, ast.While):
        _refuse_else(node, scope)
    _check(scope, node.test)
    _block(node.body, scope)
    _block(node.orelse, scope)


def _with(node: ast.With, scope: TextScope) -> list[str]:
    inner = scope
    for item in node.items:
        _check_dialect_call(item.context_expr, ("T", "R"), inner)
        if item.optional_vars is not None:
            inner = inner.with_bound(_targets(item.optional_vars, scope))
    after = _block(node.body, inner)
    return [name for name in _output_names(node) if name in after.bound]


def _output_names(node: ast.With) -> list[str]:
    """Return the variables that R.output makes visible after a dataflow block."""
    if all(callee_name(item.context_expr) != "R.dataflow" for item in node.items):
        return []
    calls = [
        statement.value
        for statement in node.body
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    ]
    outputs = [one for call in calls if callee_name(call) == "R.output" for one in call.args]
    return [one.id for one in outputs if isinstance(one, ast.Name)]


def _assert(node: ast.Assert, scope: TextScope) -> None:
    _check(scope, node.test)
    _check(scope.having(allows_strings=True), node.msg)


def _expr(node: ast.Expr, scope: TextScope) -> None:
    if not (isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)):
        _check(scope, node.value)


_CHECKS: Mapping[type[ast.stmt], Callable[..., list[str] | None]] = {
    ast.AnnAssign: _annassign,
    ast.Assert: _assert,
    ast.Assign: _assign,
    ast.AugAssign: _augassign,
    ast.Break: lambda *_: None,
    ast.Continue: lambda *_: None,
    ast.Expr: _expr,
    ast.For: _for,
    ast.FunctionDef: _functiondef,
    ast.If: _branches,
    ast.Pass: lambda *_: None,
    ast.Return: lambda node, scope: _check(scope, node.value),
    ast.While: _branches,
    ast.With: _with,
}

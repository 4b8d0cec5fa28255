"""The names in a text, and which of them can only be the text's own variables."""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from irviz.loaders.tvmscript.allowed_names import PTX_TEXT, used_names, with_full_names
from irviz.loaders.tvmscript.syntax_tree import RefusedError, parse_tree, position

RESERVED = frozenset({"Axis", "I", "R", "T", "Tx", "TypeVar", "range"})
"""Names with the same meaning everywhere in a text."""
_FOREIGN = frozenset({"ir", "relax", "tir", "tirx", "tvm"}).union(
    name for name in dir(builtins) if not name.startswith("_")
)
"""Names that TVM's parser or Python also define. Any other name can only be a variable of the
text."""


_KINDS = {
    "AsyncFor": "async",
    "AsyncFunctionDef": "async",
    "AsyncWith": "async",
    "ClassDef": "a class in another",
    "Delete": "del",
    "DictComp": "a comprehension of a dictionary",
    "GeneratorExp": "a generator",
    "Global": "global",
    "Import": "an import",
    "ImportFrom": "an import",
    "JoinedStr": "a formatted string",
    "Match": "match",
    "NamedExpr": "an assignment with :=",
    "Nonlocal": "nonlocal",
    "Raise": "raise",
    "Set": "a set",
    "SetComp": "a comprehension of a set",
    "Starred": "a * before an argument",
    "Try": "try",
    "TryStar": "try",
    "TypeAlias": "a type",
}
"""The names of syntax that TVMScript lacks, as errors give them."""


class SourceText:
    """A text, its syntax tree and its names; `imported` are those of other modules of TVM."""

    def __init__(self, text: str, name: str, imported: Mapping[str, str] | None = None) -> None:
        self.name, self.tree = name, parse_tree(text, name)
        self.imported = {
            name: meaning
            for name, meaning in used_names(self.tree, imported or {}).items()
            if name == "R" or not (name.startswith("_") or name in RESERVED | _FOREIGN)
        }
        self.tree = with_full_names(self.tree, self.imported)
        self.lines = text.split("\n")
        self.has_metadata = False
        self._string: ast.AST | None = None
        self._modules, self._functions = _modules(self.tree), _functions(self.tree)
        self._tuples = _tuples(self.tree)

    def refused(self, node: ast.AST, reason: str) -> RefusedError:
        """Return an error with the node's place and the reason."""
        line, column = position(self._string or node, self.lines)
        return RefusedError(self.name, line, column, reason)

    def refused_kind(self, node: ast.expr | ast.stmt) -> RefusedError:
        """Return the error for a kind of node that TVMScript lacks."""
        kind = type(node).__name__
        words = _KINDS.get(kind, f"Python's {kind}")
        return self.refused(node, f"{words} is refused: TVMScript does not have it")

    def in_string(self, node: ast.Constant, value: str) -> tuple[SourceText, ast.expr]:
        """Return the text in a string, and its only expression; errors have the string's place."""
        inner = copy.copy(self)
        inner._string = self._string or node
        reason = "it is not an expression"
        try:
            inner.tree = parse_tree(f"({value}\n)", self.name)
            inner.tree = with_full_names(inner.tree, self.imported)
            match inner.tree.body:
                case [ast.Expr(value=expression)]:
                    return inner, expression
        except RefusedError as failure:
            reason = failure.reason
        raise self.refused(node, f"{value[:40]!r} as a size is refused: {reason}")

    def check_name(self, node: ast.AST, name: str, reason: str) -> None:
        """Raise RefusedError for a private name, or, with this reason, for a name that TVM uses."""
        if is_private(name):
            raise self.refused(node, f"the name {name} is refused: it begins with underscores")
        if name in RESERVED or (name == "metadata" and self.has_metadata):
            raise self.refused(node, reason)

    def bind(self, node: ast.AST, name: str) -> str:
        """Return a name that the text binds; raise RefusedError if it may not bind it."""
        self.check_name(node, name, f"a variable called {name} is refused: TVM uses this name")
        if name in self._modules:
            raise self.refused(
                node, f"a variable called {name} is refused: it is the module's name"
            )
        return name

    def check_module(self, node: ast.AST, name: str) -> None:
        """Raise RefusedError if a module has a name of Python or TVM."""
        if name.startswith("__") or name in RESERVED | _FOREIGN | {"metadata"}:
            raise self.refused(
                node, f"a module called {name} is refused: Python or TVM use this name"
            )

    def is_module(self, node: ast.expr) -> bool:
        """Tell whether a node names the module, as `cls` does after `cls = Module`."""
        return isinstance(node, ast.Name) and node.id in self._modules

    def is_function(self, node: ast.Attribute) -> bool:
        """Tell whether a node names a function of the module, as `cls.main` does."""
        is_own = node.attr in self._functions and not node.attr.startswith("__")
        return is_own and self.is_module(node.value)

    def may_be_tuple(self, node: ast.expr) -> bool:
        """Tell whether a value in a PrimFunc may be a Python tuple, or an element of one."""
        return _may_be_tuple(node, self._tuples)

    def parameters(self, node: ast.AST, arguments: ast.arguments) -> list[str]:
        """Return the names of parameters; raise RefusedError if one is not plain."""
        special = arguments.posonlyargs or arguments.kwonlyargs or arguments.defaults
        if special or arguments.vararg or arguments.kwarg:
            raise self.refused(
                node, "parameters with *, / or a default are refused: TVMScript has plain ones"
            )
        return [self.bind(one, one.arg) for one in arguments.args]


@dataclass(frozen=True)
class TextScope:
    """The context of an expression.

    Attributes:
        text: The text.
        bound: The names of Python or TVM, such as `input`, that the text has bound on every path
            to this place.
        allows_strings: Whether a string may occur here.
        in_shape: Whether TVM evaluates strings here.
        in_string: Whether the expression is in such a string itself.
        in_signature: Whether this is the type of a parameter or a result, with sizes in quotes.
        sizes: The names of Python that the signature uses as sizes, such as `max`.
        repeats: An upper bound on the number of evaluations, in comprehensions.
        ranges: Upper bounds on the variables of comprehensions.
    """

    text: SourceText
    bound: frozenset[str] = frozenset()
    allows_strings: bool = False
    in_shape: bool = False
    in_string: bool = False
    in_signature: bool = False
    sizes: frozenset[str] = frozenset()
    repeats: int = 1
    ranges: dict[str, int] = field(default_factory=dict)

    def having(self, **changes: Any) -> TextScope:
        """Return the scope with other values of its attributes."""
        is_same = all(getattr(self, name) == value for name, value in changes.items())
        return self if is_same else replace(self, **changes)

    def with_bound(self, names: Sequence[str]) -> TextScope:
        """Return the scope with more names bound."""
        return self.having(bound=self.bound.union(_FOREIGN.intersection(names)))

    def with_sizes(self, names: Sequence[str]) -> TextScope:
        """Return the scope of a signature with more names that may be sizes."""
        return self.having(sizes=self.sizes.union(_FOREIGN.intersection(names)))

    def check_name(self, node: ast.Name) -> None:
        """Raise RefusedError unless a name can only be a variable of this text.

        A size in a signature may have the name of a Python function: a shape calls nothing, and a
        function that is not called does nothing.
        """
        reason = f"{node.id} is refused here: it is used only before a dot or in a call"
        self.text.check_name(node, node.id, reason)
        is_size = self.in_shape and self.in_signature and node.id in self.sizes
        if node.id in _FOREIGN and node.id not in self.bound and not is_size:
            raise self.text.refused(
                node,
                f"{node.id} is refused: it is a name of Python or TVM, and may be unbound here",
            )

    def may_call(self, node: ast.Name) -> bool:
        """Tell whether a name is a variable that may be called."""
        is_own = node.id not in _FOREIGN or node.id in self.bound
        is_reserved = node.id in RESERVED or self.text.is_module(node)
        return is_own and not is_reserved and not node.id.startswith("__")


def is_private(name: str) -> bool:
    """Tell whether a name begins with two underscores and has letters: `__1` is plain."""
    return name.startswith("__") and not name.strip("_").isdecimal() and name.strip("_") != ""


def dotted(node: ast.expr) -> tuple[str, str]:
    """Return "a" and "b.c" for `a.b.c`; the first is "" for another expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (node.id if isinstance(node, ast.Name) else ""), ".".join(reversed(parts))


def callee_name(node: ast.expr) -> str:
    """Return the full name of what a call or a decorator calls, such as "T.prim_func"."""
    return ".".join(dotted(node.func if isinstance(node, ast.Call) else node))


def ptx_instruction(node: ast.Subscript) -> str | None:
    """Return the instruction in `T.ptx["ld.global.b32"]`, and None for another index."""
    match node.slice:
        case ast.Constant(value=str() as text) if dotted(node.value) == ("T", "ptx"):
            return text if PTX_TEXT.fullmatch(text) else None
    return None


def _functions(tree: ast.Module) -> frozenset[str]:
    """Return the names that the modules of a text define."""
    names: set[str] = set()
    for node in tree.body:
        for part in node.body if isinstance(node, ast.ClassDef) else []:
            if isinstance(part, ast.FunctionDef):
                names.add(part.name)
            elif isinstance(part, ast.Assign):
                names.update(one.id for one in part.targets if isinstance(one, ast.Name))
    return frozenset(names)


def _modules(tree: ast.Module) -> frozenset[str]:
    """Return the names of the modules, and their aliases, as in `cls = Module`."""
    modules = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    aliases: set[str] = set()
    statements: list[ast.stmt] = list(tree.body)
    while statements:
        match statements.pop():
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=known)):
                if known in modules:
                    aliases.add(name)
            case node:
                statements += [*getattr(node, "body", []), *getattr(node, "orelse", [])]
    return frozenset(modules | aliases)


def _tuples(tree: ast.Module) -> frozenset[str]:
    """Return the variables of PrimFuncs that may be tuples; variables of Relax are expressions."""
    assignments = [
        node
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        and "T.prim_func" in map(callee_name, function.decorator_list)
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
    ]
    found: set[str] = set()
    parts = [part for node in assignments for part in _parts(node.targets, node.value)]
    for target, value in parts * 2:  # once more for those that follow in a loop
        if _may_be_tuple(value, found):
            found.update(one.id for one in ast.walk(target) if isinstance(one, ast.Name))
    return frozenset(found)


def _parts(targets: Sequence[ast.expr], value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what is assigned to what, such as two parts for `a, b = 1, 2`."""
    match targets, value:
        case [ast.Tuple(elts=names)], ast.Tuple(elts=values) if len(names) == len(values):
            for name, one in zip(names, values, strict=True):
                yield from _parts([name], one)
        case _:
            yield from ((target, value) for target in targets)


def _may_be_tuple(node: ast.expr, tuples: Set[str]) -> bool:
    match node:
        case ast.Tuple():
            return True
        case ast.Name(id=name):
            return name in tuples
        case ast.Subscript(value=value) | ast.UnaryOp(operand=value):
            return _may_be_tuple(value, tuples)
        case ast.BinOp(left=first, right=second) | ast.IfExp(body=first, orelse=second):
            return _may_be_tuple(first, tuples) or _may_be_tuple(second, tuples)
        case ast.BoolOp(values=values):
            return any(_may_be_tuple(value, tuples) for value in values)
        case _:
            return False

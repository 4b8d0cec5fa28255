"""The names in a text, and which of them can only be the text's own variables."""

from __future__ import annotations

import ast
import builtins
import copy
from dataclasses import dataclass, field, replace
from functools import cached_property

from irviz.loaders.tvmscript.syntax_tree import RefusedError, parse_tree, position

RESERVED = frozenset({"I", "R", "T", "TypeVar", "range"})
"""Names with the same meaning everywhere in a text."""
_TVM_MODULES = frozenset({"Axis", "Tx", "ir", "relax", "tir", "tirx", "tvm"})
"""Further names in the scope of TVM's parser, all of them Python modules."""


@dataclass(frozen=True)
class TextScope:
    """The context of an expression.

    Attributes:
        foreign: The names that Python or TVM define too, such as `input`. Other names can only be
            variables of the text, and need no check.
        bound: The foreign names that the text has bound on every path to this place.
        allows_strings: Whether a string may occur here.
        in_shape: Whether TVM evaluates strings here.
        in_string: Whether the expression is in such a string itself.
        in_signature: Whether a shape belongs to the type of a parameter or a result.
        repeats: A bound of the number of evaluations, in comprehensions.
        ranges: Bounds of the comprehensions' variables.
    """

    foreign: frozenset[str]
    bound: frozenset[str] = frozenset()
    allows_strings: bool = False
    in_shape: bool = False
    in_string: bool = False
    in_signature: bool = False
    repeats: int = 1
    ranges: dict[str, int] = field(default_factory=dict)

    def with_strings(self, allows_strings: bool) -> TextScope:
        """Return the scope with strings allowed, or refused."""
        return (
            self
            if self.allows_strings == allows_strings
            else replace(self, allows_strings=allows_strings)
        )

    def inside_shape(self) -> TextScope:
        """Return the scope inside a shape."""
        return self if self.in_shape else replace(self, in_shape=True)

    def with_signature(self, in_signature: bool) -> TextScope:
        """Return the scope of the type of a parameter or a result, where sizes may be in quotes."""
        if self.in_signature == in_signature:
            return self
        return replace(self, in_signature=in_signature)

    def with_bound(self, names: list[str]) -> TextScope:
        """Return the scope with more names bound."""
        new = self.foreign.intersection(names)  # other names are not tracked
        return replace(self, bound=self.bound | new) if new else self

    def repeated(self, name: str, repeats: int) -> TextScope:
        """Return the scope inside a comprehension over a range."""
        ranges = {**self.ranges, name: repeats}
        return replace(
            self.with_bound([name]), repeats=self.repeats * max(repeats, 1), ranges=ranges
        )


class SourceText:
    """A text, its syntax tree and its names."""

    def __init__(self, text: str, name: str, tree: ast.Module) -> None:
        self.name, self.tree = name, tree
        self._source = text
        self.foreign = _TVM_MODULES | {one for one in dir(builtins) if not one.startswith("_")}
        self._at: ast.AST | None = None
        self.has_metadata = False

    @cached_property
    def _modules(self) -> frozenset[str]:
        """The names of the module: its own, and `cls` after `cls = Module`."""
        return _modules(self.tree)

    @cached_property
    def _functions(self) -> frozenset[str]:
        return _functions(self.tree)

    @cached_property
    def lines(self) -> list[str]:
        """The lines as Python counts them."""
        return self._source.split("\n")

    def refused(self, node: ast.AST, reason: str) -> RefusedError:
        """Return the error with a node's place and the reason."""
        line, column = position(self._at or node, self.lines)
        return RefusedError(self.name, line, column, reason)

    def parse_string(self, node: ast.Constant, value: str) -> SourceText:
        """Return the expression in a string as a text; its errors have the string's place."""
        try:
            tree = parse_tree(f"({value}\n)", self.name)
        except RefusedError as failure:
            raise self.refused(
                node, f"{value[:40]!r} as a size is refused: {failure.reason}"
            ) from None
        match tree.body:
            case [ast.Expr()]:
                pass
            case _:
                raise self.refused(
                    node, f"{value[:40]!r} as a size is refused: it is not an expression"
                )
        _ = self._modules, self._functions, self.lines  # of the whole text
        inner = copy.copy(self)
        inner.tree, inner._at = tree, self._at or node
        return inner

    @property
    def expression(self) -> ast.expr:
        """The only expression of a text that `parse_string` returned."""
        (statement,) = self.tree.body
        assert isinstance(statement, ast.Expr)
        return statement.value

    def check_name(self, node: ast.Name, scope: TextScope) -> None:
        """Raise RefusedError unless a name can only be a variable of this text."""
        name = node.id
        if name.startswith("__"):
            raise self.refused(node, f"the name {name} is refused: it begins with underscores")
        if name in RESERVED or (name == "metadata" and self.has_metadata):
            raise self.refused(
                node, f"{name} is refused here: it is used only before a dot or in a call"
            )
        if name in self.foreign and name not in scope.bound:
            raise self.refused(
                node,
                f"{name} is refused: it is a name of Python or TVM, and may be unbound here",
            )

    def may_call(self, name: str, scope: TextScope) -> bool:
        """Tell whether a variable of this name may be called."""
        is_own = name not in self.foreign or name in scope.bound
        return is_own and name not in RESERVED | self._modules and not name.startswith("__")

    def bind(self, node: ast.AST, name: str) -> str:
        """Return a name that the text binds; raise RefusedError if it may not."""
        if name.startswith("__"):
            raise self.refused(node, f"the name {name} is refused: it begins with underscores")
        if name in RESERVED or (name == "metadata" and self.has_metadata):
            raise self.refused(node, f"a variable called {name} is refused: TVM uses this name")
        if name in self._modules:
            raise self.refused(
                node, f"a variable called {name} is refused: it is the module's name"
            )
        return name

    def alias(self, target: ast.expr) -> None:
        """Raise RefusedError unless a module may have this alias, as in `cls = Module`."""
        if not isinstance(target, ast.Name):
            raise self.refused(
                target, "an assignment to this is refused: TVMScript assigns to names"
            )
        self.check_module(target, target.id)

    def check_module(self, node: ast.AST, name: str) -> None:
        """Raise RefusedError if a module has a name of Python or TVM."""
        if name.startswith("__") or name in RESERVED | self.foreign | {"metadata"}:
            raise self.refused(
                node, f"a module called {name} is refused: Python or TVM use this name"
            )

    def is_module(self, node: ast.expr) -> bool:
        """Tell whether a node names the module, as `cls` does after `cls = Module`."""
        return isinstance(node, ast.Name) and node.id in self._modules

    def check_function(self, node: ast.Attribute) -> None:
        """Raise RefusedError unless a node names a function of the module."""
        if node.attr not in self._functions or node.attr.startswith("__"):
            raise self.refused(node, f"{node.attr} is refused: the module has no such function")

    def parameters(self, node: ast.AST, arguments: ast.arguments) -> list[str]:
        """Return the names of parameters; raise RefusedError if one is not plain."""
        if (
            arguments.posonlyargs
            or arguments.kwonlyargs
            or arguments.vararg
            or arguments.kwarg
            or arguments.defaults
            or any(default is not None for default in arguments.kw_defaults)
        ):
            raise self.refused(
                node, "parameters with *, / or a default are refused: TVMScript has plain ones"
            )
        return [self.bind(one, one.arg) for one in arguments.args]


def dotted(node: ast.expr) -> tuple[str, str]:
    """Return "a" and "b.c" for `a.b.c`; the first is "" for another expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (node.id if isinstance(node, ast.Name) else ""), ".".join(reversed(parts))


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
    """Return the names of the modules, and their aliases."""
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

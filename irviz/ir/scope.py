"""The names of a text: what they may be, and which of them are surely its own."""

from __future__ import annotations

import ast
import builtins
import copy
from dataclasses import dataclass, field, replace
from functools import cached_property

from irviz.ir.refusal import RefusedError
from irviz.ir.text_limits import parsed, place

KEPT = frozenset({"I", "R", "T", "TypeVar", "range"})
"""Names that mean the same in all of a text."""
_TVMS = frozenset({"Axis", "Tx", "ir", "relax", "tir", "tirx", "tvm"})
"""What TVM's parser knows besides, all modules of Python."""


@dataclass(frozen=True)
class Scope:
    """What is known where an expression stands.

    A name that Python or TVM know too, such as `input`, is the text's own only where it was
    bound before on every way that leads there: these are `sure`. Another name needs no such
    care, since it leads nowhere else. `foreign` are the names that do. `ranges` are the numbers of
    a comprehension at most, and `times` is how often it is done; `may_say` tells whether text in
    quotes may stand here.
    """

    foreign: frozenset[str]
    sure: frozenset[str] = frozenset()
    may_say: bool = False
    in_shape: bool = False
    in_quotes: bool = False
    in_signature: bool = False
    times: int = 1
    ranges: dict[str, int] = field(default_factory=dict)

    def saying(self, may_say: bool) -> Scope:
        """Return the scope where text in quotes may stand, or may not."""
        return self if self.may_say == may_say else replace(self, may_say=may_say)

    def shaping(self) -> Scope:
        """Return the scope of a shape."""
        return self if self.in_shape else replace(self, in_shape=True)

    def signing(self, in_signature: bool) -> Scope:
        """Return the scope of a parameter's or result's type, where a size may be in quotes."""
        if self.in_signature == in_signature:
            return self
        return replace(self, in_signature=in_signature)

    def with_sure(self, names: list[str]) -> Scope:
        """Return the scope with more names bound."""
        new = self.foreign.intersection(names)  # the others need no place in it
        return replace(self, sure=self.sure | new) if new else self

    def repeated(self, name: str, times: int) -> Scope:
        """Return the scope of what is done for each number of a range."""
        ranges = {**self.ranges, name: times}
        return replace(self.with_sure([name]), times=self.times * max(times, 1), ranges=ranges)


class Text:
    """A text, its places and its names."""

    def __init__(self, text: str, name: str, tree: ast.Module) -> None:
        self.name, self.tree = name, tree
        self._source = text
        self.foreign = _TVMS | {one for one in dir(builtins) if not one.startswith("_")}
        self._at: ast.AST | None = None
        self.has_metadata = False

    @cached_property
    def _modules(self) -> frozenset[str]:
        """The names that mean the module: its own, and `cls` after `cls = Module`."""
        return _modules(self.tree)

    @cached_property
    def _functions(self) -> frozenset[str]:
        return _functions(self.tree)

    @cached_property
    def lines(self) -> list[str]:
        """The lines, as Python counts them."""
        return self._source.split("\n")

    def refused(self, node: ast.AST, reason: str) -> RefusedError:
        """Return the error that says where a node stands and why it is refused."""
        line, column = place(self._at or node, self.lines)
        return RefusedError(self.name, line, column, reason)

    def quoted(self, node: ast.Constant, value: str) -> Text:
        """Return an expression in quotes as a text; places in it are where the quotes are."""
        try:
            tree = parsed(f"({value}\n)", self.name)
        except RefusedError as failure:
            raise self.refused(
                node, f"{value[:40]!r} as a size is refused: {failure.reason}"
            ) from None
        match tree.body:
            case [ast.Expr()]:
                pass
            case _:
                raise self.refused(node, f"{value[:40]!r} as a size is refused: it is none")
        _ = self._modules, self._functions, self.lines  # of the whole text
        inner = copy.copy(self)
        inner.tree, inner._at = tree, self._at or node
        return inner

    @property
    def expression(self) -> ast.expr:
        """The only expression of a text in quotes."""
        (statement,) = self.tree.body
        assert isinstance(statement, ast.Expr)
        return statement.value

    def check_name(self, node: ast.Name, scope: Scope) -> None:
        """Raise RefusedError unless a name can only be a value of this text."""
        name = node.id
        if name.startswith("__"):
            raise self.refused(node, f"the name {name} is refused: it begins with underscores")
        if name in KEPT or (name == "metadata" and self.has_metadata):
            raise self.refused(node, f"{name} is refused here: it stands only before a dot or call")
        if name in self.foreign and name not in scope.sure:
            raise self.refused(
                node,
                f"{name} is refused: it is a name of Python or TVM, and not surely one of the text",
            )

    def may_call(self, name: str, scope: Scope) -> bool:
        """Tell whether a variable of this name can be a function of the text."""
        is_own = name not in self.foreign or name in scope.sure
        return is_own and name not in KEPT | self._modules and not name.startswith("__")

    def bind(self, node: ast.AST, name: str) -> str:
        """Return a name that is given to something; raise RefusedError where it may not be."""
        if name.startswith("__"):
            raise self.refused(node, f"the name {name} is refused: it begins with underscores")
        if name in KEPT or (name == "metadata" and self.has_metadata):
            raise self.refused(node, f"a variable called {name} is refused: that name is TVM's")
        if name in self._modules:
            raise self.refused(
                node, f"a variable called {name} is refused: the module is called so"
            )
        return name

    def alias(self, target: ast.expr) -> None:
        """Raise RefusedError unless the module may have this other name, as in `cls = Module`."""
        if not isinstance(target, ast.Name):
            raise self.refused(target, "an assignment to this is refused: TVMScript gives names")
        self.check_module(target, target.id)

    def check_module(self, node: ast.AST, name: str) -> None:
        """Raise RefusedError where a module has a name of Python or TVM."""
        if name.startswith("__") or name in KEPT | self.foreign | {"metadata"}:
            raise self.refused(node, f"a module called {name} is refused: that name is taken")

    def is_module(self, node: ast.expr) -> bool:
        """Tell whether it names the module, as `cls` does after `cls = Module`."""
        return isinstance(node, ast.Name) and node.id in self._modules

    def check_function(self, node: ast.Attribute) -> None:
        """Raise RefusedError unless it names a function of the module."""
        if node.attr not in self._functions or node.attr.startswith("__"):
            raise self.refused(
                node, f"{node.attr} is refused: no function of the module is called so"
            )

    def parameters(self, node: ast.AST, given: ast.arguments) -> list[str]:
        """Return the names of plain parameters; raise RefusedError where there are others."""
        if (
            given.posonlyargs
            or given.kwonlyargs
            or given.vararg
            or given.kwarg
            or given.defaults
            or any(default is not None for default in given.kw_defaults)
        ):
            raise self.refused(
                node, "parameters with *, / or a default are refused: TVMScript has plain ones"
            )
        return [self.bind(one, one.arg) for one in given.args]


def dotted(node: ast.expr) -> tuple[str, str]:
    """Return the first name of `a.b.c` and the rest, "" for what is no such thing."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (node.id if isinstance(node, ast.Name) else ""), ".".join(reversed(parts))


def _functions(tree: ast.Module) -> frozenset[str]:
    """Return the names of what the modules of a text define."""
    names: set[str] = set()
    for node in tree.body:
        for part in node.body if isinstance(node, ast.ClassDef) else []:
            if isinstance(part, ast.FunctionDef):
                names.add(part.name)
            elif isinstance(part, ast.Assign):
                names.update(one.id for one in part.targets if isinstance(one, ast.Name))
    return frozenset(names)


def _modules(tree: ast.Module) -> frozenset[str]:
    """Return the names of the modules, and the other names that a text gives them."""
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

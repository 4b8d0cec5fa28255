# ruff: noqa: N802, N815
"""Resolve names in a text to full names, and spell full names with the text's imports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import libcst as cst
from libcst import metadata
from libcst.metadata.scope_provider import BaseAssignment, ScopeVisitor

from irviz.loaders.upgrade.renamed_symbols import SHORT, USUAL, moved

AddNote = Callable[[str, str], None]
"""Adds a note of some words and the reason."""


class DottedNames:
    """The scopes of a text, the full names of its imports, and those that its new names need.

    `aliases` are the text's names for the dialects T, R and I.
    """

    def __init__(self, module: cst.Module) -> None:
        self._wrapper = cst.MetadataWrapper(module, unsafe_skip_copy=True)
        self.scopes: Mapping[cst.CSTNode, metadata.Scope | None] = self._wrapper.resolve(
            LinearScopeProvider
        )
        self._renamed: dict[cst.CSTNode, str] = {
            node.asname.name: node.evaluated_name
            for node in self.scopes
            if isinstance(node, cst.ImportAlias) and node.asname is not None
        }
        own = self.scopes[module]
        assert own is not None, "a module always has its own scope"
        self.outermost = own.globals
        self.imported = {
            each.name: self._full_name(each)
            for each in self.outermost.assignments
            if isinstance(each, metadata.ImportAssignment)
        }
        self.aliases: dict[str, str] = {}
        for name, home in self.imported.items():
            self.aliases.setdefault(_short(home), name)
        homes = self.imported.values()
        self.imports_tvm = any(home.partition(".")[0] == "tvm" for home in homes)
        self.new_imports: set[str] = set()
        self._roots: dict[int, str] = {}

    def line(self, node: cst.CSTNode) -> int:
        """Return the first line, from 1, of a node of the old text."""
        return self._positions[node].start.line

    @cached_property
    def _positions(self) -> Mapping[cst.CSTNode, metadata.CodeRange]:
        """The places of all nodes: only notes need them, and they take a fifth of the time."""
        return self._wrapper.resolve(metadata.PositionProvider)

    def root(self, node: cst.BaseExpression) -> str:
        """Return the full name of the first name in a dotted expression, or ""."""
        while isinstance(node, cst.Attribute):
            node = node.value
        if not isinstance(node, cst.Name):
            return ""
        bound = self._assignments(node)
        if not bound:
            return USUAL.get(node.value, "")
        if id(bound) not in self._roots:  # libcst has one set for all uses of a variable
            imports = (
                self._full_name(each)
                for each in bound
                if isinstance(each, metadata.ImportAssignment)
            )
            self._roots[id(bound)] = min(imports, default="")
        return self._roots[id(bound)]

    def _full_name(self, imported: metadata.ImportAssignment) -> str:
        """Return the full name of what an import binds.

        `import a.b` binds `a`, and `a.b` as far as libcst's scopes are concerned.
        """
        module = imported.get_module_name_for_import()
        place = f"{module}." if module.strip(".") else module
        return place + self._renamed.get(imported.as_name, imported.name)

    def _assignments(self, node: cst.Name) -> Set[BaseAssignment]:
        scope = self.scopes.get(node) or self.outermost
        return scope[node.value]

    def meaning(self, node: cst.BaseExpression) -> str:
        """Return the full name of a dotted expression, with T, R or I for TVMScript's dialects."""
        root = self.root(node)
        if not root:
            return ""
        dotted = ".".join([root, *parts(node)[1:]])
        for long, short in SHORT.items():
            if dotted == long or dotted.startswith(f"{long}."):
                return short + dotted.removeprefix(long)
        return dotted

    def bound(self, node: cst.Name) -> bool:
        """Tell whether the text binds this name in the scope of its use."""
        # only the names of Python itself have another kind of assignment, and a single one
        return isinstance(next(iter(self._assignments(node)), None), metadata.Assignment)

    def texts(self, node: cst.Name) -> list[str]:
        """Return the strings that the text assigns to a name, or nothing if anything else."""
        found = []
        for each in self._assignments(node):
            text = self._texts.get(id(each.node)) if isinstance(each, metadata.Assignment) else None
            if text is None:
                return []
            found.append(text)
        return found

    @cached_property
    def _texts(self) -> Mapping[int, str]:
        """The strings that assignments like `target = "llvm"` assign, by their names."""
        return {
            id(target.target): node.value.evaluated_value
            for node in self.scopes
            if isinstance(node, cst.Assign) and isinstance(node.value, cst.SimpleString)
            for target in node.targets
            if isinstance(node.value.evaluated_value, str)
        }

    def spelled(self, meaning: str, base: cst.BaseExpression) -> cst.BaseExpression:
        """Return a full name as an expression of this text.

        It starts with the first name of `base` if it can, or else with a module, which is added
        to `new_imports` if the text does not import it.
        """
        origin = _short(moved(self.root(base)))
        if meaning.startswith(f"{origin}."):
            return cst.parse_expression(f"{parts(base)[0]}{meaning.removeprefix(origin)}")
        head, _, rest = meaning.partition(".")
        if head in SHORT.values():
            return cst.parse_expression(f"{self.alias(head)}.{rest}")
        if head not in self.imported and not (head in USUAL and not self.imports_tvm):
            self.new_imports.add(head)
        return cst.parse_expression(meaning)

    def alias(self, short: str) -> str:
        """Return the text's name for a dialect T, R or I, by default this letter."""
        if short in self.aliases:
            return self.aliases[short]
        if self.imports_tvm:
            self.new_imports.add(short)
        return short

    def can_spell(self, short: str) -> bool:
        """Tell whether the text has a name for a dialect, or its letter is free."""
        return short in self.aliases or not self.outermost[short]

    def uses_tvm(self) -> bool:
        """Tell whether the text imports TVM, or uses its names without an import."""
        return self.imports_tvm or any(
            isinstance(node, cst.Name)
            and USUAL.get(node.value, "").startswith("tvm.")
            and not (scope or self.outermost)[node.value]
            for node, scope in self.scopes.items()
        )


def parts(node: cst.BaseExpression) -> list[str]:
    """Return the names in a dotted expression in order, or nothing for another expression."""
    found: list[str] = []
    while isinstance(node, cst.Attribute):
        found.append(node.attr.value)
        node = node.value
    return [*([node.value] if isinstance(node, cst.Name) else []), *reversed(found)]


def _short(meaning: str) -> str:
    return SHORT.get(meaning, meaning)


# --- Calls to rewrite, and the parts of new ones -------------------------------------------------


_NO_SPACE: Final = cst.SimpleWhitespace("")
_TIGHT: Final = cst.AssignEqual(_NO_SPACE, _NO_SPACE)
SPACED: Final = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


@dataclass(frozen=True)
class CallSite:
    """A call: the old one, which has a position and a scope, and the new one, with new parts.

    `meaning` is the full name of the function, and `add_note` adds a note at the call.
    """

    old: cst.Call
    new: cst.Call
    meaning: str
    names: DottedNames
    add_note: AddNote

    def spelled(self, meaning: str) -> cst.BaseExpression:
        """Return a full name as this call's text can write it."""
        return self.names.spelled(meaning, self.old.func)

    def of(self, meaning: str, args: Sequence[cst.Arg]) -> cst.Call:
        """Return the call with another function and other arguments."""
        return self.new.with_changes(func=self.spelled(meaning), args=args)


def callee(node: cst.BaseExpression) -> cst.BaseExpression:
    """Return what a decorator or an expression calls, or the node itself if it calls nothing."""
    return node.func if isinstance(node, cst.Call) else node


def keyword(arg: cst.Arg) -> str:
    """Return the keyword of an argument, or ""."""
    return arg.keyword.value if arg.keyword else ""


def keyword_arg(name: str, value: cst.BaseExpression) -> cst.Arg:
    """Return an argument like `name=value`."""
    return cst.Arg(value, keyword=cst.Name(name), equal=_TIGHT)


def with_keywords(args: Sequence[cst.Arg], new: Mapping[str, str]) -> list[cst.Arg]:
    """Return arguments with other keywords."""
    return [
        arg.with_changes(keyword=cst.Name(new[keyword(arg)])) if keyword(arg) in new else arg
        for arg in args
    ]


def with_arg(args: Sequence[cst.Arg], new: cst.Arg) -> list[cst.Arg]:
    """Return arguments with one more at the end, in the layout of the last one."""
    if not args:
        return [new]
    *first, last = args
    closing = new.with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
    return [*first, last.with_changes(comma=SPACED, whitespace_after_arg=_NO_SPACE), closing]


# --- The scopes of a text, found in linear time --------------------------------------------------
#
# libcst's own ScopeProvider also determines which assignment each use of a name may mean: that
# takes the number of uses times the number of assignments. It parses strings in annotations as
# well, and its parser ends the process when they are nested deeply. Neither is needed here.


class LinearScopeProvider(metadata.ScopeProvider):
    """Provides the scope of each node, with the assignments in it and without their uses."""

    def visit_Module(self, node: cst.Module) -> bool:
        """Visit a whole module."""
        node.visit(_ScopeVisitor(self))
        return False


class _ScopeVisitor(ScopeVisitor):
    """Records assignments; what libcst does for types and uses is left out."""

    visit_Call = cst.CSTVisitor.visit_Call
    leave_Call = cst.CSTVisitor.leave_Call
    visit_Subscript = cst.CSTVisitor.visit_Subscript
    leave_Subscript = cst.CSTVisitor.leave_Subscript
    visit_SimpleString = cst.CSTVisitor.visit_SimpleString
    visit_ConcatenatedString = cst.CSTVisitor.visit_ConcatenatedString

    def visit_Name(self, node: cst.Name) -> None:
        context = self.provider.get_metadata(metadata.ExpressionContextProvider, node, None)
        if context == metadata.ExpressionContext.STORE:
            self.scope.record_assignment(node.value, node)

"""Resolve the names in a text to full names, and write full names as the text can."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import libcst as cst
from libcst.metadata import (
    Assignment,
    CodeRange,
    ImportAssignment,
    PositionProvider,
    QualifiedNameSource,
    Scope,
    ScopeProvider,
)

from irviz.loaders.upgrade.moved_names import SHORT, USUAL, moved


@dataclass
class DottedNames:
    """The scopes of a text, the full names of its imports, and those that its new names need."""

    scopes: Mapping[cst.CSTNode, Scope | None]
    positions: Mapping[cst.CSTNode, CodeRange]
    outermost: Scope
    imported: Mapping[str, str]
    new_imports: set[str] = field(default_factory=set)

    @staticmethod
    def of(module: cst.Module) -> DottedNames:
        """Return the names of a module that is not yet changed."""
        wrapper = cst.MetadataWrapper(module, unsafe_skip_copy=True)
        scopes = wrapper.resolve(ScopeProvider)
        positions = wrapper.resolve(PositionProvider)
        outermost = scopes[module]
        if outermost is None:  # a module always has its own scope
            raise AssertionError(module)
        imported = {}
        for each in outermost.globals.assignments:
            if isinstance(each, ImportAssignment):
                found = each.get_qualified_names_for(each.name)
                imported[each.name] = min((one.name for one in found), default="")
        return DottedNames(scopes, positions, outermost.globals, imported)

    def line(self, node: cst.CSTNode) -> int:
        """Return the first line, from 1, of a node of the old text."""
        return self.positions[node].start.line

    def root(self, node: cst.BaseExpression) -> str:
        """Return the full name of the first name in a dotted expression, or ""."""
        while isinstance(node, cst.Attribute):
            node = node.value
        if not isinstance(node, cst.Name):
            return ""
        scope = self.scopes.get(node) or self.outermost
        bound = scope[node.value]
        if any(isinstance(each, ImportAssignment) for each in bound):
            found = scope.get_qualified_names_for(node)
            imports = [each.name for each in found if each.source == QualifiedNameSource.IMPORT]
            return min(imports, default="")
        return USUAL.get(node.value, "") if not bound else ""

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
        scope = self.scopes.get(node) or self.outermost
        return any(isinstance(each, Assignment) for each in scope[node.value])

    def spelled(self, meaning: str, base: cst.BaseExpression | None = None) -> cst.BaseExpression:
        """Return a full name as an expression of this text.

        It starts with the first name of `base` if it can, or else with a module, which is added
        to `new_imports` if the text does not import it.
        """
        if base is not None:
            first, root = parts(base)[0], self.root(base)
            origin = _short(moved(root))
            if meaning.startswith(f"{origin}."):
                return cst.parse_expression(f"{first}{meaning.removeprefix(origin)}")
        head, _, rest = meaning.partition(".")
        if head in SHORT.values():
            return cst.parse_expression(f"{self.alias(head)}.{rest}")
        if head not in self.imported and not (head in USUAL and not self._imports_tvm()):
            self.new_imports.add(head)
        return cst.parse_expression(meaning)

    def alias(self, short: str) -> str:
        """Return the text's name for a dialect T, R or I, by default this letter."""
        if (name := self._imported_as(short)) is not None:
            return name
        if self._imports_tvm():
            self.new_imports.add(short)
        return short

    def can_spell(self, short: str) -> bool:
        """Tell whether the text has a name for a dialect, or its letter is free."""
        return self._imported_as(short) is not None or not self.outermost[short]

    def _imported_as(self, short: str) -> str | None:
        return next((name for name, home in self.imported.items() if _short(home) == short), None)

    def uses_tvm(self) -> bool:
        """Tell whether the text imports TVM, or uses its names without an import."""
        return self._imports_tvm() or any(
            USUAL.get(access.node.value, "").startswith("tvm.")
            for scope in {scope for scope in self.scopes.values() if scope is not None}
            for access in scope.accesses
            if isinstance(access.node, cst.Name) and not access.scope[access.node.value]
        )

    def _imports_tvm(self) -> bool:
        return any(home.partition(".")[0] == "tvm" for home in self.imported.values())


def parts(node: cst.BaseExpression) -> list[str]:
    """Return the names in a dotted expression in order, or nothing for another expression."""
    found: list[str] = []
    while isinstance(node, cst.Attribute):
        found.append(node.attr.value)
        node = node.value
    return [*([node.value] if isinstance(node, cst.Name) else []), *reversed(found)]


def _short(meaning: str) -> str:
    return SHORT.get(meaning, meaning)

"""What names in a text mean, and how a meaning is written there."""

from __future__ import annotations

from collections.abc import Collection, Mapping
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

from irviz.loaders.upgrade.moves import SHORT, USUAL, moved

Chain = cst.Name | cst.Attribute


@dataclass
class Names:
    """Know a text's scopes; collect the imports that its new names need."""

    scopes: Mapping[cst.CSTNode, Scope | None]
    positions: Mapping[cst.CSTNode, CodeRange]
    outermost: Scope
    wanted: set[str] = field(default_factory=set)

    @staticmethod
    def of(module: cst.Module) -> Names:
        """Return the names of a module, which must be read and not yet changed."""
        wrapper = cst.MetadataWrapper(module, unsafe_skip_copy=True)
        scopes = wrapper.resolve(ScopeProvider)
        positions = wrapper.resolve(PositionProvider)
        outermost = scopes[module]
        if outermost is None:  # a module is in its own scope
            raise AssertionError(module)
        return Names(scopes, positions, outermost.globals)

    def line(self, node: cst.CSTNode) -> int:
        """Return the line that a node of the old text begins on, from 1."""
        return self.positions[node].start.line

    def root(self, node: cst.BaseExpression) -> str:
        """Return what the first name of a dotted expression stands for, dotted, or nothing."""
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
        """Return a dotted expression by its full name, T., R. and I. for TVMScript's dialects."""
        root = self.root(node)
        if not root:
            return ""
        dotted = ".".join([root, *parts(node)[1:]])
        for long, short in SHORT.items():
            if dotted == long or dotted.startswith(f"{long}."):
                return short + dotted.removeprefix(long)
        return dotted

    def bound(self, node: cst.Name) -> bool:
        """Tell whether anything in the text gives this name a value where it is used."""
        scope = self.scopes.get(node) or self.outermost
        return any(isinstance(each, Assignment) for each in scope[node.value])

    def spelled(self, meaning: str, base: cst.BaseExpression | None = None) -> cst.BaseExpression:
        """Write a full name as the text can: from the name it began with, or from its module.

        What the text does not import yet is added to what is wanted.
        """
        if base is not None:
            first, root = parts(base)[0], self.root(base)
            home = _short((moved(root) or (root, 0))[0])
            if meaning.startswith(f"{home}."):
                return dotted(f"{first}{meaning.removeprefix(home)}")
        head, _, rest = meaning.partition(".")
        if head in SHORT.values():
            return dotted(f"{self.alias(head)}.{rest}")
        if head not in self._imported() and not (head in USUAL and not self._imports_tvm()):
            self.wanted.add(head)
        return dotted(meaning)

    def alias(self, short: str) -> str:
        """Return what the text calls a dialect, T, R or I; by that letter when it does not."""
        for name, meaning in self._imported().items():
            if _short(meaning) == short:
                return name
        if self._imports_tvm():
            self.wanted.add(short)
        return short

    def can_spell(self, short: str) -> bool:
        """Tell whether a dialect has a name here, or its usual one is not something else's."""
        return any(_short(home) == short for home in self._imported().values()) or (
            not self.outermost[short]
        )

    def about_tvm(self) -> bool:
        """Tell whether the text has to do with TVM: it imports it, or uses it without imports."""
        return self._imports_tvm() or any(
            USUAL.get(access.node.value, "").startswith("tvm.")
            for scope in {scope for scope in self.scopes.values() if scope is not None}
            for access in scope.accesses
            if isinstance(access.node, cst.Name) and not access.scope[access.node.value]
        )

    def free(self, name: str, taken: Collection[str] = ()) -> str:
        """Return this name, or it with a number when the text uses it for something else."""
        number, found = 1, name
        while found in taken:
            number += 1
            found = f"{name}{number}"
        return found

    def _imported(self) -> dict[str, str]:
        found = {}
        for each in self.outermost.assignments:
            if isinstance(each, ImportAssignment):
                names = each.get_qualified_names_for(each.name)
                found[each.name] = min((one.name for one in names), default="")
        return found

    def _imports_tvm(self) -> bool:
        return any(home.partition(".")[0] == "tvm" for home in self._imported().values())


def parts(node: cst.BaseExpression) -> list[str]:
    """Return a dotted expression's names in order; nothing of what is no such expression."""
    found: list[str] = []
    while isinstance(node, cst.Attribute):
        found.append(node.attr.value)
        node = node.value
    return [*([node.value] if isinstance(node, cst.Name) else []), *reversed(found)]


def dotted(text: str) -> cst.BaseExpression:
    """Return a dotted name as an expression."""
    first, *rest = text.split(".")
    node: cst.BaseExpression = cst.Name(first)
    for name in rest:
        node = cst.Attribute(node, cst.Name(name))
    return node


def _short(meaning: str) -> str:
    return SHORT.get(meaning, meaning)

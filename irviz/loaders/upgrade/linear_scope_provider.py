# ruff: noqa: ARG002, N802
# libcst determines the names and the parameters of a visitor's methods.
"""The scopes of a text, found in time proportional to its length.

libcst's own ScopeProvider also determines which assignment each use of a name may mean: that takes
the number of uses times the number of assignments. It parses strings in annotations as well, and
its parser ends the process when they are nested deeply. Neither is needed here.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
from libcst.helpers import get_full_name_for_node
from libcst.metadata import ExpressionContext, ExpressionContextProvider, ScopeProvider
from libcst.metadata.scope_provider import ScopeVisitor


class LinearScopeProvider(ScopeProvider):
    """Provides the scope of each node, with the assignments in it and without their uses."""

    def visit_Module(self, node: cst.Module) -> bool:
        """Visit a whole module."""
        node.visit(_ScopeVisitor(self))
        return False


class _ScopeVisitor(ScopeVisitor):
    """Records assignments; what libcst does for types and uses is left out."""

    def visit_Call(self, node: cst.Call) -> bool:
        return True

    def leave_Call(self, original_node: cst.Call) -> None:
        pass

    def visit_Subscript(self, node: cst.Subscript) -> bool:
        return True

    def leave_Subscript(self, original_node: cst.Subscript) -> None:
        pass

    def visit_SimpleString(self, node: cst.SimpleString) -> bool:
        return False

    def visit_ConcatenatedString(self, node: cst.ConcatenatedString) -> bool:
        return True

    def visit_Name(self, node: cst.Name) -> None:
        context = self.provider.get_metadata(ExpressionContextProvider, node, None)
        if context == ExpressionContext.STORE:
            self.scope.record_assignment(node.value, node)


def imported_names(statement: cst.CSTNode) -> Iterator[tuple[str, str]]:
    """Yield the names that an import binds, and the full name of what each is.

    `import a.b` binds `a`, and `a.b` as far as libcst's scopes are concerned.
    """
    if not isinstance(statement, cst.Import | cst.ImportFrom):
        return
    if isinstance(statement.names, cst.ImportStar):
        return
    place = ""
    if isinstance(statement, cst.ImportFrom):
        dots = "." * len(statement.relative)
        module = get_full_name_for_node(statement.module) if statement.module else ""
        place = f"{dots}{module}." if module else dots
    for alias in statement.names:
        name = get_full_name_for_node(alias.name) or ""
        if alias.asname is not None:
            if isinstance(alias.asname.name, cst.Name):
                yield alias.asname.name.value, place + name
            continue
        parts = name.split(".")
        for length in range(1, len(parts) + 1):
            prefix = ".".join(parts[:length])
            yield prefix, place + prefix

# ruff: noqa: ARG002, N802
# libcst determines the names and the parameters of a visitor's methods.
"""The scopes of a text, found in linear time.

libcst's own ScopeProvider also determines which assignment each use of a name may mean: that takes
the number of uses times the number of assignments. It parses strings in annotations as well, and
its parser ends the process when they are nested deeply. Neither is needed here.
"""

from __future__ import annotations

import libcst as cst
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

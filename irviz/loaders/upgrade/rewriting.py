# ruff: noqa: ARG002, D102, N802
# What a visitor of libcst is called and given is not for us to choose.
"""The one walk over a text: each node is given to the rules that are for it."""

from __future__ import annotations

import libcst as cst

from irviz.loaders.upgrade import prim_funcs, relax_api, relax_calls, relax_functions, targets
from irviz.loaders.upgrade.imports import upgraded_import
from irviz.loaders.upgrade.moves import SHORT, gone, moved
from irviz.loaders.upgrade.names import Names, parts
from irviz.loaders.upgrade.notes import Note
from irviz.loaders.upgrade.surroundings import Function, function_of


class Rewriting(cst.CSTTransformer):
    """Rewrite a text's nodes from the leaves up; what is left is in `notes`.

    A rule sees the node as it was, by which it knows where and what it is, and as its parts are
    by now.
    """

    def __init__(self, names: Names, *, about_tvm: bool) -> None:
        super().__init__()
        self.notes: list[Note] = []
        self._names = names
        self._about_tvm = about_tvm
        self._owners: list[cst.ClassDef | None] = [None]
        self._functions: list[Function] = []
        self._inner: set[cst.CSTNode] = set()  # parts of dotted names, and words that are no names

    # --- where we are --------------------------------------------------------------------------

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self._inner.add(node.name)
        self._owners.append(node)

    def leave_ClassDef(
        self, original_node: cst.ClassDef, updated_node: cst.ClassDef
    ) -> cst.ClassDef:
        self._owners.pop()
        return updated_node

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._inner.add(node.name)
        self._functions.append(function_of(node, self._names, self._owners[-1]))
        self._owners.append(None)

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        self._owners.pop()
        function = self._functions.pop()
        if function.kind == "relax":
            return relax_functions.begun(updated_node, function)
        return updated_node

    @property
    def _function(self) -> Function | None:
        """The TVMScript function we are in: one of Python's inside of it does not count."""
        return next((each for each in reversed(self._functions) if each.kind), None)

    def _say(self, node: cst.CSTNode) -> relax_calls.Say:
        line = self._names.line(node)
        return lambda what, why: self.notes.append(Note(line, what, why))

    # --- statements ----------------------------------------------------------------------------

    def visit_Import(self, node: cst.Import) -> bool:
        self._note_imports(node)
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        self._note_imports(node)
        return False

    def _note_imports(self, node: cst.Import | cst.ImportFrom) -> None:
        if isinstance(node.names, cst.ImportStar):
            return
        place = (
            ".".join(parts(node.module)) + "."
            if isinstance(node, cst.ImportFrom) and node.module
            else ""
        )
        for alias in node.names:
            name = place + ".".join(parts(alias.name))
            if why := gone(name):
                self._say(node)(name, why)

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.FlattenSentinel[cst.SimpleStatementLine]:
        lines = upgraded_import(updated_node)
        return lines[0] if len(lines) == 1 else cst.FlattenSentinel(lines)

    def leave_Decorator(
        self, original_node: cst.Decorator, updated_node: cst.Decorator
    ) -> cst.Decorator:
        called = original_node.decorator
        target = called.func if isinstance(called, cst.Call) else called
        if self._names.meaning(target) == "T.prim_func" and self._functions[-1].old:
            return prim_funcs.decorator(updated_node)
        return updated_node

    # --- names ---------------------------------------------------------------------------------

    def visit_Attribute(self, node: cst.Attribute) -> None:
        self._inner |= {node.attr, node.value}

    def visit_Param(self, node: cst.Param) -> None:
        self._inner.add(node.name)

    def visit_Arg(self, node: cst.Arg) -> None:
        if node.keyword is not None:
            self._inner.add(node.keyword)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        function = self._function
        if function is None or function.kind != "relax":
            return updated_node
        return relax_functions.name(
            original_node, updated_node, function, self._names, original_node in self._inner
        )

    def leave_Attribute(
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.BaseExpression:
        if original_node in self._inner and not isinstance(original_node.value, cst.Call):
            root = self._names.root(original_node)
            if root:
                return updated_node  # a part of a dotted name: the whole of it is looked at
        meaning = self._names.meaning(original_node)
        if not meaning:
            if self._about_tvm and original_node.attr.value in relax_api.ATTRIBUTES:
                return relax_api.attribute(updated_node)
            return updated_node
        return self._moved(original_node, updated_node, meaning)

    def _moved(self, old: cst.Attribute, new: cst.Attribute, meaning: str) -> cst.BaseExpression:
        if why := gone(meaning):
            self._say(old)(".".join(parts(old)), why)
            return new
        function = self._function
        if function is not None and function.kind == "relax":
            meaning = relax_functions.operator(meaning)
        found = moved(meaning)
        whole = found[0] if found else meaning
        if whole == self._names.meaning(old):
            return new
        head = whole.partition(".")[0]
        if head in SHORT.values() and not self._names.can_spell(head):
            return new
        written = self._names.spelled(whole, old)
        return written.with_changes(lpar=new.lpar, rpar=new.rpar)

    # --- expressions ---------------------------------------------------------------------------

    def leave_Subscript(
        self, original_node: cst.Subscript, updated_node: cst.Subscript
    ) -> cst.BaseExpression:
        if targets.is_metadata(original_node):
            return targets.metadata(updated_node)
        return prim_funcs.subscript(original_node, updated_node, self._names)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        meaning = self._names.meaning(original_node.func)
        if not meaning:
            return self._method(original_node, updated_node)
        function = self._function
        if meaning.startswith("T."):
            return prim_funcs.call(updated_node, meaning, function)
        if function is not None and function.kind == "relax":
            meaning = relax_functions.operator(meaning)
        say = self._say(original_node)
        rule = relax_api.RULES.get(meaning)
        if rule is not None:
            return rule(original_node, updated_node, meaning, self._names, say)
        if meaning.rpartition(".")[0] in relax_calls.PLACES:
            updated_node = relax_calls.call(original_node, updated_node, meaning, self._names, say)
        if meaning.startswith("tvm."):
            return targets.call(original_node, updated_node, meaning, self._names, say)
        return updated_node

    def _method(self, old: cst.Call, new: cst.Call) -> cst.Call:
        if self._about_tvm and isinstance(new.func, cst.Attribute):
            return targets.method(old, new)
        return new

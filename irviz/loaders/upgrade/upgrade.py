# ruff: noqa: ARG002, D102, N802
"""Rewrite Python from an earlier dialect of TVM to the installed one; nothing is run."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace

import libcst as cst

from irviz.loaders.file_limits import UPGRADE_LIMITS
from irviz.loaders.tvmscript.syntax_tree import RefusedError, parse_tree
from irviz.loaders.upgrade import rules
from irviz.loaders.upgrade.dotted_names import (
    AddNote,
    CallSite,
    DottedNames,
    callee,
    keyword,
    parts,
)
from irviz.loaders.upgrade.moved_names import (
    OPERATORS,
    SHORT,
    future_first,
    gone,
    moved,
    new_name,
    rewrite_import,
    unknown_keywords,
    why_missing,
    why_no_operator,
    why_no_program,
    with_imports,
)
from irviz.loaders.upgrade.rules import Function, Owner, every, function_of


@dataclass(frozen=True, order=True)
class Note:
    """Something that was left unchanged: its line (from 1), its words, and the reason.

    `cell` is the notebook cell (from 1) that contains the line, or 0 without cells.
    """

    line: int
    what: str
    why: str
    cell: int = 0

    def __str__(self) -> str:
        place = f"cell {self.cell}, line" if self.cell else "line"
        return f"{place} {self.line}: {self.what}: {self.why}"


@dataclass(frozen=True)
class Upgraded:
    """The text in today's dialect, and notes with the lines of the old text."""

    text: str
    notes: tuple[Note, ...] = ()


def upgrade(source: str, *, futures: bool = True) -> Upgraded:
    """Rewrite Python to the dialect of the installed TVM, keeping comments and layout.

    `futures` tells whether to move `from __future__` imports to the first line, as Python requires.
    Raises RefusedError if the text is not Python, or exceeds a limit.
    """
    module = parse_module(source)
    names = DottedNames.of(module)
    rewriter = Rewriter(names, uses_tvm=names.uses_tvm())
    new = module.visit(rewriter)
    if names.new_imports:
        new = with_imports(new, names.new_imports)
    if futures:
        new = future_first(new)
    return Upgraded(new.code, tuple(sorted(set(rewriter.notes))))


def parse_module(source: str) -> cst.Module:
    """Return a text's concrete syntax tree; raise RefusedError as `parse_tree` does."""
    parse_tree(source, "", UPGRADE_LIMITS)  # first: extreme nesting ends libcst's process
    try:
        return cst.parse_module(source)
    except cst.ParserSyntaxError as failure:
        raise RefusedError("", failure.raw_line, 1, "this is not Python") from failure


def unified_diff(old: str, new: str, name: str) -> str:
    """Return the unified diff of two texts, or "" if they are equal."""
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), name, f"{name} (upgraded)"
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


# --- Walk over a text once and apply the rules to each node --------------------------------------


class Rewriter(cst.CSTTransformer):
    """Rewrites the nodes of a text bottom-up; `notes` lists what could not be rewritten.

    A rule gets the original node, which has a position and a scope, and the node with rewritten
    parts.
    """

    def __init__(self, names: DottedNames, *, uses_tvm: bool) -> None:
        super().__init__()
        self.notes: list[Note] = []
        self._names = names
        self._uses_tvm = uses_tvm
        self._owners: list[Owner | None] = [None]
        self._functions: list[Function] = []
        # parts of dotted names, and identifiers that are not variables
        self._inner: set[cst.CSTNode] = set()
        # names that are looked up in the installed TVM once no rule has replaced them
        self._unknown: dict[cst.CSTNode, Note] = {}
        # functions that are given the operands of `dense` found by its name
        self._dense_functions: set[str] = set()
        self._dense_scopes: list[cst.CSTNode] = []

    def visit_Module(self, node: cst.Module) -> None:
        self._dense_functions = {
            each.value.value
            for each in every(node, cst.DictElement)
            if isinstance(each.value, cst.Name) and rules.names_operator(each.key, rules.DENSE)
        }

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        known = {note.line for note in self.notes}
        self.notes += [note for note in self._unknown.values() if note.line not in known]
        return updated_node

    # --- the enclosing scope -----------------------------------------------------------------

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self._inner.add(node.name)
        self._owners.append(Owner.of(node, self._names))
        strings = every(node, cst.SimpleString)
        if any(rules.names_operator(each, rules.DENSE) for each in strings):
            self._dense_scopes.append(node)

    def leave_ClassDef(
        self, original_node: cst.ClassDef, updated_node: cst.ClassDef
    ) -> cst.ClassDef:
        self._owners.pop()
        self._leave_dense_scope(original_node)
        return updated_node

    def _leave_dense_scope(self, node: cst.CSTNode) -> None:
        if self._dense_scopes and self._dense_scopes[-1] is node:
            self._dense_scopes.pop()

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._inner.add(node.name)
        self._functions.append(function_of(node, self._names, self._owners[-1]))
        self._owners.append(None)
        if node.name.value in self._dense_functions:
            self._dense_scopes.append(node)

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        self._owners.pop()
        self._leave_dense_scope(original_node)
        function = self._functions.pop()
        if function.kind == "relax":
            return rules.with_module_alias(updated_node, function)
        return updated_node

    @property
    def _function(self) -> Function:
        """The enclosing TVMScript function; Python functions inside it do not count."""
        return next((each for each in reversed(self._functions) if each.kind), Function(""))

    def _add_note(self, node: cst.CSTNode) -> AddNote:
        return lambda what, why: self.notes.append(Note(self._names.line(node), what, why))

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
        module = parts(node.module) if isinstance(node, cst.ImportFrom) and node.module else []
        for alias in node.names:
            name = ".".join([*module, *parts(alias.name)])
            if why := gone(name) or why_missing(new_name(name)):
                self._add_note(node)(name, why)

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.FlattenSentinel[cst.SimpleStatementLine]:
        lines = rewrite_import(updated_node)
        return lines[0] if len(lines) == 1 else cst.FlattenSentinel(lines)

    def leave_Decorator(
        self, original_node: cst.Decorator, updated_node: cst.Decorator
    ) -> cst.Decorator:
        target = callee(original_node.decorator)
        if self._names.meaning(target) == "T.prim_func" and self._functions[-1].old:
            return rules.rewrite_decorator(updated_node)
        return updated_node

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> cst.If:
        return updated_node.with_changes(test=self._condition(updated_node.test))

    def leave_IfExp(self, original_node: cst.IfExp, updated_node: cst.IfExp) -> cst.IfExp:
        return updated_node.with_changes(test=self._condition(updated_node.test))

    def _condition(self, test: cst.BaseExpression) -> cst.BaseExpression:
        """Rewrite a condition `self.bias`, which tests for a Relax expression, as a comparison."""
        owner = next((each for each in reversed(self._owners) if each is not None), None)
        if owner is None or owner.expressions.isdisjoint([".".join(parts(test))]):
            return test
        target = cst.ComparisonTarget(cst.IsNot(), cst.Name("None"))
        return cst.Comparison(test, [target])

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
        if function.kind != "relax":
            return updated_node
        return rules.rewrite_name(
            original_node, updated_node, function, self._names, original_node in self._inner
        )

    def leave_Attribute(
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.BaseExpression:
        if original_node in self._inner and self._names.root(original_node):
            return updated_node  # a part of a dotted name, which is rewritten as a whole
        meaning = self._names.meaning(original_node)
        if not meaning:
            if self._uses_tvm and original_node.attr.value in rules.ATTRIBUTES:
                return rules.rewrite_attribute(updated_node)
            return updated_node
        return self._moved(original_node, updated_node, meaning)

    def _moved(self, old: cst.Attribute, new: cst.Attribute, meaning: str) -> cst.BaseExpression:
        if why := gone(meaning):
            self._add_note(old)(".".join(parts(old)), why)
            return new
        if self._function.kind == "relax":
            meaning = rules.tvmscript_name(meaning)
        if self._dense_scopes:
            meaning = rules.DENSE_MATMULS.get(meaning, meaning)
        whole = moved(meaning)
        if why := why_missing(whole):
            self._unknown[old] = Note(self._names.line(old), ".".join(parts(old)), why)
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
        if (new := rules.rewrite_metadata(original_node)) is not None:
            return new
        return rules.rewrite_subscript(original_node, updated_node, self._names)

    def leave_SimpleString(
        self, original_node: cst.SimpleString, updated_node: cst.SimpleString
    ) -> cst.SimpleString:
        text = original_node.evaluated_value
        if not self._uses_tvm or not isinstance(text, str) or not text.startswith("relax."):
            return updated_node
        new = OPERATORS.get(text, text)
        if why := why_no_operator(new):
            self._unknown[original_node] = Note(self._names.line(original_node), text, why)
        return updated_node.with_changes(value=updated_node.value.replace(text, new, 1))

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        named = original_node.func
        if isinstance(named, cst.Call) and named.args and self._uses_tvm:
            if rules.names_operator(named.args[0].value, rules.DENSE):
                site = CallSite(original_node, updated_node, "", self._names, self._add_note(named))
                return rules.rewrite_pattern(site)
            return updated_node
        meaning = self._names.meaning(named)
        if not meaning:
            return rules.rewrite_method(updated_node) if self._uses_tvm else updated_node
        if meaning.startswith("T."):
            new = rules.rewrite_prim_func_call(updated_node, meaning, self._function)
            return self._looked_up(original_node, updated_node, new, meaning)
        if self._function.kind == "relax":
            meaning = rules.tvmscript_name(meaning)
        note = self._add_note(original_node)
        site = CallSite(original_node, updated_node, meaning, self._names, note)
        if self._dense_scopes and meaning in rules.DENSE_MATMULS:
            rules.check_dense(site)
            return updated_node
        new = rules.rewrite_call(site)
        if meaning.startswith("tvm."):
            new = rules.rewrite_python_call(replace(site, new=new))
        return self._looked_up(original_node, updated_node, new, meaning)

    def _looked_up(self, old: cst.Call, same: cst.Call, new: cst.Call, meaning: str) -> cst.Call:
        """Return a call after checking that its names exist, unless a rule has replaced it."""
        if new.func is not same.func:
            self._unknown.pop(old.func, None)
            return new
        if old.args and new.args and new.args[0].value is not same.args[0].value:
            for part in every(old.args[0].value, cst.Attribute):
                self._unknown.pop(part, None)
        called = ".".join(parts(old.func))
        if why := why_no_program(moved(meaning)):
            self._unknown[new] = Note(self._names.line(old), called, why)
        words = [keyword(arg) for arg in new.args if arg.keyword is not None]
        for word in unknown_keywords(moved(meaning), words) if words else ():
            what = f"{called}({word}=…)"
            why = "the installed TVM's function does not take this keyword"
            self._unknown[new] = Note(self._names.line(old), what, why)
        return new

# ruff: noqa: ARG002, D102, N802, N815
"""Rewrite code of an earlier TVM, alone or in a notebook or a chapter; nothing is run."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, product
from pathlib import PurePath
from typing import Any, Final, TypeVar

import libcst as cst

from irviz.errors import LoadError
from irviz.loaders.file_limits import UPGRADE_LIMITS, limits_for
from irviz.loaders.tvmscript.syntax_tree import RefusedError, parse_tree
from irviz.loaders.upgrade import renamed_symbols, rules
from irviz.loaders.upgrade.qualified_names import (
    AddNote,
    CallSite,
    DottedNames,
    callee,
    keyword,
    parts,
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
    names = DottedNames(module)
    rewriter = Rewriter(names)
    new = module.visit(rewriter)
    if names.new_imports:
        new = renamed_symbols.with_imports(new, names.new_imports)
    if futures:
        new = renamed_symbols.future_first(new)
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


_If = TypeVar("_If", cst.If, cst.IfExp)


class Rewriter(cst.CSTTransformer):
    """Rewrites the nodes of a text bottom-up; `notes` lists what could not be rewritten.

    A rule gets the original node, which has a position and a scope, and the node with rewritten
    parts.
    """

    def __init__(self, names: DottedNames) -> None:
        super().__init__()
        self.notes: list[Note] = []
        self._names = names
        self._uses_tvm = names.uses_tvm()
        self._owners: list[Owner | None] = [None]
        self._functions: list[Function] = []
        # parts of dotted names, and keywords of arguments
        self._inner: set[cst.CSTNode] = set()
        # names that are looked up in the installed TVM once no rule has replaced them
        self._unknown: dict[cst.CSTNode, Note] = {}
        # functions that are given the operands of `dense` found by its name
        self._dense_functions: set[str] = set()
        # for the module and each class and function around: whether `dense` is used so in it
        self._in_dense = [False]

    def visit_Module(self, node: cst.Module) -> None:
        self._dense_functions = {
            each.value.value
            for each in every(node, cst.DictElement)
            if isinstance(each.value, cst.Name) and rules.names_dense(each.key)
        }

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        known = {note.line for note in self.notes}
        self.notes += [note for note in self._unknown.values() if note.line not in known]
        return updated_node

    # --- the enclosing scope -----------------------------------------------------------------

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self._owners.append(Owner.of(node, self._names))
        is_dense = any(map(rules.names_dense, every(node, cst.SimpleString)))
        self._in_dense.append(self._in_dense[-1] or is_dense)

    def leave_ClassDef(
        self, original_node: cst.ClassDef, updated_node: cst.ClassDef
    ) -> cst.ClassDef:
        self._owners.pop()
        self._in_dense.pop()
        return updated_node

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._functions.append(function_of(node, self._names, self._owners[-1]))
        self._owners.append(None)
        self._in_dense.append(self._in_dense[-1] or node.name.value in self._dense_functions)

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        self._owners.pop()
        self._in_dense.pop()
        return rules.with_module_alias(updated_node, self._functions.pop())

    @property
    def _function(self) -> Function:
        """The enclosing TVMScript function; Python functions inside it do not count."""
        return next((each for each in reversed(self._functions) if each.kind), Function(""))

    def _add_note(self, node: cst.CSTNode) -> AddNote:
        return lambda what, why: self.notes.append(Note(self._names.line(node), what, why))

    # --- statements ----------------------------------------------------------------------------

    def visit_Import(self, node: cst.Import | cst.ImportFrom) -> bool:
        module = parts(node.module) if isinstance(node, cst.ImportFrom) and node.module else []
        for alias in () if isinstance(node.names, cst.ImportStar) else node.names:
            name = ".".join([*module, *parts(alias.name)])
            if why := renamed_symbols.gone(name) or renamed_symbols.why_missing(
                renamed_symbols.new_name(name)
            ):
                self._add_note(node)(name, why)
        return False

    visit_ImportFrom = visit_Import

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.FlattenSentinel[cst.SimpleStatementLine]:
        lines = renamed_symbols.rewrite_import(updated_node)
        return lines[0] if len(lines) == 1 else cst.FlattenSentinel(lines)

    def leave_Decorator(
        self, original_node: cst.Decorator, updated_node: cst.Decorator
    ) -> cst.Decorator:
        target = callee(original_node.decorator)
        if self._names.meaning(target) == "T.prim_func" and self._functions[-1].old:
            return rules.rewrite_decorator(updated_node)
        return updated_node

    def leave_If(self, original_node: _If, updated_node: _If) -> _If:
        """Rewrite a condition `self.bias`, which tests for a Relax expression, as a comparison."""
        test = updated_node.test
        owner = next((each for each in reversed(self._owners) if each is not None), None)
        if owner is None or owner.expressions.isdisjoint([".".join(parts(test))]):
            return updated_node
        target = cst.ComparisonTarget(cst.IsNot(), cst.Name("None"))
        return updated_node.with_changes(test=cst.Comparison(test, [target]))

    leave_IfExp = leave_If

    # --- names ---------------------------------------------------------------------------------

    def visit_Attribute(self, node: cst.Attribute) -> None:
        self._inner |= {node.attr, node.value}

    def visit_Arg(self, node: cst.Arg) -> None:
        if node.keyword is not None:
            self._inner.add(node.keyword)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        if original_node in self._inner or self._function.kind != "relax":
            return updated_node
        return rules.rewrite_name(original_node, updated_node, self._function, self._names)

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
        if why := renamed_symbols.gone(meaning):
            self._add_note(old)(".".join(parts(old)), why)
            return new
        if self._function.kind == "relax":
            meaning = rules.tvmscript_name(meaning)
        if self._in_dense[-1]:
            meaning = rules.DENSE_MATMULS.get(meaning, meaning)
        whole = renamed_symbols.moved(meaning)
        if why := renamed_symbols.why_missing(whole):
            self._unknown[old] = Note(self._names.line(old), ".".join(parts(old)), why)
        if whole == self._names.meaning(old):
            return new
        head = whole.partition(".")[0]
        if head in renamed_symbols.SHORT.values() and not self._names.can_spell(head):
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
        new = renamed_symbols.operator_name(text)
        if why := renamed_symbols.why_no_operator(new):
            self._unknown[original_node] = Note(self._names.line(original_node), text, why)
        return updated_node.with_changes(value=updated_node.value.replace(text, new, 1))

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        named = original_node.func
        if isinstance(named, cst.Call) and named.args and self._uses_tvm:
            if rules.names_dense(named.args[0].value):
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
        if self._in_dense[-1] and meaning in rules.DENSE_MATMULS:
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
        if why := renamed_symbols.why_no_program(renamed_symbols.moved(meaning)):
            self._unknown[new] = Note(self._names.line(old), called, why)
        words = [keyword(arg) for arg in new.args if arg.keyword is not None]
        for word in (
            renamed_symbols.unknown_keywords(renamed_symbols.moved(meaning), words) if words else ()
        ):
            what = f"{called}({word}=…)"
            why = "the installed TVM's function does not take this keyword"
            self._unknown[new] = Note(self._names.line(old), what, why)
        return new


MEMORY_RATIO: Final = 1000
"""The memory for upgrading a text, in proportion to its size."""
_BYTE_ORDER_MARK: Final = "\ufeff"
_FENCE: Final = re.compile(r"[ \t]*(?P<fence>`{3,}|~{3,})\s*(?P<info>[^`]*)$")
_LANGUAGES: Final = ("", "python", "python3", "py", "ipython", "ipython3", "{.python")
_DIRECTIVE: Final = re.compile(
    r"(?P<space>\s*)\.\. (?:code|code-block|sourcecode):: ?i?python3?\s*$"
)


def upgrade_with_diff(text: str, name: str) -> tuple[Upgraded, str]:
    """Return the result of `upgrade_document` and its unified diff. Runs in the worker."""
    with limits_for(len(text), MEMORY_RATIO):
        result = upgrade_document(text, name)
        return result, unified_diff(text, result.text, name)


def upgrade_document(text: str, name: str) -> Upgraded:
    """Upgrade the code of a script, a notebook or a chapter; prose, outputs and metadata stay.

    The suffix of the name determines the kind of file, and a byte order mark stays. Raises
    LoadError for another kind, or if the file cannot be parsed.
    """
    plain = text.removeprefix(_BYTE_ORDER_MARK)
    suffix = PurePath(name).suffix.lower()
    match suffix:
        case ".py":
            result = _script(plain)
        case ".ipynb":
            result = _notebook(plain)
        case ".md" | ".markdown" | ".rst" | ".txt":
            result = _chapter(plain, suffix)
        case _:
            known = ".ipynb, .markdown, .md, .py, .rst, .txt"
            raise LoadError(f"{name!r} is not a file with code that is known: {known}")
    mark = text[: len(text) - len(plain)]
    return replace(result, text=mark + result.text)


def _script(text: str) -> Upgraded:
    (result,) = upgrade_cells([text])
    if any(note.what == "the cell" for note in result.notes):
        return upgrade(text)  # raises the reason
    return result


def _notebook(text: str) -> Upgraded:
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError) as failure:
        raise LoadError(f"the notebook is not JSON: {failure}") from failure
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise LoadError('the notebook has no "cells"; save it as version 4 with Jupyter')
    layout = _layout(notebook, text)
    sources = {at: code for at, cell in enumerate(cells) if (code := _source(cell)) is not None}
    results = upgrade_cells(list(sources.values()))
    notes = []
    for (at, source), result in zip(sources.items(), results, strict=True):
        notes += [replace(note, cell=at + 1) for note in result.notes]
        if result.text != source:
            lines = isinstance(cells[at]["source"], list)
            cells[at]["source"] = result.text.splitlines(keepends=True) if lines else result.text
    return Upgraded(layout(notebook), tuple(notes))


def _source(cell: Mapping[str, Any]) -> str | None:
    """Return the source of a code cell, and None for another cell."""
    source = cell.get("source") if cell.get("cell_type") == "code" else None
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        return "".join(source)
    return source if isinstance(source, str) else None


def _layout(notebook: object, text: str) -> Callable[[object], str]:
    """Return a function that writes a notebook in this text's layout, or in Jupyter's."""

    def write(value: object, indent: int | str | None, ascii_only: bool, end: str) -> str:
        return json.dumps(value, indent=indent, ensure_ascii=ascii_only) + end

    layouts = product((1, 2, 4, "\t", None), (False, True), ("\n", ""))
    layout = next((one for one in layouts if write(notebook, *one) == text), (1, False, "\n"))
    return lambda value: write(value, *layout)


def _chapter(text: str, suffix: str) -> Upgraded:
    """Upgrade the code in Markdown or reStructuredText; a .txt file may be either.

    Code in a fence without a language is upgraded if it turns out to be Python.
    """
    lines = text.split("\n")
    is_directed = suffix == ".txt" and any(map(_DIRECTIVE.match, lines))
    ranges = _directed(lines) if is_directed or suffix == ".rst" else _fenced(lines)
    if not ranges:
        why = "it has no code between fences or below a code directive"
        return Upgraded(text, (Note(1, "the text", why),))
    cells = [lines[start:end] for start, end, _ in ranges]
    spaces = [_indent(cell) for cell in cells]
    plain = [
        "\n".join(_reindent(cell, space, "")) for cell, space in zip(cells, spaces, strict=True)
    ]
    results = upgrade_cells(plain)
    notes: list[Note] = []
    for at in reversed(range(len(cells))):
        start, end, python = ranges[at]
        if python or results[at].text != plain[at]:
            notes += [replace(note, line=note.line + start) for note in results[at].notes]
        if results[at].text != plain[at]:
            lines[start:end] = _reindent(results[at].text.split("\n"), "", spaces[at])
    return Upgraded("\n".join(lines), tuple(sorted(notes)))


def _reindent(lines: list[str], old: str, new: str) -> list[str]:
    # A line of only spaces keeps them.
    return [new + line.removeprefix(old) if line.strip() else line for line in lines]


def _fenced(lines: list[str]) -> list[tuple[int, int, bool]]:
    """Return the ranges of lines, from 0, between Markdown's fences; and if they are Python's."""
    found, opened, fence, language = [], -1, "", ""
    for number, line in enumerate(lines):
        match = _FENCE.match(line)
        if match is None:
            continue
        if opened < 0:
            opened, fence = number + 1, match["fence"]
            language = (match["info"].split() or [""])[0].lower().rstrip("}")
        elif match["fence"].startswith(fence) and not match["info"]:
            if language in _LANGUAGES and number > opened:
                found.append((opened, number, bool(language)))
            opened = -1
    return found


def _directed(lines: list[str]) -> list[tuple[int, int, bool]]:
    """Return the ranges of lines, from 0, below reStructuredText's `.. code::`; and True."""
    found = []
    for number, line in enumerate(lines):
        match = _DIRECTIVE.match(line)
        if match is None:
            continue
        start = number + 1
        while start < len(lines) and (not lines[start].strip() or lines[start].strip()[0] == ":"):
            start += 1
        end = start
        deeper = f"{match['space']} "
        while end < len(lines) and (not lines[end].strip() or lines[end].startswith(deeper)):
            end += 1
        while end > start and not lines[end - 1].strip():
            end -= 1
        if end > start:
            found.append((start, end, True))
    return found


def _indent(lines: list[str]) -> str:
    spaces = [line[: len(line) - len(line.lstrip())] for line in lines if line.strip()]
    return min(spaces, key=len, default="")


# --- Upgrade the cells of a notebook or a chapter together, as they share their imports ----------


# Lines of a notebook that are not Python: magics, shell commands, questions.
_MAGIC: Final = re.compile(r"\s*(?:[%!?]|[\w., ()]+=\s*[%!](?!=)|[\w.]+\?{1,2}\s*$)")
_CELL_MAGIC: Final = re.compile(r"\s*%%(?!time\b|timeit\b|capture\b|prun\b|tvmscript\b)")


def upgrade_cells(cells: Sequence[str]) -> list[Upgraded]:
    """Upgrade cells that share their names; return one result for each, with its own lines.

    Magics and shell commands are kept; a cell that is not Python is left unchanged with a note.
    """
    mark = _unused_mark(cells)
    masked = [_masked(cell, mark) for cell in cells]
    parts, owners = [], [(0, 0)]  # for each line of the whole, from 1: the cell and its line there
    for index, each in enumerate(masked):
        if isinstance(each, Note):
            continue
        owners.append((index, 0))
        owners += [(index, number) for number in range(1, each.count("\n") + 1)]
        parts.append(f"# {mark} {index}\n{each}")
    whole = upgrade("".join(parts), futures=False)
    texts = re.split(rf"^# {mark} (\d+)\n", whole.text, flags=re.MULTILINE)[1:]
    new = {int(texts[at]): texts[at + 1] for at in range(0, len(texts), 2)}
    notes: dict[int, list[Note]] = {}
    for note in whole.notes:
        index, line = owners[note.line]
        notes.setdefault(index, []).append(replace(note, line=line))
    results = []
    for index, (cell, each) in enumerate(zip(cells, masked, strict=True)):
        if isinstance(each, Note):
            results.append(Upgraded(cell, (each,)))
            continue
        text = _unmasked(new[index], mark)
        if not cell.endswith("\n"):
            text = text.removesuffix("\n")
        results.append(Upgraded(text, tuple(notes.get(index, ()))))
    return results


def mask_magics(cell: str) -> str:
    """Return a cell with `pass` in place of its magics, or unchanged if it is still not Python."""
    masked = _masked(cell, _unused_mark([cell]))
    return cell if isinstance(masked, Note) else masked


def _masked(cell: str, mark: str) -> str | Note:
    """Return a cell with `pass` in place of its magics, or the reason why it is not Python."""
    text = cell if cell.endswith("\n") else f"{cell}\n"
    first = next((line for line in cell.splitlines() if line.strip()), "")
    if _CELL_MAGIC.match(first):
        return Note(1, first.strip().split()[0], "the cell is not Python, so it is left unchanged")
    if (failure := _failure(text)) is None:
        return text
    lines, is_continued, space = text.split("\n"), False, ""
    for index, line in enumerate(lines):
        if is_continued or _MAGIC.match(line):
            if not is_continued:
                space = line[: len(line) - len(line.lstrip())]
            is_continued = line.endswith("\\")
            lines[index] = f"{space}pass  # {mark}:{line}"
    masked = "\n".join(lines)
    if masked == text or _failure(masked) is not None:
        return Note(failure.line, "the cell", f"it is left unchanged; {failure.reason}")
    return masked


def _unmasked(text: str, mark: str) -> str:
    """Return the text of a cell with its magics, and with imports from the future first."""
    if "from __future__" in text:
        text = renamed_symbols.future_first(parse_module(text)).code
    return re.sub(rf"^[ \t]*pass  # {mark}:", "", text, flags=re.MULTILINE)


def _failure(text: str) -> RefusedError | None:
    try:
        parse_module(text)
    except RefusedError as failure:
        return failure
    return None


def _unused_mark(texts: Sequence[str]) -> str:
    marks = (f"irviz{number}" for number in count(1))
    return next(mark for mark in marks if not any(mark in text for text in texts))

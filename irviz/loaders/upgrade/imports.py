"""Rewrite imports of moved names, and add the imports that new names need."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import libcst as cst
from libcst import matchers as m
from libcst.helpers import get_full_name_for_node

from irviz.loaders.upgrade.moved_names import SHORT, moved

Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement
_DIALECTS: Final = {"T": "tirx", "R": "relax", "I": "ir"}


def rewrite_import(line: cst.SimpleStatementLine) -> list[cst.SimpleStatementLine]:
    """Return the lines that import the same objects from today's TVM under the same names."""
    match line.body:
        case [cst.Import(names=names) as statement]:
            return [
                line.with_changes(body=[statement.with_changes(names=list(map(_module, names)))])
            ]
        case [cst.ImportFrom(module=module, names=names, relative=()) as statement] if (
            module is not None and not isinstance(names, cst.ImportStar)
        ):
            return _from(line, statement, module, names)
    return [line]


def _module(alias: cst.ImportAlias) -> cst.ImportAlias:
    name = get_full_name_for_node(alias.name) or ""
    new = new_name(name)
    return alias if new == name else alias.with_changes(name=cst.parse_expression(new))


def _from(
    line: cst.SimpleStatementLine,
    statement: cst.ImportFrom,
    module: cst.CSTNode,
    names: Sequence[cst.ImportAlias],
) -> list[cst.SimpleStatementLine]:
    """Return the lines that import names from the modules that they are in today."""
    old_place = get_full_name_for_node(module)
    by_place: dict[str, list[cst.ImportAlias]] = {}
    for alias in names:
        old = f"{old_place}.{get_full_name_for_node(alias.name)}"
        place, _, name = new_name(old).rpartition(".")
        is_same = f"{place}.{name}" == old
        by_place.setdefault(place, []).append(alias if is_same else _renamed(alias, name))
    if len(by_place) == 1:
        ((place, kept),) = by_place.items()
        new = module if place == old_place else cst.parse_expression(place)
        return [line.with_changes(body=[statement.with_changes(module=new, names=kept)])]
    lines = []
    for place, kept in by_place.items():
        kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        part = statement.with_changes(
            module=cst.parse_expression(place), names=kept, lpar=None, rpar=None
        )
        lines.append(cst.SimpleStatementLine([part]))
    lines[0] = lines[0].with_changes(leading_lines=line.leading_lines)
    lines[-1] = lines[-1].with_changes(trailing_whitespace=line.trailing_whitespace)
    return lines


def _renamed(alias: cst.ImportAlias, name: str) -> cst.ImportAlias:
    # The script's own name for it stays, as every use of it stays too.
    called = alias.asname
    if called is None and isinstance(alias.name, cst.Name) and alias.name.value != name:
        called = cst.AsName(cst.Name(alias.name.value))
    return alias.with_changes(name=cst.Name(name), asname=called)


def new_name(name: str) -> str:
    """Return the full name under which an object is imported today."""
    if name == "tvm.script.tir" or name.startswith("tvm.script.tir."):
        return name.replace("tvm.script.tir", "tvm.script.tirx", 1)
    head, _, rest = moved(name).partition(".")
    return name if head in SHORT.values() else f"{head}.{rest}" if rest else head


def with_imports(module: cst.Module, new: Collection[str]) -> cst.Module:
    """Return a module that also imports these: T, R, I, or modules by full name."""
    body = list(module.body)
    dialects = sorted(set(new) & set(_DIALECTS))
    scripts = [index for index, line in enumerate(body) if _is_from(line, "tvm.script")]
    if scripts and dialects:
        body[scripts[0]] = _extended(body[scripts[0]], dialects)
        dialects = []
    text = [f"import {name}" for name in sorted(set(new) - set(_DIALECTS))]
    if dialects:
        names = ", ".join(f"{_DIALECTS[short]} as {short}" for short in dialects)
        text.append(f"from tvm.script import {names}")
    place = _insertion_index(body)
    for statement in reversed(text):
        line = cst.parse_statement(statement)
        if place < len(body) and not (place and _imports_tvm(body[place - 1])):
            # Comments above the first statement stay at the top.
            first = body[place]
            line = line.with_changes(leading_lines=getattr(first, "leading_lines", ()))
            body[place] = first.with_changes(leading_lines=())
        body.insert(place, line)
    return module.with_changes(body=body)


def _extended(line: Statement, shorts: Sequence[str]) -> Statement:
    """Return a line like `from tvm.script import ir as I` that imports more dialects."""
    assert isinstance(line, cst.SimpleStatementLine)
    (statement,) = line.body
    assert isinstance(statement, cst.ImportFrom)
    assert not isinstance(statement.names, cst.ImportStar)
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    *names, last = statement.names
    for short in shorts:
        names.append(last.with_changes(comma=comma))
        last = cst.ImportAlias(
            cst.Name(_DIALECTS[short]), cst.AsName(cst.Name(short)), comma=last.comma
        )
    return line.with_changes(body=[statement.with_changes(names=[*names, last])])


def _is_from(line: cst.CSTNode, module: str) -> bool:
    """Tell whether a line imports names from a module, and nothing else."""
    one_import = m.SimpleStatementLine([m.ImportFrom(names=[m.ZeroOrMore()])])
    return m.matches(line, one_import) and _imported(line) == [module]


def _imported(line: cst.CSTNode) -> list[str]:
    """Return the modules that a line imports, or imports from."""
    nodes: list[cst.CSTNode] = []
    for statement in line.body if isinstance(line, cst.SimpleStatementLine) else ():
        if isinstance(statement, cst.Import):
            nodes += [alias.name for alias in statement.names]
        elif isinstance(statement, cst.ImportFrom) and statement.module and not statement.relative:
            nodes.append(statement.module)
    return [get_full_name_for_node(node) or "" for node in nodes]


def _imports_tvm(line: cst.CSTNode) -> bool:
    return any(name.partition(".")[0] == "tvm" for name in _imported(line))


def _insertion_index(body: Sequence[cst.CSTNode]) -> int:
    for index, line in enumerate(body):
        if _imports_tvm(line):
            return index + 1
    place = 0
    while place < len(body) and (
        (place == 0 and _is_docstring(body[0])) or _is_from(body[place], "__future__")
    ):
        place += 1
    return place


def _is_docstring(line: cst.CSTNode) -> bool:
    string = m.SimpleString() | m.ConcatenatedString()
    return m.matches(line, m.SimpleStatementLine([m.Expr(string), m.ZeroOrMore()]))


def future_first(module: cst.Module) -> cst.Module:
    """Return a module whose `from __future__` imports come first, as Python requires."""
    body = list(module.body)
    start = 1 if body and _is_docstring(body[0]) else 0
    while start < len(body) and _is_from(body[start], "__future__"):
        start += 1
    late = [line for line in body[start:] if _is_from(line, "__future__")]
    if not late:
        return module
    rest = [line for line in body[start:] if not _is_from(line, "__future__")]
    return module.with_changes(body=[*body[:start], *late, *rest])

"""Upgrade files with code: scripts, notebooks, and chapters of prose with code between."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import PurePath
from typing import Any, Final

from irviz.errors import LoadError
from irviz.loaders.file_limits import memory_for
from irviz.loaders.tvmscript.syntax_tree import RefusedError
from irviz.loaders.upgrade.moved_names import future_first
from irviz.loaders.upgrade.upgrade import Note, Upgraded, parse_module, unified_diff, upgrade

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
    with memory_for(len(text), MEMORY_RATIO):
        result = upgrade_document(text, name)
        return result, unified_diff(text, result.text, name)


def upgrade_document(text: str, name: str) -> Upgraded:
    """Upgrade the code of a script, a notebook or a chapter; prose, outputs and metadata stay.

    The suffix of the name determines the kind of file, and a byte order mark stays. Raises
    LoadError for another kind, or if the file cannot be parsed.
    """
    plain = text.removeprefix(_BYTE_ORDER_MARK)
    result = _upgraded(plain, name)
    mark = "" if plain is text else _BYTE_ORDER_MARK
    return replace(result, text=mark + result.text)


def _upgraded(text: str, name: str) -> Upgraded:
    suffix = PurePath(name).suffix.lower()
    match suffix:
        case ".py":
            return _script(text)
        case ".ipynb":
            return _notebook(text)
        case ".md" | ".markdown" | ".rst" | ".txt":
            return _chapter(text, suffix)
    known = ".ipynb, .markdown, .md, .py, .rst, .txt"
    raise LoadError(f"{name!r} is not a file with code that is known: {known}")


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
    mark = _unused("irviz", cells)
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
    masked = _masked(cell, _unused("irviz", [cell]))
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
        text = future_first(parse_module(text)).code
    return re.sub(rf"^[ \t]*pass  # {mark}:", "", text, flags=re.MULTILINE)


def _failure(text: str) -> RefusedError | None:
    try:
        parse_module(text)
    except RefusedError as failure:
        return failure
    return None


def _unused(word: str, texts: Sequence[str]) -> str:
    number = 1
    while any(f"{word}{number}" in text for text in texts):
        number += 1
    return f"{word}{number}"

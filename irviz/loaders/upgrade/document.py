"""Upgrade files with code: scripts, notebooks, and chapters of prose with code between."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from pathlib import PurePath
from typing import Any, Final

from irviz.errors import LoadError
from irviz.loaders.upgrade.cells import upgrade_cells
from irviz.loaders.upgrade.notes import Note, Upgraded
from irviz.loaders.upgrade.upgrade import upgrade

_FENCE: Final = re.compile(r"[ \t]*(?P<fence>`{3,}|~{3,})\s*(?P<info>[^`]*)$")
_LANGUAGES: Final = ("", "python", "python3", "py", "ipython", "ipython3", "{.python")
_DIRECTIVE: Final = re.compile(
    r"(?P<space>\s*)\.\. (?:code|code-block|sourcecode):: ?i?python3?\s*$"
)


def upgrade_document(text: str, name: str) -> Upgraded:
    """Upgrade the code of a script, a notebook or a chapter; prose, outputs and metadata stay.

    Args:
        text: The file's text.
        name: The file's name, whose suffix determines its kind.

    Returns:
        The new text, and notes with lines of the file or of the notebook's cell.

    Raises:
        LoadError: If the file is of another kind, or cannot be parsed.
    """
    suffix = PurePath(name).suffix.lower()
    if suffix not in _KINDS:
        known = ", ".join(sorted(_KINDS))
        raise LoadError(f"{name!r} is not a file with code that is known: {known}")
    return _KINDS[suffix](text)


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
    places = [at for at, cell in enumerate(cells) if _is_code(cell)]
    results = upgrade_cells([_source(cells[at]) for at in places])
    notes = []
    for at, result in zip(places, results, strict=True):
        notes += [replace(note, cell=at + 1) for note in result.notes]
        if result.text != _source(cells[at]):
            lines = isinstance(cells[at]["source"], list)
            cells[at]["source"] = result.text.splitlines(keepends=True) if lines else result.text
    return Upgraded(layout(notebook), tuple(notes))


def _is_code(cell: Mapping[str, Any]) -> bool:
    source = cell.get("source")
    return cell.get("cell_type") == "code" and (
        isinstance(source, str)
        or (isinstance(source, list) and all(isinstance(line, str) for line in source))
    )


def _source(cell: Mapping[str, Any]) -> str:
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)


def _layout(notebook: object, text: str) -> Callable[[object], str]:
    """Return a function that writes a notebook in this text's layout, or in Jupyter's."""

    def writer(indent: int | str | None, ascii_only: bool, end: str) -> Callable[[object], str]:
        return lambda value: json.dumps(value, indent=indent, ensure_ascii=ascii_only) + end

    layouts = product((1, 2, 4, "\t", None), (False, True), ("\n", ""))
    for write in (writer(*each) for each in layouts):
        if write(notebook) == text:
            return write
    return writer(1, False, "\n")


def _markdown(text: str) -> Upgraded:
    return _chapter(text, _fenced(text.split("\n")))


def _restructured(text: str) -> Upgraded:
    return _chapter(text, [(*each, True) for each in _directed(text.split("\n"))])


def _either(text: str) -> Upgraded:
    directed = any(_DIRECTIVE.match(line) for line in text.split("\n"))
    return _restructured(text) if directed else _markdown(text)


def _chapter(text: str, ranges: list[tuple[int, int, bool]]) -> Upgraded:
    """Upgrade ranges of lines, from 0; the third value tells whether one is declared as Python.

    Other ranges are upgraded if they turn out to be Python.
    """
    if not ranges:
        why = "it has no code between fences or below a code directive"
        return Upgraded(text, (Note(1, "the text", why),))
    lines = text.split("\n")
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
    """Return the ranges of lines, from 0, between Markdown's fences."""
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


def _directed(lines: list[str]) -> list[tuple[int, int]]:
    """Return the ranges of indented lines, from 0, below reStructuredText's `.. code::`."""
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
            found.append((start, end))
    return found


def _indent(lines: list[str]) -> str:
    spaces = [line[: len(line) - len(line.lstrip())] for line in lines if line.strip()]
    return min(spaces, key=len, default="")


_KINDS: Final[Mapping[str, Callable[[str], Upgraded]]] = {
    ".py": _script,
    ".ipynb": _notebook,
    ".md": _markdown,
    ".markdown": _markdown,
    ".rst": _restructured,
    ".txt": _either,
}

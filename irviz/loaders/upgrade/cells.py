"""Cells of a notebook or a chapter: upgraded together, for an import serves all that follow it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from irviz.loaders.upgrade.imports import future_first
from irviz.loaders.upgrade.notes import Note, Upgraded
from irviz.loaders.upgrade.readable import NotPython, read
from irviz.loaders.upgrade.upgrade import upgraded

# What a notebook's line may be besides Python: a magic, a command of the shell, a question.
_MAGIC: Final = re.compile(r"\s*(?:[%!?]|[\w., ()]+=\s*[%!](?!=)|[\w.]+\?{1,2}\s*$)")
_WHOLE: Final = re.compile(r"\s*%%(?!time\b|timeit\b|capture\b|prun\b|tvmscript\b)")
_FUTURE: Final = "from __future__"


def upgraded_cells(cells: Sequence[str]) -> list[Upgraded]:
    """Upgrade cells that share their names; return one result for each, its lines its own.

    Magics and lines for the shell are kept; a cell that is not Python is left whole and noted.
    """
    mark = _unused("irviz", cells)
    masked = [_masked(cell, mark) for cell in cells]
    parts, owners = [], [(0, 0)]  # of each line of the whole, from 1: the cell and the line in it
    for index, each in enumerate(masked):
        if isinstance(each, Note):
            continue
        owners.append((index, 0))
        owners += [(index, number) for number in range(1, each.count("\n") + 1)]
        parts.append(f"# {mark} {index}\n{each}")
    whole = upgraded("".join(parts), futures=False)
    texts = re.split(rf"^# {mark} (\d+)\n", whole.text, flags=re.MULTILINE)[1:]
    new = {int(texts[place]): texts[place + 1] for place in range(0, len(texts), 2)}
    notes: dict[int, list[Note]] = {}
    for note in whole.notes:
        index, line = owners[note.line]
        notes.setdefault(index, []).append(replace(note, line=line))
    results = []
    for index, (cell, each) in enumerate(zip(cells, masked, strict=True)):
        if isinstance(each, Note):
            results.append(Upgraded(cell, (each,)))
            continue
        text = _unmasked(_futures(new[index]), mark)
        if not cell.endswith("\n"):
            text = text.removesuffix("\n")
        results.append(Upgraded(text, tuple(notes.get(index, ()))))
    return results


def python_of(cell: str) -> str:
    """Return a cell with a `pass` where its magics are; as it is when it is no Python even so."""
    masked = _masked(cell, _unused("irviz", [cell]))
    return cell if isinstance(masked, Note) else masked


def _masked(cell: str, mark: str) -> str | Note:
    """Return a cell as Python, with a `pass` where its magics are; or why it is none."""
    text = cell if cell.endswith("\n") else f"{cell}\n"
    first = next((line for line in cell.splitlines() if line.strip()), "")
    if _WHOLE.match(first):
        return Note(1, first.strip().split()[0], "the cell is not Python, so it is left")
    if (failure := _failure(text)) is None:
        return text
    lines, goes_on, space = text.split("\n"), False, ""
    for index, line in enumerate(lines):
        if goes_on or _MAGIC.match(line):
            if not goes_on:
                space = line[: len(line) - len(line.lstrip())]
            goes_on = line.endswith("\\")
            lines[index] = f"{space}pass  # {mark}:{line}"
    masked = "\n".join(lines)
    if masked == text or _failure(masked) is not None:
        return Note(failure.line, "the cell", f"it is left; {failure.why}")
    return masked


def _unmasked(text: str, mark: str) -> str:
    return re.sub(rf"^[ \t]*pass  # {mark}:", "", text, flags=re.MULTILINE)


def _failure(text: str) -> NotPython | None:
    try:
        read(text)
    except NotPython as failure:
        return failure
    return None


def _futures(text: str) -> str:
    return future_first(read(text)).code if _FUTURE in text else text


def _unused(word: str, texts: Sequence[str]) -> str:
    number = 1
    while any(f"{word}{number}" in text for text in texts):
        number += 1
    return f"{word}{number}"

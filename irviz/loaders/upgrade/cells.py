"""Upgrade the cells of a notebook or a chapter together, as they share their imports."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from irviz.loaders.tvmscript.syntax_tree import RefusedError
from irviz.loaders.upgrade.imports import future_first
from irviz.loaders.upgrade.upgrade import parse_module, upgrade
from irviz.loaders.upgrade.upgrade_result import Note, Upgraded

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

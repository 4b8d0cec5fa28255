"""Sentences of docstrings: the first one, and the first one about each parameter."""

from __future__ import annotations

import inspect
import itertools
import re

_SECTION = re.compile(r"-{3,}\s*")
_PARAMETER = re.compile(r"(\w+)\s*:")
_SENTENCE_END = re.compile(r"(?<!i\.e)(?<!e\.g)[.:!?](?=\s|$)")


def first_sentence(value: object) -> str:
    """Return the first sentence of an object's docstring, which may go on over several lines."""
    return _sentence((inspect.getdoc(value) or "").strip())


def parameter_sentences(value: object) -> dict[str, str]:
    """Return the first sentence about each parameter of a NumPy-style docstring."""
    lines = (inspect.getdoc(value) or "").splitlines()
    found: dict[str, list[str]] = {}
    name = ""
    for line in _section(lines, "Parameters"):
        match = None if line.startswith((" ", "\t")) else _PARAMETER.match(line)
        if match:
            name = match[1]
            found[name] = []
        elif name and not line.startswith((" ", "\t")) and line.strip():
            name = ""  # a note, not a parameter
        elif name:
            found[name].append(line.strip())
    return {name: _sentence("\n".join(text).strip()) for name, text in found.items()}


def _section(lines: list[str], title: str) -> list[str]:
    """Return the lines below an underlined title, up to the next such title."""
    starts = [
        index
        for index, (line, below) in enumerate(itertools.pairwise(lines))
        if line.strip() and not line.startswith(" ") and _SECTION.fullmatch(below)
    ]
    ends = [*starts[1:], len(lines)]
    for start, end in zip(starts, ends, strict=False):
        if lines[start].strip() == title:
            return lines[start + 2 : end]
    return []


def _sentence(text: str) -> str:
    """Return the first sentence of a text, joined into one line."""
    paragraph = text.partition("\n\n")[0]
    first, _, rest = paragraph.partition("\n")
    words = [first.strip()]
    for line in rest.splitlines():
        if words[-1].endswith((".", ":", "!", "?")) and not words[-1].endswith(("i.e.", "e.g.")):
            break
        end = _SENTENCE_END.search(line)
        words.append((line[: end.end()] if end else line).strip())
    return " ".join(word for word in words if word)

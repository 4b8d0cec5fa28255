"""Sentences of docstrings: the first one, and the first one about each parameter."""

from __future__ import annotations

import inspect
import re

_SECTION = re.compile(
    r"^Parameters *\n-{3,}\s*\n(.*?)(?=^\S[^\n]*\n-{3,}[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)
_PARAMETER = re.compile(r"^(\w+)\s*:.*\n((?:[ \t].*\n|\n)*)", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<!i\.e)(?<!e\.g)[.:!?](?=\s|$)")


def first_sentence(value: object) -> str:
    """Return the first sentence of an object's docstring, which may go on over several lines."""
    return _sentence((inspect.getdoc(value) or "").strip())


def parameter_sentences(value: object) -> dict[str, str]:
    """Return the first sentence about each parameter of a NumPy-style docstring."""
    section = _SECTION.search(f"{inspect.getdoc(value) or ''}\n")
    return {
        name: _sentence(inspect.cleandoc(text))
        for name, text in _PARAMETER.findall(section[1] if section else "")
    }


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

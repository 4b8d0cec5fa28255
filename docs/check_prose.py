"""Check the style of the documentation: `python docs/check_prose.py FILE...`.

Vale is not used because its Python package downloads a program when it is first run.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

WORDS_IN_A_SENTENCE = 40
BANNED = {
    "vague": "actually basically easily etc just obviously powerful quite really seamless "
    "seamlessly simply various very",
    "an abbreviation": "approx aka cf e.g i.e incl resp vs w/ w/o",
    "inflated": "leverage leverages utilize utilizes facilitate facilitates",
}
_KINDS = {word: kind for kind, words in BANNED.items() for word in words.split()}
_HIDDEN = re.compile(r"^```.*?^```$|<!--.*?-->|<[^>]*>", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_CODE = re.compile(r"`[^`]*`")
_ITEM = re.compile(r"\s*(?:[-*]|\d+\.) ")
_END = re.compile(r"(?<=[.!?;:])\s+")
_WORD = re.compile(r"[\w'./-]*\w/?")


def findings(path: Path) -> Iterator[str]:
    """Return what is wrong with the prose of a Markdown file, each with its line."""
    for line, text in paragraphs(path.read_text(encoding="utf-8")):
        where = f"{path}:{line}:"
        if text[-1] not in ".:;,?!)":
            yield f"{where} ends without a full stop: {text[-40:]!r}; write a sentence"
        for sentence in _END.split(text):
            words = _WORD.findall(sentence)
            if len(words) > WORDS_IN_A_SENTENCE:
                yield (
                    f"{where} a sentence of {len(words)} words, more than {WORDS_IN_A_SENTENCE}: "
                    f"{sentence[:60]!r}; make two of it"
                )
            for word in words:
                if kind := _KINDS.get(word.lower().rstrip(".")):
                    yield f"{where} {word!r} is {kind}: leave it out, or say what is meant"


def paragraphs(markdown: str) -> Iterator[tuple[int, str]]:
    """Return paragraphs and items of lists with their lines; no code, tables and headings."""
    hidden = _HIDDEN.sub(lambda found: "\n" * found[0].count("\n"), markdown)
    start, lines = 0, []
    for number, line in enumerate([*hidden.splitlines(), ""], start=1):
        new = not line.strip() or line.startswith(("#", "|")) or _ITEM.match(line)
        if new and lines:
            yield start, _CODE.sub("code", _LINK.sub(r"\1", " ".join(lines)))
            lines = []
        if line.strip() and not line.startswith(("#", "|", ":::", "![")):
            start = start if lines else number
            lines.append(_ITEM.sub("", line, count=1).strip())


def main() -> None:
    """Print the findings of all files; exit with 1 if there are any."""
    found = [one for name in sys.argv[1:] for one in findings(Path(name))]
    sys.exit("\n".join(found) or None)


if __name__ == "__main__":
    main()

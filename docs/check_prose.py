"""Check the style of Markdown, docstrings and notebooks: `python docs/check_prose.py PATH...`.

Of a folder, all files of these kinds are checked.

Vale is not used because its Python package downloads a program when it is first run.
"""

from __future__ import annotations

import ast
import json
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
_KINDS_OF_FILES = (".md", ".py", ".ipynb")
_HIDDEN = re.compile(r"\A---$.*?^---$|^```.*?^```$|<!--.*?-->|<[^>]*>", re.DOTALL | re.MULTILINE)
_EXAMPLE = re.compile(r"^ *>>> .*(\n *[^\s>].*)*", re.MULTILINE)
_SECTION = re.compile(r"^ *(Args|Attributes|Raises|Returns|Yields|Examples?):$", re.MULTILINE)
_ENTRY = re.compile(r"^ +\*{0,2}[\w.]+: ", re.MULTILINE)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_CODE = re.compile(r"`[^`]*`")
_ITEM = re.compile(r"\s*(?:[-*]|\d+\.) ")
_END = re.compile(r"(?<=[.!?;:])\s+")
_WORD = re.compile(r"[\w'./-]*\w/?")


def findings(path: Path) -> Iterator[str]:
    """Return what is wrong with the prose of a file, each with its line."""
    for line, text in prose(path):
        where = f"{path}:{line}:"
        if path.suffix == ".md" and "reference" not in path.parts and text[-1] not in ".:;,?!)":
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


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Return the paragraphs of a file with their lines; of a notebook with their cells."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        for line, docstring in docstrings(text):
            for at, paragraph in paragraphs(docstring):
                yield line + at - 1, paragraph
    elif path.suffix == ".ipynb":
        for number, cell in enumerate(json.loads(text)["cells"], start=1):
            if cell["cell_type"] == "markdown":
                for _, paragraph in paragraphs("".join(cell["source"])):
                    yield number, paragraph
    else:
        yield from paragraphs(text)


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Return the docstrings of a Python file with their lines, also those below constants.

    The sections of a docstring are paragraphs of their own, and so are their entries; the lines of
    an example are none.
    """
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(ast.Constant(str(text))):
                yield node.lineno, _SECTION.sub("", _ENTRY.sub("- ", _EXAMPLE.sub("", text)))


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


def files(path: Path) -> list[Path]:
    """Return the files to check of a folder, or a file itself."""
    if path.is_file():
        return [path]
    hidden = {"node_modules", ".ipynb_checkpoints"}
    found = (one for kind in _KINDS_OF_FILES for one in path.rglob(f"*{kind}"))
    return sorted(one for one in found if hidden.isdisjoint(one.parts))


def main() -> None:
    """Print the findings of all files; exit with 1 if there are any."""
    found = [one for name in sys.argv[1:] for file in files(Path(name)) for one in findings(file)]
    sys.exit("\n".join(found) or None)


if __name__ == "__main__":
    main()

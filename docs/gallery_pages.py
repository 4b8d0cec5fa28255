"""The gallery: a thumbnail and a page for each picture that `gallery/gallery.toml` lists."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

from docs.notebook_pages import fenced

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs/gallery"
MARK = "<!-- gallery -->"


@dataclass(frozen=True)
class Entry:
    """A picture with its code.

    Attributes:
        name: The name of its page.
        words: What it shows, as Markdown.
        picture: Its file, from `docs/gallery`.
        is_drawn: Whether the build draws it, and does not take it from `assets`.
    """

    name: str
    title: str
    words: str
    code: str
    language: str
    picture: str
    is_drawn: bool = False


@dataclass(frozen=True)
class Section:
    """Some entries below a heading; `has_notebooks`: the notebooks follow them."""

    title: str
    entries: tuple[Entry, ...]
    has_notebooks: bool


def read_sections() -> list[Section]:
    """Return what the gallery shows, in order."""
    data = tomllib.loads((FOLDER / "gallery.toml").read_text(encoding="utf-8"))
    return [
        Section(one["title"], tuple(_entries(one)), one.get("notebooks", False))
        for one in data["section"]
    ]


def index_page(text: str, sections: list[Section], notebooks: Mapping[str, tuple[str, str]]) -> str:
    """Return the page of the thumbnails; notebooks have a title and a picture by their names."""
    return text.replace(MARK, "\n\n".join(_thumbnails(one, notebooks) for one in sections))


def entry_page(entry: Entry, *, has_explorer: bool, text: str) -> str:
    """Return the page of an entry, with the text that it printed, if any."""
    parts = [
        "---\nhide: [navigation, toc]\n---",
        f"[← Gallery](index.md)\n\n# {entry.title}",
        entry.words,
        f"[![{entry.title}]({entry.picture})]({entry.picture}){{.entry}}",
    ]
    if has_explorer:
        explorer = f"../explorers/{entry.name}.html"
        parts.append(f"[Open it in the explorer]({explorer}){{.md-button .md-button--primary}}")
    parts.append(f"```{entry.language}\n{entry.code.strip()}\n```")
    if text:
        parts += ["It prints:", fenced(text)]
    return "\n\n".join(parts) + "\n"


def _entries(section: Mapping[str, Any]) -> Iterator[Entry]:
    for name, picture in section.get("screenshots", {}).items():
        example = _example(FOLDER / f"{name}.py")
        yield replace(example, picture=f"../../assets/{picture}", is_drawn=False)
    for name in section.get("examples", ()):
        yield _example(FOLDER / f"{name}.py")
    for name, title in section.get("figures", {}).items():
        yield _figure(name, title)
    for name, title in section.get("models", {}).items():
        code = (ROOT / "assets/models.py").read_text(encoding="utf-8")
        words = "Drawn from the model in PyTorch, with random weights."
        yield Entry(name, title, words, code, "python", f"../../assets/{name}.svg")


def _example(path: Path) -> Entry:
    source = path.read_text(encoding="utf-8")
    title, _, words = (ast.get_docstring(ast.parse(source)) or "").partition("\n")
    code = source.split('"""', 2)[2]
    name = path.stem
    return Entry(
        name, title.rstrip("."), words.strip(), code, "python", f"{name}.svg", is_drawn=True
    )


def _figure(name: str, title: str) -> Entry:
    declaration = _declaration(name)
    program = tomllib.loads(declaration)["figure"][0]["program"]
    words = f"Drawn from `{program}` by `irviz figures`, as it is declared below."
    code, language = declaration, "toml"
    if 'kind = "picture"' in declaration:
        words, language = f"Drawn by `{program}`.", "python"
        code = _function(*program.split(":"))
    return Entry(name, title, words, code, language, f"../../assets/figures/{name}.svg")


def _declaration(name: str) -> str:
    """Return the table of a figure; that of `schedule-3` is `schedule`, which draws several."""
    text = (ROOT / "figures.toml").read_text(encoding="utf-8")
    tables = [f"[[figure]]{one}".partition("\n\n")[0] for one in text.split("[[figure]]")[1:]]
    named = {tomllib.loads(one)["figure"][0]["name"]: one for one in tables}
    return named.get(name) or named[name.rpartition("-")[0]]


def _function(module: str, name: str) -> str:
    """Return the source of a function, and of those of its module that it calls."""
    source = (ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
    body = ast.parse(source).body
    functions = {one.name: one for one in body if isinstance(one, ast.FunctionDef)}
    called = [one.id for one in ast.walk(functions[name]) if isinstance(one, ast.Name)]
    wanted = dict.fromkeys([name, *(one for one in called if one in functions)])
    return "\n\n\n".join(ast.get_source_segment(source, functions[one]) or "" for one in wanted)


def _thumbnails(section: Section, notebooks: Mapping[str, tuple[str, str]]) -> str:
    cards = [_card(one.title, f"{one.name}.html", one.picture) for one in section.entries]
    if section.has_notebooks:
        cards += [
            _card(title, f"../../notebooks/{name}.html", f"../../notebooks/{picture}")
            for name, (title, picture) in notebooks.items()
        ]
    return f'## {section.title}\n\n<div class="gallery">\n{"".join(cards)}</div>'


def _card(title: str, page: str, picture: str) -> str:
    return (
        f'<a href="{escape(page)}"><img src="{escape(picture)}" alt="" loading="lazy">'
        f"<span>{escape(title.replace('`', ''))}</span></a>\n"
    )

"""The build of the documentation: which files are pages, notebooks as text, diagrams as SVG."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import mermaidx
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

ROOT = Path(__file__).parents[1]
PUBLISHED = (
    "*.md",
    "LICENSE",
    "assets/*.png",
    "assets/**/*.svg",
    "bench/*.md",
    "docs/**/*.md",
    "docs/*.css",
    "docs/*.js",
)
NOTEBOOKS = sorted(ROOT.glob("notebooks/*.ipynb"))
_DIAGRAM = re.compile(r"^```mermaid\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
_REQUEST = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*=[\"']?(?:https?:)?//[^>]*>")
_NOTEBOOK_LINK = re.compile(r"(\]\([^)\s]*)\.ipynb\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the notebooks into the navigation, before the reference."""
    pages = [f"notebooks/{path.stem}.md" for path in NOTEBOOKS]
    config.nav.insert(2, {"Notebooks": pages})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Return the files of the whole repository that are published, by their path in it."""
    published = [
        File(str(path.relative_to(ROOT)), str(ROOT), config.site_dir, config.use_directory_urls)
        for pattern in PUBLISHED
        for path in sorted(ROOT.glob(pattern))
    ]
    notebooks = [
        File.generated(config, f"notebooks/{path.stem}.md", content=notebook_as_markdown(path))
        for path in NOTEBOOKS
    ]
    theme = [file for file in files if file.src_dir != config.docs_dir]
    return Files([*theme, *published, *notebooks])


def on_page_markdown(markdown: str, **_: object) -> str:
    """Return a page's text with drawn diagrams, and links to notebooks as links to their pages."""
    return _NOTEBOOK_LINK.sub(r"\1.md)", _DIAGRAM.sub(_drawn, markdown))


def on_post_page(output: str, *, page: Page, **_: object) -> str:
    """Return a page that loads nothing from the web; raise PluginError if it would."""
    own = get_relative_url("docs/worker_in_frame.js", page.url)
    html = output.replace("https://unpkg.com/iframe-worker/shim", own)
    if request := _REQUEST.search(html):
        raise PluginError(f"{page.file.src_uri} would load something from the web: {request[0]}")
    return html


def notebook_as_markdown(path: Path) -> str:
    """Return the cells of a notebook, below its title a note that it is stored without outputs."""
    title, *cells = _cells(json.loads(path.read_text(encoding="utf-8")))
    note = (
        f"!!! note\n    This is `notebooks/{path.name}`. Run it in JupyterLab to see its outputs."
    )
    heading, _, rest = title.partition("\n")
    return "\n\n".join([heading, note, rest, *cells])


def _cells(notebook: dict) -> Iterator[str]:
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        yield source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```"


def _drawn(block: re.Match[str]) -> str:
    """Return a diagram as SVG: drawn here, because the page would load the program from the web."""
    svg = mermaidx.render(block[1]).svg().replace("my-svg", f"diagram-{block.start()}")
    return f'<figure class="diagram" markdown="0">{svg}</figure>\n'

"""The build of the documentation: which files are pages, what is executed, diagrams as SVG."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import mermaidx
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # mkdocs may find another irviz, which is installed

from docs import gallery_pages, notebook_pages, option_tables  # noqa: E402
from docs.notebook_pages import COURSE, NotebookPage  # noqa: E402
from irviz.view.theme import dark_where_the_page_is  # noqa: E402

PUBLISHED = (
    "*.md",
    "LICENSE",
    "assets/*.png",
    "bench/*.md",
    "docs/**/*.md",
    "docs/*.css",
    "docs/*.js",
    "notebooks/*.ipynb",
)
_PLACES = {"docs/index.md": "index.html", "README.md": "overview.html"}
"""The pages that are elsewhere than their files."""
_DIAGRAM = re.compile(r"^```mermaid\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
_REQUEST = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*=[\"']?(?:https?:)?//[^>]*>")
_RULE = re.compile(r"([^{}]+)\{[^{}]*\}")
_WORD, _CLASS, _NOT = (
    re.compile(one) for one in (r"[\w-]+", r"\.([A-Za-z][\w-]*)", r":not\([^)]*\)")
)
_THEME = re.compile(r"<script src=(\S+/bundle\.\S+)></script>")
_THEME_LATER = r"""<script>
  addEventListener("DOMContentLoaded", () => {
    const load = () => {
      painted.disconnect();
      clearTimeout(timer);
      const theme = Object.assign(document.createElement("script"), {src: \1});
      theme.onload = () => document$.next(document);
      document.body.append(theme);
    };
    const painted = new PerformanceObserver(load);
    painted.observe({type: "paint", buffered: true});
    const timer = setTimeout(load, 2000);
  });
</script>"""
"""It loads the search index, too: the words are shown before, or after two seconds at most.

The theme waits for DOMContentLoaded, which has been by then, so it is told by its own `document$`.
"""
_NOTEBOOK_LINK = re.compile(r"(\]\([^)\s]*)\.ipynb\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the notebooks and their solutions into the navigation, before the reference."""
    pages = [*(f"notebooks/{name}.md" for name in COURSE), "docs/solutions.md"]
    nav = list(config.nav or ())
    titles = [next(iter(one)) for one in nav]
    nav.insert(titles.index("Reference"), {"Notebooks": pages})
    config.nav = nav
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Return the published files of the repository, by their path in it, and what is executed."""
    theme = [file for file in files if file.src_dir != config.docs_dir]
    published = [_published(path, config) for one in PUBLISHED for path in sorted(ROOT.glob(one))]
    executed = [File.generated(config, name, content=content) for name, content in _executed()]
    pictures = [
        File.generated(config, str(path.relative_to(ROOT)), content=_picture(path.read_text()))
        for path in sorted(ROOT.glob("assets/**/*.svg"))
    ]
    made = {file.src_uri for file in executed}
    kept = [file for file in published if file.src_uri not in made]
    return Files([*theme, *kept, *pictures, *executed])


def on_page_markdown(markdown: str, **_: object) -> str:
    """Return a page's text with diagrams and options, and links to notebooks as to their pages."""
    text = option_tables.with_options(_DIAGRAM.sub(_drawn, markdown))
    return _NOTEBOOK_LINK.sub(r"\1.md)", text)


def on_post_page(output: str, *, page: Page, **_: object) -> str:
    """Return a page that loads nothing from the web; raise PluginError if it would."""
    own = get_relative_url("docs/worker_in_frame.js", page.url)
    return _without_requests(output, page.file.src_uri, own)


def on_post_template(output: str, *, template_name: str, **_: object) -> str:
    """Return a page of the theme that loads nothing from the web, as that of a dead link."""
    return _without_requests(output, template_name, "/docs/worker_in_frame.js")


def on_post_build(config: MkDocsConfig) -> None:
    """Write the theme's style without rules for what no page has: pages wait for it."""
    site = Path(config.site_dir)
    written = [*site.glob("**/*.html"), *site.glob("assets/javascripts/*.js")]
    words = {word for path in written for word in _WORD.findall(path.read_text(encoding="utf-8"))}

    def kept(rule: re.Match[str]) -> str:
        selectors = _NOT.sub("", rule[1]).split(",")
        return rule[0] if any(words.issuperset(_CLASS.findall(one)) for one in selectors) else ""

    for path in site.glob("assets/stylesheets/main.*.css"):
        path.write_text(_RULE.sub(kept, path.read_text(encoding="utf-8")), encoding="utf-8")


def _without_requests(output: str, name: str, own: str) -> str:
    html = output.replace("https://unpkg.com/iframe-worker/shim", own)
    html = _THEME.sub(_THEME_LATER, html).replace("<script src=", "<script defer src=")
    html = html.replace('role="dialog"', 'role="dialog" aria-label="Search"')
    if request := _REQUEST.search(html):
        raise PluginError(f"{name} would load something from the web: {request[0]}")
    return html


def _published(path: Path, config: MkDocsConfig) -> File:
    name = path.relative_to(ROOT).as_posix()
    place = _PLACES.get(name)
    return File(name, str(ROOT), config.site_dir, config.use_directory_urls, dest_uri=place)


def _executed() -> Iterator[tuple[str, str | bytes]]:
    """Run notebooks and examples, two at once; return their pages, pictures and explorers."""
    with TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        examples = pool.submit(_draw_examples, folder)
        notebooks = dict(zip(COURSE, pool.map(_notebook_page, COURSE), strict=True))
        examples.result()
        yield from _gallery(Path(folder), notebooks)
    for name, page in notebooks.items():
        yield f"notebooks/{name}.md", page.markdown
        for file, content in page.pictures.items():
            yield (
                f"notebooks/{file}",
                _picture(content.decode()) if file.endswith(".svg") else content,
            )


def _draw_examples(folder: str) -> None:
    command = [sys.executable, str(ROOT / "docs/draw_examples.py"), folder]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})  # noqa: S603


def _notebook_page(name: str) -> NotebookPage:
    path = ROOT / f"notebooks/{name}.ipynb"
    return notebook_pages.as_page(name, notebook_pages.execute(path))


def _gallery(drawn: Path, notebooks: dict[str, NotebookPage]) -> Iterator[tuple[str, str | bytes]]:
    """Return the pages of the gallery, and what the examples drew."""
    sections = gallery_pages.read_sections()
    cards = {
        name: (page.title, next(iter(page.pictures)))
        for name, page in notebooks.items()
        if page.pictures
    }
    text = (ROOT / "docs/gallery/index.md").read_text(encoding="utf-8")
    yield "docs/gallery/index.md", gallery_pages.index_page(text, sections, cards)
    for entry in (one for section in sections for one in section.entries):
        printed = drawn / f"{entry.name}.txt"
        page = gallery_pages.entry_page(
            entry,
            has_explorer=(drawn / f"{entry.name}.html").exists(),
            text=printed.read_text(encoding="utf-8") if printed.exists() else "",
        )
        yield f"docs/gallery/{entry.name}.md", page
    for path in sorted(drawn.glob("*.svg")):
        yield f"docs/gallery/{path.name}", _picture(path.read_text(encoding="utf-8"))
    for path in sorted(drawn.glob("*.html")):
        yield f"docs/explorers/{path.name}", path.read_bytes()


def _picture(svg: str) -> str:
    """Return a picture that is dark on a dark page, if its colours have counterparts."""
    return svg if "prefers-color-scheme" in svg else dark_where_the_page_is(svg)


def _drawn(block: re.Match[str]) -> str:
    """Return a diagram as SVG: drawn here, because the page would load the program from the web."""
    svg = mermaidx.render(block[1]).svg().replace("my-svg", f"diagram-{block.start()}")
    return f'<figure class="diagram" markdown="0">{svg}</figure>\n'

"""The documents that the page's server sends."""

from __future__ import annotations

from pathlib import Path

import jinja2

from irviz.cli.page_request import DEMO
from irviz.cli.recent_files import recent_files

PAGE = Path(__file__).parent / "page"


def start_page(token: str) -> str:
    """Return the page for choosing a file."""
    return template("start").render(token=token, recent=recent_files(), demo=DEMO)


def template(name: str) -> jinja2.Template:
    """Return a template, which escapes every value."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(PAGE), autoescape=True, undefined=jinja2.StrictUndefined
    )
    return environment.get_template(f"{name}.html.j2")

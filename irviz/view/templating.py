"""HTML from Jinja2 templates, with every value escaped."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from irviz.view.svg_primitives import visible

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


def render(template: str, **values: object) -> Markup:
    """Render `templates/<template>.html.j2`; a missing variable is an error.

    Other templates insert the HTML without escaping. Join it with f-strings or `str.join`: `+`
    would escape an operand that is not Markup.
    """
    from markupsafe import Markup

    # safe: the environment has escaped every value
    html = _environment().get_template(f"{template}.html.j2").render(values)
    return Markup(html)  # noqa: S704


def escape(text: str) -> Markup:
    """Return a text as HTML that displays it literally."""
    from markupsafe import escape as escape_html

    return escape_html(visible(text))


def _visible_value(value: object) -> object:
    """Return the text to write for a value; HTML is kept."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return visible(value)
    return value


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("irviz.view"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible_value,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,  # which looks at the file each time
    )

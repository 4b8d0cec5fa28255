"""TVMScript -> highlighted HTML."""

from __future__ import annotations

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer


def code_html(text: str) -> str:
    """Return Python or TVMScript text as HTML with Pygments' short classes, all of it escaped."""
    formatter = HtmlFormatter(cssclass="irviz-code", wrapcode=True)
    return str(highlight(text, PythonLexer(), formatter))

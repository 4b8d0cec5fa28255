"""Templates escape text, insert HTML as it is, and need all of their variables."""

import pytest
from jinja2 import UndefinedError

from irviz.view.templating import render


def test_text_is_escaped_and_html_is_not_escaped_twice():
    inner = render("details", title="<b>", hint="", warning="", facts=[("\"'>", "&")], sources=[])
    assert "&lt;b&gt;" in inner
    assert "<dt>&#34;&#39;&gt;</dt><dd>&amp;</dd>" in inner
    page = render("details", title="", hint="", warning="", facts=[], sources=[("<i>", inner)])
    assert f"<h3>&lt;i&gt;</h3>{inner}" in page


def test_a_variable_that_is_missing_is_an_error():
    with pytest.raises(UndefinedError, match="facts"):
        render("details", title="", hint="", warning="")

"""Templates escape text, insert HTML as it is, and need all of their variables."""

import pytest
from jinja2 import UndefinedError

from irviz.view.templating import render


def test_text_is_escaped_and_html_is_not_escaped_twice():
    badge = render("badge", text="<b>", kind="bad", tooltip="\"'>", note="")
    assert badge == '<span class="irviz-badge bad" title="&#34;&#39;&gt;">&lt;b&gt;</span>'
    page = render("details", title="", hint="", warning="", facts=[], sources=[("<i>", badge)])
    assert f"<h3>&lt;i&gt;</h3>{badge}" in page


def test_a_variable_that_is_missing_is_an_error():
    with pytest.raises(UndefinedError, match="tooltip"):
        render("badge", text="", kind="")

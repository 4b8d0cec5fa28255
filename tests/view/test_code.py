"""Code is highlighted and escaped."""

import html
import re

from irviz.view.code import code_html


def test_code_keeps_its_text_and_escapes_it():
    text = 'lv = R.add(x, "<script>&")\n'
    shown = code_html(text)
    assert "<script>" not in shown
    assert html.unescape(re.sub("<[^>]*>", "", shown)).strip() == text.strip()
    assert 'class="irviz-code"' in shown

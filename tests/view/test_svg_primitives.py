"""Text for SVG: short, printable, and as wide as it is drawn."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from irviz.view.svg_primitives import printable, shorten, shorten_name, text_width


@given(text=st.one_of(st.text(), st.text(min_size=43, max_size=46)))
@example("x" * 44)
@example("x" * 45)
def test_shortened_is_one_line_of_at_most_44_characters(text):
    line = shorten(text)
    assert len(line) <= 44
    assert len(line.splitlines()) <= 1
    assert line == printable(line)
    words = " ".join(text.split())
    if len(words) > 44:
        assert line.endswith("…")
        assert printable(words).startswith(line[:-1])
    else:
        assert line == printable(words)


def test_a_long_name_keeps_both_of_its_ends():
    names = [
        f"transformer.encoder.layers.{n}.attention.self.{which}.weight"
        for n in range(2)
        for which in ("key", "query")
    ]
    short = [shorten_name(one) for one in names]
    assert all(len(one) == 44 and one.startswith("transformer.") for one in short)
    assert [one.endswith("key.weight") for one in short] == [True, False] * 2
    assert shorten_name("x" * 44) == "x" * 44


@given(text=st.text())
def test_printable_keeps_what_xml_can_hold_and_the_length(text):
    kept = printable(text)
    assert len(kept) == len(text)
    assert printable(kept) == kept
    kept.encode("utf-8")
    assert all(a == b or b == "\ufffd" for a, b in zip(text, kept, strict=True))


def test_printable_replaces_what_xml_forbids():
    assert printable("a\x00\x1b\ud800\ufffeb\t\n") == "a\ufffd\ufffd\ufffd\ufffdb\t\n"
    assert printable("線形 שלום 🙂 é") == "線形 שלום 🙂 é"


def test_width_counts_cells():
    assert text_width("", 10) == 0
    assert text_width("abcd", 10) == pytest.approx(24.08)
    assert text_width("線形", 10) == text_width("abcd", 10)
    assert text_width("ab", 20) == text_width("abcd", 10)

"""The words of a node: what it calls, how, and the name and type of its value."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from irviz.model.graph import Literal, Node, NodeId, NodeKind, Resolution
from irviz.view import label


def node(kind, name="lv", callee="", resolution=None, **facts):
    return Node(NodeId("id"), kind, name, "Tensor[(2,)]", callee, resolution, **facts)


@pytest.mark.parametrize(
    ("drawn", "title", "note", "value"),
    [
        (node(NodeKind.PARAM, "x"), "x", "", "x: Tensor[(2,)]"),
        (node(NodeKind.CONSTANT, "w0"), "w0", "", "Tensor[(2,)]"),
        (node(NodeKind.CONSTANT, ""), "const", "", "Tensor[(2,)]"),
        (
            node(NodeKind.CALL_TIR, callee="relu0", resolution=Resolution.PRIM_FUNC),
            "relu0",
            "call_tir",
            "lv: Tensor[(2,)]",
        ),
        (
            node(NodeKind.CALL_DPS_PACKED, callee="relu0", resolution=Resolution.PRIM_FUNC),
            "relu0",
            "call_dps_packed · PrimFunc",
            "lv: Tensor[(2,)]",
        ),
        (
            node(NodeKind.CALL_DPS_PACKED, callee="env.relu", resolution=Resolution.LIBRARY),
            "env.relu",
            "call_dps_packed · library",
            "lv: Tensor[(2,)]",
        ),
        (
            node(NodeKind.CALL_DPS_PACKED, callee="env.relu", resolution=Resolution.UNKNOWN),
            "env.relu",
            "call_dps_packed · not registered",
            "lv: Tensor[(2,)]",
        ),
        (
            node(NodeKind.CALL_FUNCTION, callee="other", resolution=Resolution.FUNCTION),
            "other",
            "call · Function",
            "lv: Tensor[(2,)]",
        ),
        (node(NodeKind.OPERATOR, callee="relax.nn.relu"), "nn.relu", "", "lv: Tensor[(2,)]"),
        (
            node(
                NodeKind.OPERATOR,
                callee="relax.reshape",
                literals=(Literal((1,), "(1, n)"), Literal((2,), "3")),
            ),
            "reshape",
            "(1, n), 3",
            "lv: Tensor[(2,)]",
        ),
        (node(NodeKind.TUPLE), "( , )", "", "lv: Tensor[(2,)]"),
        (
            node(NodeKind.TUPLE_GET_ITEM, attributes=(("index", "2"),)),
            "[2]",
            "",
            "lv: Tensor[(2,)]",
        ),
        (node(NodeKind.MATCH_CAST), "match_cast", "", "lv: Tensor[(2,)]"),
        (node(NodeKind.OTHER, callee="If"), "If", "", "lv: Tensor[(2,)]"),
        (node(NodeKind.OTHER), "lv", "", "lv: Tensor[(2,)]"),
    ],
)
def test_a_node_says_what_it_is(drawn, title, note, value):
    assert (label.title(drawn), label.note(drawn), label.value_label(drawn)) == (title, note, value)


def test_every_kind_has_words():
    for kind in NodeKind:
        assert label.title(node(kind, callee="relax.f"))


@settings(derandomize=True, deadline=None, max_examples=200)
@given(text=st.one_of(st.text(), st.text(min_size=43, max_size=46)))
@example("x" * 44)
@example("x" * 45)
def test_shortened_is_one_line_of_at_most_44_characters(text):
    line = label.shortened(text)
    assert len(line) <= 44
    assert len(line.splitlines()) <= 1
    assert line == label.printable(line)
    words = " ".join(text.split())
    if len(words) > 44:
        assert line.endswith("…")
        assert label.printable(words).startswith(line[:-1])
    else:
        assert line == label.printable(words)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(text=st.text())
def test_printable_keeps_what_xml_can_hold_and_the_length(text):
    kept = label.printable(text)
    assert len(kept) == len(text)
    assert label.printable(kept) == kept
    kept.encode("utf-8")
    assert all(a == b or b == "\ufffd" for a, b in zip(text, kept, strict=True))


def test_printable_replaces_what_xml_forbids():
    assert label.printable("a\x00\x1b\ud800\ufffeb\t\n") == "a\ufffd\ufffd\ufffd\ufffdb\t\n"
    assert label.printable("線形 שלום 🙂 é") == "線形 שלום 🙂 é"


def test_width_counts_cells():
    assert label.width("", 10) == 0
    assert label.width("abcd", 10) == pytest.approx(24.08)
    assert label.width("線形", 10) == label.width("abcd", 10)
    assert label.width("ab", 20) == label.width("abcd", 10)

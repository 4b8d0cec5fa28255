"""The loop nest reads as text, nests as the loops do, and every name in it is escaped."""

import html
import re
from html.parser import HTMLParser

import pytest

from irviz.course.mlp import MODULES
from irviz.ir.loop_nest_reader import loop_nest
from irviz.model.loop_nest import (
    Axis,
    AxisKind,
    Block,
    Buffer,
    BufferRegion,
    Loop,
    LoopKind,
    LoopNest,
    MatchBuffer,
    Scalar,
    Statement,
)
from irviz.view.node_details import AXIS_KIND_NAMES, loop_nest_html

EVIL = '<b onload="x">&\''


def lines(nest):
    """Return the text of the pane, a line for each line a reader sees."""
    text = re.sub(
        r"</?(?:div|ul|li|h3)[^>]*>|<code class=\"irviz-loops-statement\">",
        "\n",
        loop_nest_html(nest),
    )
    found = (html.unescape(re.sub("<[^>]*>", "", line)).strip() for line in text.splitlines())
    return [line for line in found if line]


def of(*body, parameters=(), temporaries=()):
    return LoopNest("f", parameters, temporaries, body)


class Depth(HTMLParser):
    """Checks that every tag is closed, and keeps how deep lists are where a text stands."""

    def __init__(self):
        super().__init__()
        self.open, self.found, self.tags = [], {}, set()

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add((tag, tuple(name for name, _ in attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.found.setdefault(data, self.open.count("ul"))


def parsed(nest):
    depth = Depth()
    depth.feed(loop_nest_html(nest))
    assert depth.open == []
    return depth


def test_the_linear_layer_of_the_lecture_can_be_read():
    nest = loop_nest(MODULES["MyModuleStatic"]["linear0"], "linear0")
    assert lines(nest)[:12] == [
        "Loops of linear0",
        "parameters X: (1, 784) float32, W: (128, 784) float32, B: (128,) float32, "
        "Z: (1, 128) float32",
        "temporaries Y: (1, 128) float32",
        "for i in 1 · spatial",
        "for j in 128 · spatial",
        "for k in 784 · reduction",
        "block Y",
        "spatial (S) vi = i of 1, vj = j of 128",
        "reduction (R) vk = k of 784",
        "reads → writes X[vi, vk], W[vj, vk] → Y[vi, vj]",
        "init",
        "Y[vi, vj] = T.float32(0.0)",
    ]


def test_what_stands_inside_is_one_list_deeper():
    nest = loop_nest(MODULES["MyModuleStatic"]["linear0"], "linear0")
    found = parsed(nest).found
    assert [found[name] for name in ("i", "j", "k", "Y")] == [1, 2, 3, 4]


def test_a_loop_says_where_it_starts_its_step_its_kind_and_its_notes():
    loop = Loop(
        "i", "16", LoopKind.THREAD_BINDING, (), (AxisKind.SPATIAL, AxisKind.REDUCTION),
        "2", "4", "threadIdx.x", (("pragma", "1"),),
    )  # fmt: skip
    assert lines(of(loop))[-1] == (
        "for i in 16 from 2 by 4 · spatial · reduction · thread · threadIdx.x · pragma = 1"
    )


@pytest.mark.parametrize("kind", [kind for kind in LoopKind if kind is not LoopKind.SERIAL])
def test_every_kind_of_loop_but_serial_has_a_word(kind):
    assert lines(of(Loop("i", "4", kind, ())))[-1].startswith("for i in 4 · ")
    assert lines(of(Loop("i", "4", LoopKind.SERIAL, ())))[-1] == "for i in 4"


@pytest.mark.parametrize("kind", AxisKind)
def test_every_kind_of_axis_has_a_line_of_its_own(kind):
    block = Block("b", (Axis("v", kind, "4", "i"), Axis("w", kind, "4", "", "2")), (), (), ())
    assert f"{AXIS_KIND_NAMES[kind]} v = i of 4, w of 4 from 2" in lines(of(block))
    assert kind.value in AXIS_KIND_NAMES[kind]


def test_a_block_says_all_that_it_has():
    block = Block(
        "b",
        (),
        (),
        (BufferRegion("Y", "0:4"),),
        (Statement("if c:", (Statement("pass"),)),),
        (Statement("start"),),
        (Buffer("t", "(4,)", "int8", "local"),),
        (MatchBuffer(Buffer("m", "(1,)", "int8"), BufferRegion("Y", "v")),),
        "i < 3",
        (("empty", ""),),
    )
    assert lines(of(block))[3:] == [
        *("block b", "where i < 3", "reads → writes nothing → Y[0:4]"),
        *("temporaries t: (4,) int8 local", "view m: (1,) int8 of Y[v]", 'empty ""'),
        *("init", "start", "if c:", "pass"),
    ]


def test_a_function_without_parameters_and_buffers_says_none():
    assert lines(of()) == ["Loops of f", "parameters none", "temporaries none"]


def test_every_text_is_escaped():
    access, buffer = BufferRegion(EVIL, EVIL), Buffer(EVIL, EVIL, EVIL, EVIL)
    notes = ((EVIL, EVIL),)
    line = Statement(EVIL, (Statement(EVIL),))
    block = Block(
        EVIL, (Axis(EVIL, AxisKind.OPAQUE, EVIL, EVIL, EVIL),), (access,), (access,), (line,),
        (line,), (buffer,), (MatchBuffer(buffer, access),), EVIL, notes,
    )  # fmt: skip
    loop = Loop(EVIL, EVIL, LoopKind.SERIAL, (block,), (), EVIL, EVIL, EVIL, notes)
    nest = LoopNest(EVIL, (buffer, Scalar(EVIL, EVIL)), (buffer,), (loop,))
    tags = parsed(nest).tags
    assert {name for _, attributes in tags for name in attributes} == {"class"}
    assert "onload" in loop_nest_html(nest)
    assert EVIL in html.unescape(re.sub("<[^>]*>", "", loop_nest_html(nest)))


def test_all_classes_are_its_own():
    nest = loop_nest(MODULES["MyModuleStatic"]["linear0"], "linear0")
    names = re.findall('class="([^"]*)"', loop_nest_html(nest))
    assert names
    assert all(name.startswith("irviz-loops") for name in names)

"""What a schedule step did to a loop nest can be read from its picture, without colours."""

import re
from dataclasses import dataclass
from functools import partial
from xml.etree import ElementTree

import pytest
from tvm import s_tir
from tvm.script import from_source

from irviz.course.mm_relu import MyModule, lecture_schedule
from irviz.ir.iteration_domains import compare_domains
from irviz.ir.loop_nest_reader import loop_nest
from irviz.model.diff.compare_loop_nests import diff_loop_nests
from irviz.model.loop_nest import (
    Axis,
    AxisKind,
    Block,
    Buffer,
    BufferRegion,
    Loop,
    LoopKind,
    LoopNest,
    Statement,
)
from irviz.view.loop_nest_figure import draw_loop_nest_diff
from irviz.view.svg_primitives import text_width
from irviz.view.theme import THEMES

_NUMBER = r"-?[\d.]+"


@dataclass(frozen=True)
class DrawnRow:
    side: str
    change: str
    sign: str
    text: str
    word: str
    y: float
    right: float
    bold: tuple[str, ...]


@dataclass(frozen=True)
class Picture:
    text: str
    width: float
    height: float
    rows: tuple[DrawnRow, ...]
    links: tuple[tuple[str, float, float], ...]
    notes: tuple[str, ...]

    def row(self, side, text):
        """Return the first row of a side with a text."""
        return next(row for row in self.rows if row.side == side and row.text == text)

    def written(self, side):
        """Return the rows of a side that are not the same, as a reader would note them."""
        rows = [row for row in self.rows if row.side == side and row.change != "same"]
        return [f"{row.sign} {row.text} {row.word}".strip() for row in rows]


def words(element):
    return "".join(element.itertext())


def read(element, size):
    rows, links = [], []
    for group in element.iter("g"):
        classes = group.get("class", "").split()
        if classes[:1] == ["row"]:
            texts = list(group.iter("text"))
            by_class = {each.get("class"): words(each) for each in texts}
            lines = [each for each in texts if not each.get("class")]
            last = max(texts, key=lambda each: float(each.get("x")))
            rows.append(
                DrawnRow(
                    classes[1],
                    classes[2],
                    by_class.get("sign", ""),
                    " ".join(words(each).strip() for each in lines),
                    by_class.get("word", ""),
                    float(lines[0].get("y")),
                    float(last.get("x")) + text_width(words(last), float(last.get("font-size"))),
                    tuple(each.text for each in group.iter("tspan")),
                )
            )
        elif classes[:1] == ["link"]:
            for path in group.iter("path"):
                found = re.findall(_NUMBER, path.get("d"))
                if "C" in path.get("d"):
                    links.append((classes[1], float(found[1]), float(found[7])))
    notes = [words(each) for each in element.iter("text") if each.get("class") == "folded"]
    text = ElementTree.tostring(element, encoding="unicode")
    return Picture(text, size.width, size.height, tuple(rows), tuple(links), tuple(notes))


def draw(before, after, theme="course"):
    parent = ElementTree.Element("g")
    diff = diff_loop_nests(before, after) if before and after else None
    return read(parent, draw_loop_nest_diff(parent, (before, after), diff, THEMES[theme]))


def nest(schedule):
    return loop_nest(schedule.mod["mm_relu"], "mm_relu")


class Lecture:
    """The lecture's matmul with relu, and the loops and blocks that a step names."""

    def __init__(self):
        self.schedule = s_tir.Schedule(MyModule)

    def block(self, name):
        return self.schedule.get_sblock(name, func_name="mm_relu")

    def loops(self, name="Y"):
        return self.schedule.get_loops(self.block(name))


def step(do, *earlier):
    lecture = Lecture()
    for each in earlier:
        each(lecture)
    before = nest(lecture.schedule)
    do(lecture)
    return draw(before, nest(lecture.schedule))


def split(at):
    at.schedule.split(at.loops()[1], [None, 4])


def reorder(at):
    _, j_0, j_1, k = at.loops()
    at.schedule.reorder(j_0, k, j_1)


def relu_into_columns(at):
    at.schedule.reverse_compute_at(at.block("C"), at.loops()[1])


def cache(at):
    at.schedule.cache_read(at.block("Y"), 0, "shared")


STEPS = {
    "split": (
        split,
        (),
        ["⊂ 1 → 2 for j in 128 split", "≠ block Y  vi = i, vj = j, vk = k (R)"],
        [
            "⊂ for j_0 in 32",
            "⊂ for j_1 in 4",
            "≠ block Y  vi = i, vj = j_0 * 4 + j_1, vk = k (R) bindings",
        ],
    ),
    "fuse": (
        lambda at: at.schedule.fuse(*at.loops()[:2]),
        (),
        ["⊃ for i in 128", "⊃ for j in 128", "≠ block Y  vi = i, vj = j, vk = k (R)"],
        [
            "⊃ 2 → 1 for i_j_fused in 16384 fused",
            "≠ block Y  vi = i_j_fused // 128, vj = i_j_fused % 128, vk = k (R) bindings",
        ],
    ),
    "reorder": (reorder, (split,), ["↕ for k in 128"], ["↕ for k in 128 reordered"]),
    "reverse_compute_at": (
        relu_into_columns,
        (split, reorder),
        ["− for i in 128", "≠ for j in 128", "↕ block C  vi = i, vj = j"],
        ["≠ for ax0 in 4 extent", "↕ block C  vi = i, vj = j_0 * 4 + ax0 moved, bindings"],
    ),
    "vectorize": (
        lambda at: at.schedule.vectorize(at.loops()[1]),
        (),
        ["≠ for j in 128"],
        ["≠ for j in 128 · vectorized"],
    ),
    "unroll": (
        lambda at: at.schedule.unroll(at.loops()[2]),
        (),
        ["≠ for k in 128"],
        ["≠ for k in 128 · unrolled"],
    ),
    "bind": (
        lambda at: at.schedule.bind(at.loops()[0], "threadIdx.x"),
        (),
        ["≠ for i in 128"],
        ["≠ for i in 128 · bound to threadIdx.x"],
    ),
    "decompose_reduction": (
        lambda at: at.schedule.decompose_reduction(at.block("Y"), at.loops()[2]),
        (),
        [
            "⊂ 1 → 2 block Y  vi = i, vj = j, vk = k (R) split",
            "≠ reads A[vi, vk], B[vk, vj]",
            "init",
            "Y[vi, vj] = T.float32(0.0)",
        ],
        [
            "⊂ block Y_init  vi = i, vj = j",
            "+ writes Y[vi, vj]",
            "Y[vi, vj] = T.float32(0.0)",
            "⊂ block Y_update  vi = i, vj = j, vk = k (R)",
            "≠ reads Y[vi, vj], A[vi, vk], B[vk, vj]",
        ],
    ),
    "cache_read": (
        cache,
        (),
        ["≠ reads A[vi, vk], B[vk, vj]", "≠ Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]"],
        [
            "+ buffer A_shared: (128, 128) float32 shared",
            "+ for ax0 in 128",
            "+ for ax1 in 128",
            "+ block A_shared  v0 = ax0, v1 = ax1",
            "+ reads A[v0, v1]",
            "+ writes A_shared[v0, v1]",
            "+ A_shared[v0, v1] = A[v0, v1]",
            "≠ reads A_shared[vi, vk], B[vk, vj]",
            "≠ Y[vi, vj] = Y[vi, vj] + A_shared[vi, vk] * B[vk, vj]",
        ],
    ),
    "compute_inline": (
        lambda at: at.schedule.compute_inline(at.block("A_shared")),
        (cache,),
        [
            "− buffer A_shared: (128, 128) float32 shared",
            "− for ax0 in 128",
            "− for ax1 in 128",
            "− block A_shared  v0 = ax0, v1 = ax1 inlined into Y",
            "− reads A[v0, v1]",
            "− writes A_shared[v0, v1]",
            "− A_shared[v0, v1] = A[v0, v1]",
            "≠ reads A_shared[vi, vk], B[vk, vj]",
            "≠ Y[vi, vj] = Y[vi, vj] + A_shared[vi, vk] * B[vk, vj]",
        ],
        ["≠ reads A[vi, vk], B[vk, vj]", "≠ Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]"],
    ),
    "set_scope": (
        lambda at: at.schedule.set_scope(at.block("Y"), 0, "shared"),
        (),
        ["≠ buffer Y: (128, 128) float32"],
        ["≠ buffer Y_shared: (128, 128) float32 shared storage scope"],
    ),
}


def test_a_line_leads_from_the_loop_that_a_block_was_moved_into_to_what_is_in_it_now():
    found = step(relu_into_columns, split, reorder)
    ((_, x, top, bottom, end),) = [
        (line, *map(float, re.findall(_NUMBER, line)))
        for line in re.findall(r'<path class="guide" d="([^"]+)"', found.text)
    ]
    outer, inner = found.row("after", "for j_0 in 32"), found.row("after", "for ax0 in 4")
    assert outer.y < top < outer.y + 16 < bottom < inner.y
    assert inner.y - bottom < 8
    assert x < end
    assert "guide" not in step(split).text


@pytest.mark.parametrize("name", STEPS)
def test_a_schedule_step_can_be_read_from_the_picture(name):
    do, earlier, before, after = STEPS[name]
    picture = step(do, *earlier)
    assert picture.written("before") == before
    assert picture.written("after") == after


def test_another_layout_is_marked_where_the_buffer_is_used():
    def transform(at):
        layout = lambda i, j: (i // 16, j, i % 16)  # noqa: E731
        at.schedule.transform_layout(at.block("Y"), ("write", 0), layout)

    after = step(transform).written("after")
    assert after[0] == "≠ buffer Y: (8, 128, 16) float32 shape"
    assert [line.split()[:2] for line in after[1:]] == [
        ["≠", "writes"],
        ["≠", "Y[vi"],
        ["≠", "Y[vi"],
        ["≠", "reads"],
        ["≠", "C[vi,"],
    ]


def test_a_split_that_leaves_something_out_says_so_where_the_loop_is_split():
    before = nest(Lecture().schedule)
    lecture = Lecture()
    split(lecture)
    text = lecture.schedule.mod.script().replace(
        "T.grid(128, 32, 4, 128)", "T.grid(128, 31, 4, 128)"
    )
    functions = MyModule["mm_relu"], from_source(text)["mm_relu"]
    after = loop_nest(functions[1], "mm_relu")
    parent = ElementTree.Element("g")
    diff = diff_loop_nests(before, after, partial(compare_domains, *functions))
    picture = read(parent, draw_loop_nest_diff(parent, (before, after), diff, THEMES["course"]))
    assert "⊂ 1 → 2 for j in 128 split, but covers 124 of 128" in picture.written("before")


def test_a_block_that_another_was_put_around_keeps_its_loops():
    picture = step(lambda at: at.schedule.blockize(at.loops()[1]))
    assert [row for row in picture.written("before") if " for " in row] == []
    added = [row for row in picture.written("after") if row.startswith("+ block")]
    assert added == ["+ block Y_o  vi_o = i, vj_o = 0, vk_o = 0 (R)"]
    assert "⊂ block Y_init  vj_i_init = j" in picture.written("after")


def test_blocks_that_became_one_are_linked_to_it():
    apart = Lecture()
    apart.schedule.decompose_reduction(apart.block("Y"), apart.loops()[2])
    picture = draw(nest(apart.schedule), nest(Lecture().schedule))
    heads = [row for row in picture.written("before") if "block" in row]
    assert heads == [
        "⊃ block Y_init  vi = i, vj = j",
        "⊃ block Y_update  vi = i, vj = j, vk = k (R)",
    ]
    (whole,) = (row for row in picture.written("after") if "block" in row)
    assert whole == "⊃ 2 → 1 block Y  vi = i, vj = j, vk = k (R) fused"
    assert [change for change, _, _ in picture.links] == ["fused", "fused"]


def test_rows_that_correspond_stand_beside_each_other():
    picture = step(split)
    for text in ("param A: (128, 128) float32", "for k in 128", "writes Y[vi, vj]", "init"):
        one, two = picture.row("before", text), picture.row("after", text)
        assert (one.y, one.change) == (two.y, two.change)
    j, j_0 = picture.row("before", "for j in 128"), picture.row("after", "for j_0 in 32")
    j_1 = picture.row("after", "for j_1 in 4")
    assert j.y == j_0.y < j_1.y
    assert j_1.y not in {row.y for row in picture.rows if row.side == "before"}


def test_what_differs_in_a_changed_row_is_bold():
    picture = step(cache)
    assert picture.row("before", "reads A[vi, vk], B[vk, vj]").bold == ("A",)
    assert picture.row("after", "reads A_shared[vi, vk], B[vk, vj]").bold == ("A_shared",)


def test_bands_lead_from_a_loop_to_the_loops_that_it_was_split_into():
    picture = step(split)
    j, j_0, j_1 = (
        picture.row("before", "for j in 128"),
        picture.row("after", "for j_0 in 32"),
        picture.row("after", "for j_1 in 4"),
    )
    starts, ends = zip(*((start, end) for _, start, end in picture.links), strict=True)
    assert [change for change, _, _ in picture.links] == ["fused", "fused"]
    assert all(j.y - 12 <= each <= j.y + 5 for each in starts)
    for end, row in zip(ends, (j_0, j_1), strict=True):
        assert row.y - 12 <= end <= row.y + 5


def test_bands_lead_from_loops_to_the_loop_that_they_were_fused_to():
    picture = step(lambda at: at.schedule.fuse(*at.loops()[:2]))
    sources = [row.y for row in picture.rows if row.sign == "⊃"]
    (target,) = (row.y for row in picture.rows if row.sign == "⊃ 2 → 1")
    assert len(picture.links) == 2
    for (_, start, end), y in zip(picture.links, sources, strict=True):
        assert y - 12 <= start <= y + 5
        assert target - 12 <= end <= target + 5


def test_lines_of_loops_in_the_reverse_order_cross():
    picture = step(lambda at: at.schedule.reorder(*reversed(at.loops())))
    lines = [(start, end) for change, start, end in picture.links if change == "moved"]
    assert len(lines) == 2
    (one, two), (other, another) = sorted(lines)
    assert one < other
    assert two > another


def test_rows_that_are_the_same_have_no_line_and_no_sign():
    picture = draw(nest(Lecture().schedule), nest(Lecture().schedule))
    assert picture.links == ()
    assert picture.written("before") == picture.written("after") == []


def test_long_runs_of_the_same_rows_are_folded_and_counted():
    same = draw(nest(Lecture().schedule), nest(Lecture().schedule))
    assert same.notes == ("… 19 unchanged",) * 2
    assert same.rows == ()
    bound = step(lambda at: at.schedule.bind(at.loops()[0], "threadIdx.x"))
    assert len(bound.notes) == 2
    assert len([row for row in bound.rows if row.side == "after"]) == 4 + 1 + 2
    assert bound.notes[0] == f"… {19 - 7} unchanged"
    twelve = draw(simple(12), simple(12))
    assert twelve.notes == ()
    assert draw(simple(13), simple(13)).notes == ("… 13 unchanged",) * 2


def test_the_loops_around_a_change_are_not_folded():
    picture = step(relu_into_columns, split, reorder)
    shown = [row.text for row in picture.rows if row.side == "after"]
    assert shown[:2] == ["for i in 128", "for j_0 in 32"]
    assert picture.notes[:2] == ("… 4 unchanged",) * 2


def test_the_lecture_as_a_whole():
    schedule = s_tir.Schedule(MyModule)
    lecture = Lecture().schedule
    schedule.work_on("mm_relu")
    lecture_schedule(schedule)
    picture = draw(nest(lecture), nest(schedule))
    assert picture.written("before") == [
        "≠ for i in 128",
        "⊂ 1 → 2 for j in 128 split",
        "↕ for k in 128",
        "⊂ 1 → 2 block Y  vi = i, vj = j, vk = k (R) split",
        "≠ reads A[vi, vk], B[vk, vj]",
        "init",
        "Y[vi, vj] = T.float32(0.0)",
        "− for i in 128",
        "≠ for j in 128",
        "↕ block C  vi = i, vj = j",
    ]
    assert picture.written("after") == [
        "≠ for i in 128 · parallel",
        "⊂ for j_0 in 32",
        "+ for j_1_init in 4 · vectorized",
        "⊂ block Y_init  vi = i, vj = j_0 * 4 + j_1_init",
        "+ writes Y[vi, vj]",
        "Y[vi, vj] = T.float32(0.0)",
        "↕ for k in 128 · unrolled reordered",
        "⊂ for j_1 in 4 · vectorized",
        "⊂ block Y_update  vi = i, vj = j_0 * 4 + j_1, vk = k (R)",
        "≠ reads Y[vi, vj], A[vi, vk], B[vk, vj]",
        "≠ for ax0 in 4 extent",
        "↕ block C  vi = i, vj = j_0 * 4 + ax0 moved, bindings",
    ]


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_nest_that_has_no_counterpart_is_drawn_alone(side):
    whole = nest(Lecture().schedule)
    picture = draw(whole, None) if side == "before" else draw(None, whole)
    assert {row.side for row in picture.rows} == {side}
    assert {row.sign for row in picture.rows} == {"−" if side == "before" else "+"}
    assert len(picture.rows) == 19
    assert picture.links == ()


def test_loops_without_blocks_are_matched_by_their_text():
    body = Statement("A[i] = T.float32(0)", id="s")
    before = LoopNest("f", (), (), (Loop("i", "8", LoopKind.SERIAL, (body,), id="i"),))
    other = Statement("B[i] = A[i]", id="t")
    loop = Loop("i", "8", LoopKind.SERIAL, (body, other), id="j")
    picture = draw(before, LoopNest("f", (), (), (loop,)))
    assert picture.written("before") == []
    assert picture.written("after") == ["+ B[i] = A[i]"]


def test_buffers_with_one_name_are_all_matched():
    same = (Buffer("b", "(8,)", "float32"), Buffer("b", "(8,)", "float32"))
    new = Buffer("c", "(8,)", "float32")
    picture = draw(LoopNest("f", (), same, ()), LoopNest("f", (), (*same, new), ()))
    assert picture.written("before") == []
    assert picture.written("after") == ["+ buffer c: (8,) float32"]


def test_other_names_are_no_change():
    def named(name):
        access = (BufferRegion(f"{name}b", f"{name}v"),)
        axes = (Axis(f"{name}v", AxisKind.SPATIAL, "8", f"{name}i"),)
        body = (Statement(f"{name}b[{name}v] = T.float32(1)", id="s"),)
        block = Block("b", axes, (), access, body, id="b")
        loop = Loop(f"{name}i", "8", LoopKind.SERIAL, (block,), id="l")
        return LoopNest("f", (Buffer(f"{name}b", "(8,)", "float32"),), (), (loop,))

    picture = draw(named("x"), named("y"))
    assert len(picture.rows) == 2 * 5
    assert picture.written("before") == picture.written("after") == []


def test_where_a_block_lost_its_axes_its_reads_and_statements_are_marked_with_it():
    module = from_source(
        """
# from tvm.script import ir as I
# from tvm.script import tirx as T
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.sblock("B"):
                v = T.axis.spatial(8, i)
                B[v] = A[v] + T.float32(1)
"""
    )
    opaque = s_tir.transform.ConvertBlocksToOpaque()(module)
    picture = draw(loop_nest(module["main"], "main"), loop_nest(opaque["main"], "main"))
    assert picture.written("before")
    for side, name in (("before", "v"), ("after", "i")):
        for text in (
            f"reads A[{name}]",
            f"writes B[{name}]",
            f"B[{name}] = A[{name}] + T.float32(1.0)",
        ):
            row = picture.row(side, text)
            assert (row.sign, row.change) == ("", "changed")
            assert set(row.bold) == {name}


def summed(name, axis, *, has_init, is_init=False):
    """Return a block that sums up, with its init statement, without it, or the init alone."""
    zero = Statement(f"B[{axis}] = T.float32(0)", id=f"{name}0")
    add = Statement(f"B[{axis}] = B[{axis}] + A[{axis}]", id=f"{name}1")
    axes = (Axis(axis, AxisKind.SPATIAL, "8", f"{name}i"),)
    reads = () if is_init else (BufferRegion("A", axis),)
    init = (zero,) if has_init else ()
    body = (zero,) if is_init else (add,)
    block = Block(name, axes, reads, (BufferRegion("B", axis),), body, init, id=name)
    return Loop(f"{name}i", "8", LoopKind.SERIAL, (block,), id=f"{name}l")


def test_the_statements_of_a_split_block_are_known_by_other_names_of_its_axes():
    buffers = tuple(Buffer(name, "(8,)", "float32") for name in "AB")
    before = LoopNest("f", buffers, (), (summed("Y", "vi", has_init=True),))
    parts = (
        summed("Y_init", "v0", has_init=False, is_init=True),
        summed("Y_update", "v0", has_init=False),
    )
    picture = draw(before, LoopNest("f", buffers, (), parts))
    assert picture.row("before", "B[vi] = B[vi] + A[vi]").change == "same"
    assert picture.row("before", "reads A[vi]").change == "same"
    assert picture.row("before", "init").change == "fused"


def simple(count, text="A[0] = T.float32({})"):
    body = tuple(Statement(text.format(index), id=f"s{index}") for index in range(count))
    return LoopNest("f", (), (), body)


EVIL = "<script>alert(1)</script>\x00\x1b[31m\u202ee\n&amp;"


def test_text_of_a_module_stays_text():
    block = Block(EVIL, (), (BufferRegion(EVIL, EVIL),), (), (), predicate=EVIL, id="b")
    loop = Loop(EVIL, EVIL, LoopKind.THREAD_BINDING, (block,), thread=EVIL, id=EVIL)
    evil = LoopNest(EVIL, (), (Buffer(EVIL, EVIL, EVIL, EVIL),), (loop, Statement(EVIL)))
    for picture in (draw(evil, simple(1)), draw(None, evil), draw(evil, evil)):
        root = ElementTree.fromstring(picture.text)
        assert {each.tag for each in root.iter()} <= {
            *("g", "rect", "text", "tspan", "path", "circle", "title"),
        }
        assert not re.search("[\x00\x1b\u202e]", picture.text)
    assert "<script>" in draw(None, evil).rows[0].text


def test_long_lines_are_broken_and_very_long_ones_cut():
    long = simple(1, "A[0] = " + " + ".join(["T.float32({0})"] * 10))
    picture = draw(simple(1), long)
    (row,) = (row for row in picture.rows if row.side == "after")
    assert row.text == long.body[0].text
    assert row.right <= picture.width < 720
    assert picture.height >= 3 * 16
    endless = draw(simple(1), simple(1, "x" * 1_000_000))
    assert endless.height < 160
    assert len(endless.text) < 10_000


def test_a_picture_has_a_limit_of_rows_and_says_what_it_leaves_out():
    loops = tuple(Loop("i", "2", LoopKind.SERIAL, (), id=f"l{index}") for index in range(100_000))
    picture = draw(None, LoopNest("f", (), (), loops))
    assert len(picture.rows) == 1000
    assert picture.notes == ("… 99,000 more rows",)


def test_many_statements_that_were_added_or_removed_are_folded_and_counted():
    loop = Loop("k", "128", LoopKind.UNROLLED, simple(1, "B[k] = A[k]").body, id="k")
    before, after = LoopNest("f", (), (), (loop,)), simple(128)
    picture = draw(before, after)
    assert picture.notes == ("… 122 added",)
    assert len([row for row in picture.rows if row.sign == "+"]) == 6
    assert draw(after, before).notes == ("… 122 removed",)
    assert draw(before, simple(24)).notes == ()


def test_deep_nests_stay_narrow():
    nodes = (Statement("pass", id="s"),)
    for depth in range(60):
        nodes = (Loop(f"i{depth}", "2", LoopKind.SERIAL, nodes, id=f"l{depth}"),)
    picture = draw(None, LoopNest("f", (), (), nodes))
    assert max(row.right for row in picture.rows) <= picture.width < 500


def test_the_size_tells_where_the_nest_after_begins():
    before, after = nest(Lecture().schedule), simple(3)
    parent = ElementTree.Element("g")
    size = draw_loop_nest_diff(
        parent, (before, after), diff_loop_nests(before, after), THEMES["course"]
    )
    lefts = [float(each.get("x")) for each in parent.iter("rect")]
    assert min(left for left in lefts if left) == pytest.approx(size.after, abs=0.01)


def test_everything_is_inside_of_the_size_that_is_returned():
    for do, earlier, _, _ in STEPS.values():
        picture = step(do, *earlier)
        assert max(row.right for row in picture.rows) <= picture.width
        assert max(row.y for row in picture.rows) < picture.height


def test_the_same_nests_give_the_same_picture():
    assert step(split, cache).text == step(split, cache).text

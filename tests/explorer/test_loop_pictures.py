"""The explorer shows the loops of a PrimFunc, and what became of them between two stages."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
import tvm
from tvm.script import tirx as T  # noqa: N812

from irviz.course.mlp import MyModule
from irviz.course.mm_relu import MyModule as MatMulRelu
from irviz.course.mm_relu import lecture_schedule
from irviz.explorer import actions
from irviz.explorer.graph_pane_data import scene_data
from irviz.explorer.shown_schedule import loop_addresses
from irviz.explorer.viewer.schema import Scene
from irviz.session.session import Session
from tests.explorer.performed_actions import state_after

pytestmark = pytest.mark.worker

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def scheduled() -> Session:
    """The lecture's schedule: stages 0 to 7."""
    return Session(MatMulRelu).schedule("mm_relu", lecture_schedule)


def shown(session: Session, *done: actions.Action) -> Scene:
    return scene_data(state_after(session, *done))


def rows(scene: Scene, side: str = "after") -> list[tuple[str, str]]:
    """Return the text and the node of each row of a side."""
    assert scene["loops"] is not None
    assert not scene["loops"]["error"]
    groups = ElementTree.fromstring(scene["loops"]["svg"]).iter(f"{SVG}g")
    of_side = (one for one in groups if one.get("class", "").startswith(f"row {side} "))
    return [("".join(one.find(f"{SVG}text").itertext()), one.get("data-node")) for one in of_side]


def test_each_row_of_a_nest_leads_to_the_block_that_it_is_of(scheduled):
    scene = shown(scheduled, actions.Checkout("0"))
    found = rows(scene)
    assert ("param A: (128, 128) float32", "A") in found
    loops = [(text, node) for text, node in found if text.startswith(("for ", "block "))]
    assert [node for _, node in loops] == ["Y"] * 4 + ["C"] * 3
    assert [text for text, _ in loops][:4] == [
        *("for i in 128", "for j in 128", "for k in 128"),
        "block Y  vi = i, vj = j, vk = k (R)",
    ]
    assert {node for _, node in found if node} <= set(scene["current"]["nodes"])
    assert not rows(scene, "before")


def loops_of(scene: Scene, side: str) -> list[str | None]:
    """Return the loop or block that each row of a side chooses, None for none."""
    assert scene["loops"] is not None
    groups = ElementTree.fromstring(scene["loops"]["svg"]).iter(f"{SVG}g")
    of_side = (one for one in groups if one.get("class", "").startswith(f"row {side} "))
    return [one.get("data-loop") for one in of_side]


def test_a_row_of_a_loop_or_block_chooses_it_in_the_shown_stage_alone(scheduled):
    alone = shown(scheduled, actions.Checkout("3"))
    there = set(loop_addresses(state_after(scheduled, actions.Checkout("3"))))
    assert set(filter(None, loops_of(alone, "after"))) == there
    assert loops_of(alone, "after")[:4] == [None] * 4
    compared = shown(scheduled, actions.Checkout("3"), actions.Compare("2"))
    assert set(loops_of(compared, "before")) == {None}
    assert {None} < set(loops_of(compared, "after")) <= {None, *there}


def test_a_comparison_shows_both_nests_and_says_what_became_of_them(scheduled):
    scene = shown(scheduled, actions.Checkout("3"), actions.Compare("2"))
    assert scene["summary"] == "1 loop split · 1 block moved"
    (change,) = scene["changes"]
    assert (change["sign"], change["reference"], change["current"]) == ("↕", ["C"], ["C"])
    assert "split" in change["words"]
    assert ("for j in 128", "C") in rows(scene, "before")
    assert any(text.startswith("for ax0 in 4") for text, _ in rows(scene))
    assert scene["loops"]["after"] > 100


def test_what_did_not_change_is_shown_once(scheduled):
    same = scheduled.checkout("0").apply("Normalize")
    scene = shown(same, actions.Compare("0"))
    assert scene["summary"] == "the loops do not differ"
    assert len(rows(scene)) == len(rows(shown(scheduled, actions.Checkout("0"))))
    assert not rows(scene, "before")


def test_a_long_line_is_wrapped_where_one_stage_is_shown():
    @T.prim_func(s_tir=True)
    def long(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
        for i in range(4):
            b[i] = (
                a[i]
                + a[(i + 1) % 4]
                + a[(i + 2) % 4]
                + a[(i + 3) % 4]
                + (a[i] * a[(i + 1) % 4] * a[(i + 2) % 4] * a[(i + 3) % 4] * T.float32(0.5))
            )

    scene = shown(Session(tvm.IRModule({"long": long})))
    assert scene["loops"] is not None
    picture = ElementTree.fromstring(scene["loops"]["svg"])
    assert 600 < float(picture.get("width", 0)) < 720
    (row,) = (
        one
        for one in picture.iter(f"{SVG}g")
        if "b[i] = " in "".join(one.itertext()) and one.get("class", "").startswith("row")
    )
    assert len(row.findall(f"{SVG}text")) == 2


def test_a_relax_function_has_no_loops():
    assert shown(Session(MyModule))["loops"] is None


def test_a_function_that_one_stage_lacks_is_drawn_as_added_or_removed():
    def without(_: tvm.IRModule) -> tvm.IRModule:
        return MyModule

    both = tvm.IRModule({**MatMulRelu.functions, **MyModule.functions})
    session = Session(both).apply(without).checkout("0").select_function("mm_relu")
    scene = shown(session, actions.Compare("1"))
    assert scene["summary"] == "added"
    assert scene["loops"]["svg"].count('class="sign"') == len(rows(scene))


def test_blocks_around_others_lead_to_the_first_block_inside():
    sch = tvm.s_tir.Schedule(MatMulRelu)
    _, j, _ = sch.get_loops(sch.get_sblock("Y", func_name="mm_relu"))
    outer = sch.blockize(j)
    name = sch.get(outer).name_hint
    found = rows(shown(Session(sch.mod)))
    (block,) = [node for text, node in found if text.startswith(f"block {name} ")]
    inner = [node for text, node in found if text.startswith("block ") and node == block]
    assert len(inner) == 2

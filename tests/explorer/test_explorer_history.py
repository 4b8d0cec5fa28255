"""From a node the reader gets to every stage that changed it, and from a line to the pass."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tvm import IRModule, relax
from tvm.relax.dpl import is_op, rewrite_call, wildcard

from irviz.course.mlp import MyModuleHighLevel
from irviz.session.session import Session

pytestmark = pytest.mark.worker


@pytest.fixture
def fused(opened: Any) -> Any:
    session = Session(MyModuleHighLevel)
    for name in ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps"):
        session = session.apply(name)
    return opened(session)


def history(page: Any) -> list[tuple[str, str, str]]:
    return [(one["stage"], one["names"], one["words"]) for one in page.explorer.details["history"]]


def test_the_history_of_a_node_leads_to_what_it_was_in_another_stage(fused: Any) -> None:
    fused.select("lv")
    first, lowered, last = history(fused)
    assert first[:2] == ("0", "lv0, lv1, lv2")
    assert re.fullmatch(r"mlp_high_level\.py, lines (\d+), (\d+), (\d+)", first[2])
    assert lowered[:2] == ("1", "lv0, lv1, lv2")
    assert last == ("3", "lv", "fused: lv0 + lv1 + lv2")
    step = fused.explorer.details["history"][1]
    fused.send(action="Reveal", function="main", node=step["node"], stage=step["stage"])
    assert (fused.state.stage_id, fused.canvas.selected) == ("1", "lv0")
    assert history(fused)[-1] == ("3", "lv", "fused: lv0 + lv1 + lv2")


def test_each_line_of_the_text_has_the_stage_that_changed_it_last(fused: Any) -> None:
    fused.write("hasScript", True)
    assert fused.explorer.scripts["current"]["blame"] == []  # nobody has asked for it
    fused.write("hasBlame", True)
    script = fused.explorer.scripts["current"]
    lines = zip(script["text"].splitlines(), script["blame"], strict=True)
    found = {text.strip().partition("(")[0]: (one["stage"], one["node"]) for text, one in lines}
    assert found["w0_t = R.call_tir"] == ("1", "w0_t")
    assert ("3", "lv") in found.values()
    assert found["def transpose"][0] == "2"  # which gave it an attribute
    assert found["@R.function"] == ("", "")


def wrong_rewrite(mod: IRModule) -> IRModule:
    x = wildcard()
    relu = is_op("relax.nn.relu")(x)
    main = rewrite_call(relu, lambda _, found: relax.op.abs(found[x]), mod["main"])
    mod.update_func(mod.get_global_var("main"), main)
    return mod


@pytest.mark.worker
@pytest.mark.build
def test_the_pass_that_makes_results_differ_is_found_and_shown_beside_what_it_was_given(
    opened: Any,
) -> None:
    session = Session(MyModuleHighLevel, inputs="random")
    for one in ("CanonicalizeBindings", wrong_rewrite, "LegalizeOps", "FoldConstant"):
        session = session.apply(one)
    page = opened(session)
    page.open("Results")
    page.press("Find the pass")
    assert (page.state.stage_id, page.state.reference) == ("2", "0")  # 1 is equal to 0
    assert page.text("irviz-found-pass").startswith("wrong_rewrite, which made stage 2: different")
    assert page.message == page.text("irviz-found-pass")

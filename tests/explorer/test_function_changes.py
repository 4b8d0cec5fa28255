"""Each function of a stage is listed with what became of it."""

from __future__ import annotations

import pytest
import tvm

from irviz.course.mlp import MODULES, MyModule
from irviz.course.mm_relu import MyModule as MatMulRelu
from irviz.course.mm_relu import lecture_schedule
from irviz.explorer import actions
from irviz.explorer.reducer import reduce
from irviz.explorer.stage_rows import function_changes, functions_key
from irviz.explorer.state import State
from irviz.explorer.viewer_traits import functions
from irviz.session.session import Session
from tests.explorer.performed_actions import state_after

pytestmark = pytest.mark.worker


def listed(session: Session, *done: actions.Action) -> dict[str, tuple[str, int]]:
    """Return the words and the number of changes of each function, once they are known."""
    state = state_after(session, *done)
    key = functions_key(state)
    assert key is not None
    assert {row["changes"] for row in functions(state)} == {-1}
    state = reduce(state, actions.Report(key, function_changes(state, key)))
    return {row["name"]: (row["words"], row["changes"]) for row in functions(state)}


def test_functions_say_what_a_pass_made_of_them():
    session = Session(MODULES["MyModuleHighLevel"]).apply("LegalizeOps")
    found = listed(session)
    assert found["main"] == ("7 changed", 7)
    assert {words for name, (words, _) in found.items() if name != "main"} == {"added"}


def test_a_prim_func_says_what_became_of_its_loops_since_the_stage_that_it_is_compared_with():
    both = tvm.IRModule({**MatMulRelu.functions, **MyModule.functions})
    session = Session(both).schedule("mm_relu", lecture_schedule)
    found = listed(session, actions.Checkout("3"))
    assert found["mm_relu"] == ("1 loop split · 1 block moved", 2)
    assert found["main"] == ("", 0)
    found = listed(session, actions.Checkout("3"), actions.Compare("1"))
    assert "1 loop split" in found["mm_relu"][0]
    assert found["mm_relu"][1] > 2


def test_a_pass_that_changes_nothing_changes_no_function():
    assert set(listed(Session(MyModule).apply("Normalize")).values()) == {("", 0)}


def test_a_first_stage_and_a_single_function_are_compared_with_nothing():
    for session in (Session(MyModule), Session(MatMulRelu).apply("Normalize")):
        assert functions_key(State.of(session)) is None


def test_an_attribute_that_a_pass_added_is_named_with_its_value():
    both = tvm.IRModule({**MatMulRelu.functions, **MyModule.functions})
    bind = tvm.tirx.transform.BindTarget(tvm.target.Target("llvm"))
    words, changes = listed(Session(both).apply(bind))["mm_relu"]
    assert words.startswith("attribute target: none → ")
    assert "llvm" in words
    assert len(words) <= 90
    assert changes == 1

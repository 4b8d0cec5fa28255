"""A module that shows a bug becomes as small as it can be while it shows the same bug."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import IRModule, relax
from tvm.relax.dpl import is_op, rewrite_call, wildcard

import irviz
from irviz.course.mlp import MyModule, MyModuleHighLevel
from irviz.errors import InputError
from irviz.session.reduce import Reduction
from irviz.transforms.kept_bindings import count_bindings, keep_bindings
from tests.constructs.drawing import random_modules

pytestmark = pytest.mark.worker


def operators(mod: IRModule) -> list[str]:
    """Return the operators of main, in the order of the text."""
    return [
        binding.value.op.name for block in mod["main"].body.blocks for binding in block.bindings
    ]


def calls(*names: str) -> Callable[[IRModule], bool]:
    """Return a check that fails for modules that call all of these operators."""

    def check(mod: IRModule) -> bool:
        found = set()
        relax.analysis.post_order_visit(
            mod["main"], lambda one: found.add(getattr(getattr(one, "op", None), "name", ""))
        )
        return found >= {f"relax.{name}" for name in names}

    return check


def test_only_what_the_check_needs_is_left(modules: Any) -> None:
    stack = modules.stack(22)
    assert count_bindings(stack, "main") > 130
    found = irviz.reduce(stack, calls("exp"))
    assert (operators(found.module), found.bindings[1]) == (["relax.exp"], 1)
    assert found.is_least
    two = irviz.reduce(MyModuleHighLevel, calls("add", "nn.relu"))
    assert operators(two.module) == ["relax.add", "relax.nn.relu"]
    assert "7 bindings became 2" in repr(two)


def wrong_relu(mod: IRModule) -> IRModule:
    operand = wildcard()
    pattern = is_op("relax.nn.relu")(is_op("relax.add")(operand, wildcard()))
    mod.update_func(
        mod.get_global_var("main"),
        rewrite_call(pattern, lambda _, found: relax.op.abs(found[operand]), mod["main"]),
    )
    return mod


@pytest.mark.build
def test_the_pass_that_a_bisection_found_is_wrong_for_the_smaller_module_too() -> None:
    bisection = irviz.bisect(MyModuleHighLevel, ["Normalize", wrong_relu, "LegalizeOps"])
    found = irviz.reduce(bisection)
    assert operators(found.module) == ["relax.add", "relax.nn.relu"]
    assert irviz.bisect(found.module, wrong_relu).words.startswith("different")


@pytest.mark.build
def test_a_crash_stays_a_crash_and_does_not_become_another_failure() -> None:
    def crashes_or_raises(mod: IRModule) -> IRModule:
        names = operators(mod)
        if "relax.nn.relu" in names:
            os._exit(3)
        raise ValueError("another failure")

    found = irviz.reduce(irviz.bisect(MyModuleHighLevel, [crashes_or_raises]))
    assert operators(found.module) == ["relax.nn.relu"]


def test_a_check_that_ends_its_process_is_a_failure() -> None:
    def crashes(mod: IRModule) -> bool:
        if "relax.nn.relu" in operators(mod):
            os._exit(3)
        return False

    assert operators(irviz.reduce(MyModuleHighLevel, crashes).module) == ["relax.nn.relu"]


def test_what_is_left_calls_its_functions_also_those_called_by_name() -> None:
    kept = keep_bindings(MyModule, "main", {1})
    assert {gvar.name_hint for gvar in kept.functions} == {"main", "relu0"}
    assert relax.analysis.check_well_formed(kept)


@given(random_modules(), st.data())
@settings(max_examples=25)
def test_any_bindings_make_a_module_that_is_well_formed(mod: IRModule, data: st.DataObject) -> None:
    count = count_bindings(mod, "main")
    kept = data.draw(st.sets(st.integers(0, max(count - 1, 0)), min_size=1))
    made = keep_bindings(mod, "main", kept)
    assert count_bindings(made, "main") == len([one for one in kept if one < count])
    assert relax.analysis.check_well_formed(made)


def test_what_does_not_fail_or_has_no_check_is_refused() -> None:
    with pytest.raises(InputError, match="the module does not fail"):
        irviz.reduce(MyModuleHighLevel, calls("exp"))
    with pytest.raises(InputError, match="give a function that returns whether"):
        irviz.reduce(MyModuleHighLevel)


def test_when_time_is_up_what_was_found_is_returned(modules: Any) -> None:
    found: Reduction = irviz.reduce(modules.stack(4), calls("exp"), seconds=0)
    assert found.bindings[0] == found.bindings[1]
    assert not found.is_least
    assert "time was up" in repr(found)

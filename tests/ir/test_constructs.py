"""Everything that can occur in a Relax function is read as the oracle reads it."""

import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax

from irviz.course.mlp import MODULES
from irviz.ir.function_graph import extract

PIPELINES = [
    "fused",
    "fused into PrimFuncs",
    "composite",
    "merged",
    "planned",
    "lowered",
    "lifted",
    "prepared",
]
REFUSED = (RuntimeError, ValueError, TypeError, AssertionError)
"""What TVM's passes raise at a module that they do not fit."""


def passed(constructs, pipeline, mod):
    """Return the module after a pipeline, or None where TVM refuses it."""
    try:
        return constructs.PIPELINES[pipeline](mod)
    except REFUSED:
        return None


def test_every_construct_is_read_as_the_other_reading_finds_it(constructs, check, construct):
    check(constructs.construct(construct))


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_every_construct_is_read_after_passes(constructs, check, pipeline):
    assert set(PIPELINES) == set(constructs.PIPELINES)
    count, wrong = 0, {}
    for name in constructs.WELL_FORMED:
        mod = passed(constructs, pipeline, constructs.construct(name))
        if mod is not None:
            count += 1
            try:
                check(mod)
            except AssertionError as error:
                wrong[name] = str(error)
    assert wrong == {}
    assert count >= len(constructs.WELL_FORMED) // 3, "the pipeline refuses nearly everything"


@pytest.mark.parametrize("pipeline", [None, *PIPELINES])
def test_the_lectures_modules_are_read_as_the_other_reading_finds_them(constructs, check, pipeline):
    for mod in MODULES.values():
        after = mod if pipeline is None else passed(constructs, pipeline, mod)
        if after is not None:
            check(after)


def test_the_small_modules_are_read_as_the_other_reading_finds_them(modules, check):
    small = [each for each in vars(modules).values() if isinstance(each, tvm.IRModule)]
    assert len(small) > 10
    for mod in [*small, modules.shared_constant(), modules.wide(40), modules.chain(*"xyz")]:
        check(mod)


@given(data=st.data())
def test_random_modules_are_read_as_the_other_reading_finds_them(constructs, check, data):
    mod = data.draw(constructs.random_modules())
    assert relax.analysis.check_well_formed(mod)
    check(mod)
    for gvar, function in mod.functions.items():
        if isinstance(function, relax.Function):
            assert extract(mod, gvar.name_hint) == extract(mod, gvar.name_hint)


@given(data=st.data())
def test_random_modules_are_read_after_passes(constructs, check, data):
    mod = data.draw(constructs.random_modules())
    pipeline = data.draw(st.sampled_from(PIPELINES))
    after = passed(constructs, pipeline, mod)
    if after is not None:
        check(after)


@settings(max_examples=40)
@given(data=st.data())
def test_simpler_random_modules_are_read_too(modules, check, data):
    check(data.draw(modules.programs()))

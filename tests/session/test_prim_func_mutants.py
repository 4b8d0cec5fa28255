"""The diff of two PrimFuncs is empty exactly where TVM finds them equal, and says what differs."""

import random

import pytest

from irviz.model.diff.diff_result import Aspect
from tests.prim_func_mutants import diff_of, equal_mutants, functions, is_equal, mutants
from tests.random_schedules import random_schedule

FUNCTIONS = functions(random_schedule, 3)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_diff_of_a_mutant_is_empty_exactly_where_tvm_finds_it_equal(name):
    function = FUNCTIONS[name]
    made = list(mutants(function, random.Random(name), 1))
    assert len(made) > 15
    for kind, mutant in made:
        diff = diff_of(function, mutant)
        assert bool(diff) == (not is_equal(function, mutant)), kind


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_differs_in_a_mutant_is_told_by_its_blocks_buffers_and_statements(name):
    """The first line that differs, which is said otherwise, hides what else differs."""
    function = FUNCTIONS[name]
    made = list(mutants(function, random.Random(name), 1))
    different = [one for one in made if one[0] != "attribute" and not is_equal(function, one[1])]
    assert different
    for kind, mutant in different:
        (found,) = diff_of(function, mutant).functions
        assert found.loops.differs, kind
        assert all(
            each.before != each.after or each.aspect in (Aspect.LOOPS, Aspect.DOMAIN)
            for block in found.loops.blocks
            for each in block.differences
        ), kind


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_with_other_names_does_not_differ(name):
    function = FUNCTIONS[name]
    made = list(equal_mutants(function))
    assert made
    for kind, mutant in made:
        assert is_equal(function, mutant), kind
        assert not diff_of(function, mutant), kind

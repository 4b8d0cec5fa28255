"""A diff is empty exactly where TVM finds two modules equal, up to names and legal orders.

More mutants, of more modules, are tried by `bench/diff.py mutants`.
"""

import random

import numpy as np
import pytest
import tvm
from tvm import relax

import irviz
from irviz.course.mlp import MODULES
from irviz.session import stage_diff

SEED = 1


def wrong(mutants, symbolic_run, name, mod, count):
    """Return the mutants about which the diff is wrong, and how many it was asked about."""
    chance = random.Random(f"{SEED} {name}")
    kinds = [*mutants.ORDERS, *mutants.OTHER, *mutants.EQUAL]
    made = list(mutants.mutants(mod, chance, count, symbolic_run.is_same_run, kinds))
    found = [one for one in made if bool(irviz.diff(mod, one.module)) is one.is_equal]
    return [(name, one.kind, one.is_equal) for one in found], len(made)


@pytest.mark.parametrize("name", ["MyModule", "MyModuleHighLevel"])
def test_mutants_of_the_lectures_modules_and_of_what_they_are_lowered_to(
    mutants, symbolic_run, name
):
    mods = [MODULES[name], *mutants.lowered_stages(MODULES[name])]
    for number, mod in enumerate(mods):
        found, count = wrong(mutants, symbolic_run, f"{name} {number}", mod, 6)
        assert (found, count) == ([], 6)


@pytest.mark.parametrize("seed", range(3))
def test_mutants_of_functions_that_write_over_their_arguments(mutants, symbolic_run, seed):
    found, count = wrong(mutants, symbolic_run, f"in place {seed}", mutants.in_place(seed), 20)
    assert (found, count) == ([], 20)


@pytest.mark.parametrize("part", range(4))
def test_mutants_of_a_quarter_of_the_constructs(mutants, symbolic_run, constructs, part):
    for name in sorted(constructs.WELL_FORMED)[part::4]:
        found, _ = wrong(mutants, symbolic_run, name, constructs.construct(name), 3)
        assert found == []


def test_mutants_of_lowered_constructs(mutants, symbolic_run, constructs):
    for pipeline in ("planned", "lowered"):
        for name in ("network", "symbolic network", "in place"):
            mod = constructs.PIPELINES[pipeline](constructs.construct(name))
            found, count = wrong(mutants, symbolic_run, f"{pipeline} {name}", mod, 12)
            assert (found, count) == ([], 12)


def test_the_mutants_find_a_diff_that_forgets_an_aspect(mutants, symbolic_run, monkeypatch):
    mod = mutants.in_place(1)
    for name, nothing in (("moved_nodes", {}), ("result_differences", ()), ("moved_params", {})):
        with monkeypatch.context() as forgetful:
            forgetful.setattr(stage_diff, name, lambda *_, nothing=nothing: nothing)
            found, _ = wrong(mutants, symbolic_run, "in place 1", mod, 40)
        assert bool(found) is (name != "moved_params")


@pytest.mark.build
def test_orders_that_are_no_difference_compute_the_same(mutants, symbolic_run):
    arrays = [np.arange(16, dtype="float32").reshape(4, 4) / (at + 8) for at in range(3)]

    def results(mod):
        built = tvm.compile(relax.transform.LegalizeOps()(mod), target="llvm")
        given = [tvm.runtime.tensor(one) for one in arrays]
        returned = relax.VirtualMachine(built, tvm.cpu())["main"](*given)
        return [one.numpy() for one in (*returned, *given)]

    others = 0
    for seed in range(2):
        mod = mutants.in_place(seed, is_runnable=True)
        expected = results(mod)
        chance = random.Random(seed)
        made = mutants.mutants(mod, chance, 6, symbolic_run.is_same_run, mutants.ORDERS)
        for one in made:
            if one.is_equal:
                assert not irviz.diff(mod, one.module)
                for mine, theirs in zip(expected, results(one.module), strict=True):
                    np.testing.assert_array_equal(mine, theirs)
                others += 1
    assert others >= 3

"""A node is the same where TVM finds its binding structurally equal, and nowhere else.

All passes over all constructs and more random modules are tried by `bench/diff.py`.
"""

import pytest
import tvm_ffi
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import ir, relax

import irviz
from irviz.course.mlp import MODULES
from irviz.model.diff.node_differences import Comparison
from irviz.model.diff.records import NodeChange
from irviz.transforms.passes.catalog import catalog

ENTRIES = [
    entry
    for entry in catalog()
    if entry.group in ("relax", "operator rewrites", "pipelines")
    and not entry.is_measured
    and not entry.evaluates_code
]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.full_name)
def test_every_pass_over_the_lectures_modules(diff_by_structure, entry):
    for name, mod in MODULES.items():
        assert diff_by_structure.wrong_after(entry, mod) in (None, []), name


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.full_name)
def test_every_pass_over_an_eighth_of_the_constructs(constructs, diff_by_structure, entry):
    for name in sorted(constructs.WELL_FORMED)[ENTRIES.index(entry) % 8 :: 8]:
        if name not in diff_by_structure.UNMARKABLE and not diff_by_structure.ends(entry, name):
            mod = constructs.construct(name)
            assert diff_by_structure.wrong_after(entry, mod) in (None, []), name


def test_passes_over_random_modules(constructs, diff_by_structure):
    @settings(max_examples=6, deadline=None)
    @given(constructs.random_modules(), st.permutations(ENTRIES))
    def check(mod, entries):
        for entry in entries[:6]:
            assert diff_by_structure.wrong_after(entry, mod) in (None, []), entry.name

    check()


def test_other_names_of_variables_are_no_difference_in_any_construct(constructs, diff_by_structure):
    for name in constructs.WELL_FORMED:
        mod = constructs.construct(name)
        assert not irviz.diff(mod, mod), name
        if name not in diff_by_structure.UNMARKABLE:
            renamed = diff_by_structure.renamed(mod)
            assert tvm_ffi.structural_equal(mod, renamed)
            assert not irviz.diff(mod, renamed), name


@pytest.mark.parametrize("kind", ["simple", "with everything"])
def test_other_names_and_orders_are_no_difference_in_random_modules(
    modules, constructs, diff_by_structure, kind
):
    strategy = modules.programs() if kind == "simple" else constructs.random_modules()

    @settings(max_examples=15, deadline=None)
    @given(strategy, st.integers(0, 1000))
    def check(mod, seed):
        renamed = diff_by_structure.renamed(mod)
        assert tvm_ffi.structural_equal(mod, renamed)
        permuted = diff_by_structure.permuted(renamed, seed)
        for other in (mod, renamed, diff_by_structure.permuted(mod, seed), permuted):
            assert not irviz.diff(mod, other)

    check()


def test_the_oracle_finds_what_a_diff_leaves_out(diff_by_structure, monkeypatch):
    entry = next(one for one in ENTRIES if one.name == "LegalizeOps")
    mod = MODULES["MyModuleHighLevel"]
    monkeypatch.setattr(Comparison, "differences", lambda *_: ())
    assert len(diff_by_structure.wrong_nodes(mod, entry.make()(mod))) == 7


@pytest.mark.parametrize("name", [*MODULES, "lowered"])
def test_another_order_of_independent_bindings_is_no_difference(diff_by_structure, name):
    lowered = relax.transform.LegalizeOps()(MODULES["MyModuleHighLevel"])
    mod = lowered if name == "lowered" else MODULES[name]
    texts = set()
    for seed in range(8):
        other = diff_by_structure.permuted(mod, seed)
        texts.add(other.script())
        assert not irviz.diff(mod, other)
        assert not irviz.diff(diff_by_structure.renamed(other), mod)
    assert name in ("MyModuleHighLevel", "lowered") or len(texts) == 1
    assert len(texts) > 1 or name not in ("MyModuleHighLevel", "lowered")


def composite_groups(before, after):
    """Return the bindings that each call of a new function stands for, by reading its body.

    FuseOps keeps the callees of what it moves, and the order of the text.
    """
    rest = [(str(b.var.name), _callee(b.value)) for b in before["main"].body.blocks[0].bindings]
    names = {str(gvar.name_hint) for gvar in before.functions}
    found = {}
    for binding in after["main"].body.blocks[0].bindings:
        called = _callee(binding.value)
        inside = [called]
        if called not in names:
            (block,) = after[called].body.blocks
            inside = [_callee(inner.value) for inner in block.bindings]
        members = []
        for callee in inside:
            at = next(index for index, (_, other) in enumerate(rest) if other == callee)
            members.append(rest.pop(at)[0])
        if called not in names:
            found[str(binding.var.name)] = tuple(members)
    assert rest == []
    return found


def _callee(value):
    called = value.args[0] if isinstance(value.op, ir.Op) else value.op
    return str(called.name_hint)


def test_fused_groups_are_those_of_the_composite_functions():
    before = relax.transform.LegalizeOps()(MODULES["MyModuleHighLevel"])
    before = relax.transform.AnnotateTIROpPattern()(before)
    after = relax.transform.FuseOps(fuse_opt_level=2)(before)
    (main,) = (one for one in irviz.diff(before, after).functions if one.name == "main")
    groups = {one.after[0]: one.before for one in main.nodes if one.change is NodeChange.FUSED}
    assert groups == composite_groups(before, after) != {}

"""A node is the same where TVM finds its binding structurally equal, and nowhere else.

All passes over all constructs and more random modules are tried by `bench/diff.py`.
"""

import pytest
import tvm_ffi
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import ir, relax
from tvm.relax.dpl import is_op, wildcard

import irviz
from irviz.course.mlp import MODULES
from irviz.model.diff.compare_functions import NodeComparison
from irviz.model.diff.diff_result import ChangeKind
from irviz.model.graph.graph import NodeKind
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
def test_every_pass_over_a_sixteenth_of_the_constructs(constructs, diff_by_structure, entry):
    for name in sorted(constructs.WELL_FORMED)[ENTRIES.index(entry) % 16 :: 16]:
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
    monkeypatch.setattr(NodeComparison, "differences", lambda *_: ())
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
    groups = {one.after[0]: one.before for one in main.nodes if one.change is ChangeKind.FUSED}
    assert groups == composite_groups(before, after) != {}


def patterns():
    """Return what a library might compute at once, the larger first."""
    product = is_op("relax.matmul")(wildcard(), wildcard())
    total = is_op("relax.add")(product, wildcard())
    active = is_op("relax.nn.relu")(total)
    return [("lib.matmul_add_relu", active), ("lib.matmul_add", total), ("lib.matmul", product)]


LIBRARY_PASSES = {
    "composite functions": [relax.transform.FuseOpsByPattern(patterns(), bind_constants=False)],
    "functions for a library": [
        relax.transform.FuseOpsByPattern(patterns(), bind_constants=False, annotate_codegen=True)
    ],
    "merged functions": [
        relax.transform.FuseOpsByPattern(patterns(), bind_constants=False),
        relax.transform.MergeCompositeFunctions(),
    ],
}


def computed_inside(function):
    """Return the operators that a function computes, in order, also those of inner functions."""
    found = []
    for block in function.body.blocks:
        for binding in block.bindings:
            if isinstance(binding.value, relax.Function):
                found += computed_inside(binding.value)
            elif isinstance(binding.value, ir.Call) and isinstance(binding.value.op, ir.Op):
                found.append(binding.value.op.name)
    return found


@pytest.mark.parametrize("kind", LIBRARY_PASSES)
@pytest.mark.parametrize("source", ["the lecture's", "random"])
def test_groups_for_a_library_are_those_of_the_composite_functions(diff_by_values, kind, source):
    is_random = source == "random"
    before = diff_by_values.random_operators(3) if is_random else MODULES["MyModuleHighLevel"]
    before = relax.transform.DeadCodeElimination()(before)
    after = before
    for each in LIBRARY_PASSES[kind]:
        after = each(after)
    (main,) = (one for one in irviz.diff(before, after).functions if one.name == "main")
    graphs = main.graphs
    groups = {one.after: one for one in main.nodes if one.change is ChangeKind.FUSED}
    calls = [one.id for one in graphs[1].nodes if one.kind is NodeKind.CALL_FUNCTION]
    assert {two for ids in groups for two in ids} == set(calls) != set()
    for call in calls:
        group = groups[(call,)]
        expected = computed_inside(after[graphs[1][call].callee])
        assert sorted(graphs[0][one].callee for one in group.before) == sorted(expected)
        assert {part.before for part in group.parts} == set(group.before)
        assert len(group.parts) == len(group.before)
    assert {one.change for one in main.nodes} == {ChangeKind.SAME, ChangeKind.FUSED}


def test_an_inner_function_that_was_lifted_leaves_the_users_of_its_call_alone():
    builder = relax.BlockBuilder()
    tensor = relax.TensorType([2], "float32")
    x, a = relax.Var("x", tensor), relax.Var("a", tensor)
    total = relax.Var("total", tensor)
    block = relax.BindingBlock([relax.VarBinding(total, relax.op.add(a, a))])
    inner = relax.Function([a], relax.SeqExpr([block], total), tensor)
    with builder.function("main", [x]):
        function = builder.emit(inner, "inner")
        called = builder.emit(ir.Call(function, [x]), "called")
        builder.emit_func_output(builder.emit(relax.op.exp(called), "used"))
    mod = builder.get()
    diff = irviz.diff(mod, relax.transform.LambdaLift()(mod))
    (main,) = (one for one in diff.functions if one.name == "main")
    changed = {node for one in main.changed_nodes for node in one.after}
    assert "called" in changed
    assert "used" not in changed

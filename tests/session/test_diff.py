"""A diff says of each function and node what became of it, and nothing that is not so."""

import json
import pickle
import re
from collections import Counter
from threading import Barrier

import numpy as np
import pytest
from tvm import relax
from tvm_ffi import structural_equal

import irviz
from irviz.course.digits import mlp_params
from irviz.course.mlp import MODULES, MyModuleHighLevel
from irviz.loaders.load import load_content
from irviz.model.diff.diff_result import Aspect, ChangeKind
from irviz.session import open_session, stage_cache
from irviz.session.session import Session
from irviz.transforms.stage import Stage

pytestmark = pytest.mark.worker


def replaced(mod, old, new):
    """Return the module with a part of its TVMScript replaced."""
    text = mod.script()
    assert text.count(old) == 1
    return load_content(text.replace(old, new).encode(), "module.py").module


def nodes_of(diff, function="main"):
    (found,) = (one for one in diff.functions if one.name == function)
    return found.nodes


def changed(diff, function="main"):
    (found,) = (one for one in diff.functions if one.name == function)
    return [(one.change, one.before, one.after) for one in found.changed_nodes]


def fused():
    session = Session(MyModuleHighLevel, isolate=False)
    for name in ("LegalizeOps", "AnnotateTIROpPattern"):
        session = session.apply(name)
    return session.apply("FuseOps", fuse_opt_level=2)


def test_two_files_are_opened_at_once(tmp_path, monkeypatch):
    paths = [tmp_path / name for name in ("a.py", "b.py")]
    for path in paths:
        path.write_text(MyModuleHighLevel.script(), encoding="utf-8")
    both, load = Barrier(2, timeout=20), open_session.load

    def load_with_the_other(what, **options):
        both.wait()
        return load(what, **options)

    monkeypatch.setattr(open_session, "load", load_with_the_other)
    assert not any(one.changed_nodes for one in irviz.diff(*paths).functions)
    paths[0].write_text("nothing", encoding="utf-8")
    with pytest.raises(irviz.LoadError, match=r"a\.py"):
        irviz.diff(*paths)


def test_over_several_stages_each_function_is_read_once(monkeypatch):
    read = Counter()

    def counting(mod, function, *others):
        read[mod.__chandle__(), function] += 1
        return read_function(mod, function, *others)

    read_function = stage_cache.read_function
    monkeypatch.setattr(stage_cache, "read_function", counting)
    mod = MyModuleHighLevel.clone()
    for index in range(40):  # more than the stages of which something is kept
        mod[f"other{index}"] = MyModuleHighLevel["main"].with_attr("global_symbol", f"other{index}")
    session = Session(mod, isolate=False).apply("LegalizeOps").apply("FoldConstant")
    session.diff("0", "2")
    assert max(read.values()) == 1 < len(read)


@pytest.mark.parametrize("after", ["1", "3", "4"])
def test_the_diff_of_a_function_alone_is_that_of_the_whole_module(after):
    session = fused().apply("FuseTIR")
    every = session.diff("0" if after == "1" else "1", after).functions
    assert every
    for name in {one.name for one in every}:
        alone = session.diff("0" if after == "1" else "1", after, function=name).functions
        expected = [one for one in every if name in (one.before, one.after)]
        assert [told(one) for one in alone] == [told(one) for one in expected]


def told(one):
    kinds = [(node.change, node.before, node.after, node.differences) for node in one.nodes]
    return one.before, one.after, one.change, one.differences, kinds


@pytest.mark.parametrize("name", MODULES)
def test_a_module_does_not_differ_from_itself(name):
    diff = irviz.diff(MODULES[name], MODULES[name])
    assert not diff
    assert {one.change for one in diff.functions} == {ChangeKind.SAME}
    assert {one.change for one in nodes_of(diff)} == {ChangeKind.SAME}


def test_one_changed_binding_is_the_only_difference():
    after = replaced(MyModuleHighLevel, "R.nn.relu(lv1)", "R.nn.gelu(lv1)")
    diff = irviz.diff(MyModuleHighLevel, after)
    assert diff
    (node,) = next(one for one in diff.functions if one.name == "main").changed_nodes
    assert (node.change, node.before, node.after) == (ChangeKind.CHANGED, ("lv2",), ("lv2",))
    assert list(map(str, node.differences)) == ["callee: relax.nn.relu → relax.nn.gelu"]


@pytest.mark.parametrize("name", ["lv", "other"])
def test_operands_that_changed_places_are_told_whatever_the_name_of_the_result(name):
    def module(name, order):
        params = [relax.Var(one, relax.TensorType((4,), "float32")) for one in "xy"]
        builder = relax.BlockBuilder()
        with builder.function("main", params):
            found = builder.emit(relax.op.subtract(*(params[at] for at in order)), name)
            builder.emit_func_output(builder.emit(relax.op.exp(found)))
        return builder.get()

    (node,) = (
        one
        for one in nodes_of(irviz.diff(module("lv", (0, 1)), module(name, (1, 0))))
        if one.change is ChangeKind.CHANGED
    )
    assert (node.before, node.after) == (("lv",), (name,))
    assert {one.aspect for one in node.differences} == {Aspect.OPERAND}


def test_another_operand_of_the_same_name_is_called_another():
    text = """
from tvm.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2,), "float32")):
        with R.dataflow():
            {first} = R.exp(x)
            {second} = R.tanh({first})
            gv = R.add({first}, R.nn.relu(b))
            R.output(gv)
        return gv
"""
    one, two = (
        load_content(text.format(first=first, second=second).encode(), "m.py").module
        for first, second in (("a", "b"), ("b", "a"))
    )
    assert "operand 0: b → another b" in irviz.diff(one, two).text()


def test_a_lowered_operator_says_both_names():
    session = Session(MyModuleHighLevel, isolate=False).apply("LegalizeOps")
    nodes = {one.after: one for one in nodes_of(session.diff("0"))}
    (difference,) = nodes["lv2",].differences
    assert difference[:3] == (Aspect.LOWERED, "relax.nn.relu", "relu")


def test_a_fused_call_says_what_it_was_made_of():
    session = fused()
    assert changed(session.diff("2", "3")) == [
        (ChangeKind.FUSED, ("lv0", "lv1", "lv2"), ("lv",)),
        (ChangeKind.FUSED, ("lv3", "out"), ("gv",)),
    ]


def test_a_fused_prim_func_says_what_it_was_made_of_by_the_stages_between():
    session = fused().apply("FuseTIR")
    diff = session.diff("0", "4")
    groups = [one for one in changed(diff) if one[0] is ChangeKind.FUSED]
    assert groups == [
        (ChangeKind.FUSED, ("lv0", "lv1", "lv2"), ("lv",)),
        (ChangeKind.FUSED, ("lv3", "out"), ("gv",)),
    ]
    back = [one for one in changed(session.diff("4", "0")) if one[0] is ChangeKind.SPLIT]
    assert back == [(ChangeKind.SPLIT, two, one) for _, one, two in groups]


def parts(diff, function="main"):
    """Return which node became which, one by one, of the nodes that were fused or split."""
    found = [part for one in nodes_of(diff, function) for part in one.parts]
    return [tuple(one.replace("\ue000", "") for one in part[:2]) for part in found]


LAYERS = [
    ("lv0", "lv/lv0"),
    ("lv1", "lv/lv1"),
    ("lv2", "lv/gv"),
    ("lv3", "gv/lv3"),
    ("out", "gv/gv"),
]


@pytest.mark.parametrize("later", [(), ("CanonicalizeBindings",), ("ToNonDataflow", "Normalize")])
def test_what_a_fused_call_was_made_of_is_known_one_by_one_after_later_passes(later):
    session = fused()
    for name in later:
        session = session.apply(name)
    assert parts(session.diff("0")) == LAYERS
    back = session.diff(session.current_id, "0")
    assert parts(back) == [(inside, one) for one, inside in LAYERS]


def test_the_blocks_of_a_fused_prim_func_are_known_one_by_one():
    session = fused().apply("FuseTIR")
    expected = [
        ("lv0", "lv/matmul"),
        ("lv1", "lv/T_add"),
        ("lv2", "lv/compute"),
        ("lv3", "gv/matmul"),
        ("out", "gv/T_add"),
    ]
    assert parts(session.diff("0", "4")) == expected
    assert parts(session.diff("4", "0")) == [(block, one) for one, block in expected]
    assert parts(session.apply("DeadCodeElimination").diff("0", "5")) == expected


def test_fused_and_inlined_again_is_no_difference():
    session = fused()
    inlined = relax.transform.InlinePrivateFunctions()(session.current.module)
    stages = [*session.stages, Stage("4", inlined, parent="3")]
    session = Session.from_stages(stages)
    assert not session.diff("2", "4")
    assert not session.diff("4", "2")
    assert session.diff("2", "3")


def test_an_inlined_call_says_what_it_became():
    fused_module = fused().current.module
    inlined = relax.transform.InlinePrivateFunctions()(fused_module)
    session = Session.from_stages([Stage("0", fused_module), Stage("1", inlined, parent="0")])
    found = [one for one in nodes_of(session.diff("0", "1")) if one.change is ChangeKind.INLINED]
    assert [(one.callee, len(one.after)) for one in found] == [
        ("fused_matmul_add_relu", 3),
        ("fused_matmul1_add1", 2),
    ]


ONE_OPERATOR = """
@I.ir_module
class Module:
    @R.function(private=True)
    def twice(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        y = R.add(x, x)
        return y

    @R.function
    def main(x: R.Tensor((2,), "float32")):
        z = Module.twice(x)
        return z
"""


def test_a_call_of_one_operator_is_inlined_and_the_reverse_is_fused():
    before = load_content(ONE_OPERATOR.encode(), "module.py").module
    after = relax.transform.InlinePrivateFunctions()(before)
    for diff, change in (
        (irviz.diff(before, after), ChangeKind.INLINED),
        (irviz.diff(after, before), ChangeKind.FUSED),
    ):
        (main,) = (one for one in diff.functions if one.name == "main")
        (node,) = main.changed_nodes
        assert (node.change, node.callee) == (change, "twice")


def test_what_was_folded_into_a_constant_is_one_group():
    session = Session(MyModuleHighLevel, params=mlp_params(), isolate=False).bind()
    session = session.apply("LegalizeOps").apply("FoldConstant")
    assert changed(session.diff("2", "3")) == [
        (ChangeKind.FOLDED, ("w0_t[0]", "w0_t"), ("lv0[1]",)),
        (ChangeKind.FOLDED, ("w1_t[0]", "w1_t"), ("lv3[1]",)),
    ]


def test_a_constant_of_another_value_is_said_at_the_line_that_uses_it():
    x = relax.Var("x", relax.TensorType([2], "float32"))
    modules = []
    for numbers in ([1, 2], [1, 3]):
        builder = relax.BlockBuilder()
        with builder.function("main", [x]):
            y = builder.emit(relax.op.add(x, relax.const(np.array(numbers, "float32"))), "y")
            builder.emit_func_output(y)
        modules.append(builder.get())
    (line,) = (one for one in str(irviz.diff(*modules)).splitlines() if one.startswith("~"))
    assert line.endswith('R.add(x, metadata["ir.GenericConst"][0])  # y[1]: value of the constant')


def test_a_call_that_became_an_allocation_and_a_call_is_split():
    session = Session(MyModuleHighLevel, isolate=False).apply("LegalizeOps")
    diff = session.apply("CallTIRRewrite").diff("1")
    found = changed(diff)
    assert len(found) == 7
    assert found[0] == (ChangeKind.SPLIT, ("w0_t",), ("alloc", "_", "w0_t"))
    assert {change for change, _, _ in found} == {ChangeKind.SPLIT}


def test_all_that_a_call_of_several_results_writes_is_of_that_call(modules):
    session = Session(modules.TwoOutputs, isolate=False)
    for name in ("ToNonDataflow", "RemovePurityChecking", "CallTIRRewrite"):
        session = session.apply(name)
    for diff in (session.diff("2", "3"), session.diff("3", "2")):
        (found,) = changed(diff)
        both, parts = sorted(found[1:], key=len)
        assert (both, parts) == (("both",), ("alloc", "alloc1", "_", "both"))


def test_inserted_casts_are_added_and_operators_beside_them_are_not():
    session = Session(MyModuleHighLevel, isolate=False).apply("ToMixedPrecision")
    diff = session.diff("0")
    before, after = diff.functions[0].graphs
    assert ChangeKind.ADDED in {node.change for node in nodes_of(diff)}
    for node in nodes_of(diff):
        if node.change is ChangeKind.ADDED:
            assert after[node.after[0]].callee == "relax.astype"
        else:
            assert before[node.before[0]].callee == after[node.after[0]].callee


def test_casts_in_a_deep_function_are_all_that_is_added():
    builder = relax.BlockBuilder()
    params = [relax.Var(name, relax.TensorType([8, 8], "float32")) for name in "xuvw"]
    with builder.function("main", params):
        with builder.dataflow():
            value = params[0]
            for weight in params[1:]:
                turned = builder.emit(relax.op.permute_dims(weight))
                value = builder.emit(relax.op.matmul(value, turned))
                wide = builder.emit(relax.op.reshape(value, (2, 4, 8)))
                value = builder.emit(relax.op.reshape(wide, (8, 8)))
            value = builder.emit_output(relax.op.nn.softmax(value))
        builder.emit_func_output(value)
    before = builder.get()
    diff = irviz.diff(before, relax.transform.ToMixedPrecision()(before))
    graphs = diff.functions[0].graphs
    assert ChangeKind.ADDED in {one.change for one in nodes_of(diff)}
    for one in nodes_of(diff):
        assert one.change in (ChangeKind.SAME, ChangeKind.CHANGED, ChangeKind.ADDED)
        callees = [graph[node].callee for graph, (node,) in _sides(graphs, one)]
        assert callees == ["relax.astype"] or len(set(callees)) == len(callees) - 1


def _sides(graphs, node):
    return [pair for pair in zip(graphs, (node.before, node.after), strict=True) if pair[1]]


def test_a_bound_parameter_is_changed_and_what_uses_it_is_not():
    session = Session(MyModuleHighLevel, params=mlp_params(), isolate=False).bind()
    found = nodes_of(session.diff("0"))
    bound = [one for one in found if one.change is not ChangeKind.SAME]
    assert {one.before[0] for one in bound} == {"w0", "b0", "w1", "b1"}
    assert {each.aspect for one in bound for each in one.differences} == {Aspect.BOUND}


def test_a_renamed_function_is_neither_removed_nor_added():
    lowered = relax.transform.LegalizeOps()(MyModuleHighLevel)
    text = lowered.script().replace("relu", "rectified")
    diff = irviz.diff(lowered, load_content(text.encode(), "module.py").module)
    (function,) = (one for one in diff.functions if one.before != one.after)
    assert (function.before, function.after) == ("relu", "rectified")
    assert not diff, "the function is private: nobody else knows its name"


def test_a_diff_is_plain_data():
    session = fused()
    diff = session.diff("0", "3")
    assert diff == session.diff("0", "3")
    assert diff != session.diff("0", "1")
    assert json.loads(json.dumps(diff.to_dict()))["differs"] is True
    assert b"tvm" not in pickle.dumps(diff)


def test_the_text_has_the_lines_of_both_and_folds_what_is_unchanged():
    after = replaced(MyModuleHighLevel, "R.nn.relu(lv1)", "R.nn.gelu(lv1)")
    text = irviz.diff(MyModuleHighLevel, after).text()
    signed = [line for line in text.splitlines() if line[:2] in ("- ", "+ ")]
    assert len(signed) == 2
    assert "R.nn.relu(lv1)" in signed[0]
    assert "R.nn.gelu(lv1)  # callee: relax.nn.relu → relax.nn.gelu" in signed[1]
    assert "… 4 unchanged" in text
    assert "\x1b[" not in text
    assert "\x1b[7m" in irviz.diff(MyModuleHighLevel, after).text(colour=True)


def test_a_text_that_differs_in_names_is_equal_and_says_so():
    text = MyModuleHighLevel.script()
    for name in ("lv0", "lv1", "w0", "out"):
        text = re.sub(rf"\b{name}\b", f"renamed_{name}", text)
    diff = irviz.diff(MyModuleHighLevel, load_content(text.encode(), "module.py").module)
    assert not diff
    assert diff.text().endswith("do not differ: only names, or the order of independent lines\n")


def test_a_fused_call_stands_below_what_it_was_made_of():
    lines = fused().diff("2", "3").text().splitlines()
    at = next(index for index, line in enumerate(lines) if "# fused 3 → 1" in line)
    assert [line[:1] for line in lines[at - 3 : at + 2]] == ["-", "-", "-", "+", " "]


def test_a_stage_does_not_differ_from_itself():
    session = fused()
    assert session.diff("0", "1")
    assert not session.diff("1", "1")


def test_an_independent_line_that_moved_is_no_difference():
    lines = MyModuleHighLevel.script().splitlines()
    (at,) = (index for index, line in enumerate(lines) if "w1_t:" in line)
    lines.insert(at - 2, lines.pop(at))
    moved = load_content("\n".join(lines).encode(), "m.py").module
    assert not structural_equal(moved, MyModuleHighLevel)
    assert not irviz.diff(MyModuleHighLevel, moved)


def test_text_obeys_no_control_characters_of_a_name():
    x = relax.Var("x\x1b[31m", relax.TensorType([2], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.add(x, x)))
    mod = builder.get()
    diff = irviz.diff(mod, relax.transform.LegalizeOps()(mod))
    assert "x__31m" in diff.text()
    assert "\x1b" not in diff.text()

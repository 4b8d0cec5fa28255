"""What a module still computes has a partner in a diff, however it is computed now."""

import numpy as np
import pytest
import tvm
from tvm import relax

import irviz
from irviz.course.mlp import MODULES, MyModuleHighLevel
from irviz.loaders.load import load_content
from irviz.model.diff.diff_result import Aspect, ChangeKind

pytestmark = pytest.mark.worker

X = relax.TensorType((4, 4), "float32")


def function(make, *types, private=False):
    """Return a module whose `main` returns what `make` emits of its parameters."""
    builder = relax.BlockBuilder()
    params = [relax.Var(f"x{at}", type_) for at, type_ in enumerate(types)]
    with builder.function("main", params, private=private):
        with builder.dataflow():
            result = builder.emit_output(make(builder, *params))
        builder.emit_func_output(result)
    return builder.get()


def nodes(before, after, name="main"):
    (found,) = (one for one in irviz.diff(before, after).functions if one.name == name)
    return found.nodes


def pairs(before, after):
    return {one.before: one.after for one in nodes(before, after)}


def unpaired(before, after):
    """Return the callees of nodes that were removed."""
    (main,) = (one for one in irviz.diff(before, after).functions if one.name == "main")
    removed = [one.before[0] for one in main.nodes if one.change is ChangeKind.REMOVED]
    return [main.graphs[0][one].callee or main.graphs[0][one].kind.value for one in removed]


def test_operators_that_are_lowered_beside_a_cast_keep_their_variables():
    mod = function(
        lambda builder, x: builder.emit(
            relax.op.add(
                builder.emit(relax.op.astype(builder.emit(relax.op.exp(x)), "float16")),
                builder.emit(relax.op.astype(x, "float16")),
            )
        ),
        X,
    )
    after = relax.transform.LegalizeOps()(mod)
    found = nodes(mod, after)
    assert {one.change for one in found} == {ChangeKind.SAME, ChangeKind.CHANGED}
    assert all(one.before == one.after for one in found)


def test_an_operation_keeps_its_partner_where_a_cast_takes_its_variable():
    builder = relax.BlockBuilder()
    x, w = (relax.Var(name, X) for name in "xw")
    kept, made = relax.DataflowVar("kept", X), relax.DataflowVar("made", X)
    result = relax.Var("result", X)

    def written(*bindings):
        block = relax.DataflowBlock([relax.VarBinding(*one) for one in bindings])
        main = relax.Function([x, w], relax.SeqExpr([block], result), X)
        return tvm.IRModule({"main": main.with_attr("global_symbol", "main")})

    product = builder.normalize(relax.op.matmul(x, w))
    before = written((kept, product), (result, relax.op.tanh(kept)))
    cast = builder.normalize(relax.op.astype(made, "float32"))
    after = written((made, product), (kept, cast), (result, relax.op.tanh(kept)))
    for one, other, change in (
        (before, after, ChangeKind.ADDED),
        (after, before, ChangeKind.REMOVED),
    ):
        found = {(one.change, one.before, one.after) for one in nodes(one, other)}
        pair = (("kept",), ("made",)) if change is ChangeKind.ADDED else (("made",), ("kept",))
        assert any(each[1:] == pair for each in found)
        assert [each[0] for each in found if () in each] == [change]


def test_other_layouts_are_changes_of_the_same_operators(diff_by_values):
    image, kernel = (
        relax.TensorType((1, 3, 8, 8), "float32"),
        relax.TensorType((4, 3, 3, 3), "float32"),
    )

    def convolved(builder, x, w):
        value = builder.emit(relax.op.nn.relu(builder.emit(relax.op.nn.conv2d(x, w))))
        return relax.op.add(value, value)

    mod = function(convolved, image, kernel)
    after = relax.transform.ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})(mod)
    for other in (after, diff_by_values.read_again(after)):
        changed = [one for one in nodes(mod, other) if one.change is ChangeKind.CHANGED]
        assert unpaired(mod, other) == []
        names = {each.what for one in changed for each in one.differences}
        assert {"data_layout", "kernel_layout"} <= names


@pytest.mark.parametrize("is_read", [False, True], ids=["variables shared", "read from texts"])
def test_a_model_and_its_fused_form_are_compared_directly(is_read, diff_by_values):
    def dense(builder, x, w, v):
        value = builder.emit(relax.op.matmul(x, w))
        return relax.op.matmul(builder.emit(relax.op.nn.relu(value)), v)

    mod = function(dense, X, X, X)
    after = diff_by_values.lowered(mod, *diff_by_values.FUSED)
    after = diff_by_values.read_again(after) if is_read else after
    *_, one, two = nodes(mod, after)
    assert (one.change, one.before, one.callee) == (
        ChangeKind.FUSED,
        ("lv", "lv1"),
        "fused_matmul_relu",
    )
    assert (two.change, len(two.before), len(two.after)) == (ChangeKind.CHANGED, 1, 1)
    assert [each.aspect for each in two.differences] == [Aspect.LOWERED]
    legal = diff_by_values.lowered(mod, "LegalizeOps")
    assert {one.change for one in nodes(legal, after)} == {ChangeKind.SAME, ChangeKind.FUSED}


def test_each_call_becomes_its_own_buffer_and_call(diff_by_values):
    mod = function(lambda builder, x, w: relax.op.tanh(builder.emit(relax.op.matmul(x, w))), X, X)
    after = diff_by_values.lowered(mod, *diff_by_values.CALLS)
    for other in (after, diff_by_values.read_again(after)):
        found = [one for one in nodes(mod, other) if one.change is not ChangeKind.SAME]
        assert [len(one.before) for one in found] == [1, 1]
        assert [len(one.after) for one in found] == [3, 3]


@pytest.mark.parametrize("passes", ["calls that write to buffers", "fused functions"])
def test_items_of_lowered_tuples_keep_their_partners(passes, diff_by_values):
    def halves(builder, x):
        both = builder.emit(relax.op.split(x, 2, axis=0))
        one, two = (builder.emit(relax.TupleGetItem(both, at)) for at in range(2))
        return builder.emit(relax.op.subtract(builder.emit(relax.op.exp(two)), one))

    mod = function(halves, X)
    after = diff_by_values.lowered(mod, *diff_by_values.SEQUENCES[passes])
    assert not unpaired(mod, diff_by_values.read_again(after))


def test_what_uses_constants_of_a_file_keeps_its_partners(diff_by_values):
    mean, variance = (relax.const(np.full(4, number, "float32")) for number in (0.5, 2.0))

    def layers(builder, x, weight):
        hidden = builder.emit(relax.op.nn.conv2d(x, weight))
        normal = builder.emit(relax.op.nn.batch_norm(hidden, mean, variance, mean, variance, 1))
        hidden = builder.emit(relax.op.nn.relu(builder.emit(relax.TupleGetItem(normal, 0))))
        hidden = builder.emit(relax.op.nn.conv2d(hidden, weight))
        return builder.emit(relax.op.nn.instance_norm(hidden, mean, variance, 1, [2, 3]))

    data = relax.TensorType((1, 4, 8, 8), "float32")
    mod = function(layers, data, relax.TensorType((4, 4, 3, 3), "float32"))
    assert not unpaired(mod, diff_by_values.read_again(relax.transform.ToMixedPrecision()(mod)))


def test_a_checked_type_is_all_that_is_added():
    def plain(builder, x):
        return relax.op.tanh(builder.emit(relax.op.exp(x)))

    def checked(builder, x):
        value = builder.match_cast(builder.emit(relax.op.exp(x)), X)
        return relax.op.tanh(value)

    changes = [one.change for one in nodes(function(plain, X), function(checked, X))]
    assert ChangeKind.REMOVED not in changes
    assert changes.count(ChangeKind.ADDED) == 1


def loaded(text):
    return load_content(text.encode(), "module.py").module


WITH_INNER_FUNCTIONS = """
from tvm.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function
    def main(
        x: R.Tensor((4, 4), "float32"), z: R.Tensor((4, 4), "float32")
    ) -> R.Tensor((4, 4), "float32"):
        @R.function
        def once(y: R.Tensor((4, 4), "float32")) -> R.Tensor((4, 4), "float32"):
            inside = R.exp(y)
            return inside
        @R.function
        def twice(q: R.Tensor((4, 4), "float32")) -> R.Tensor((4, 4), "float32"):
            inner = R.add(q, z)
            return inner
        a = once(x)
        b = twice(a)
        c = twice(b)
        return c
"""


def test_what_is_computed_in_a_lifted_function_is_not_removed():
    mod = loaded(WITH_INNER_FUNCTIONS)
    after = relax.transform.LambdaLift()(mod)
    found = {name: one for one in nodes(mod, after) for name in one.before}
    assert found["inside"].after == found["a"].after == ("a",)
    assert found["inside"].callee in {one.after for one in irviz.diff(mod, after).functions}
    assert found["inner"].after == ("twice",)


RECURSIVE = """
from tvm.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function
    def power(n: R.Tensor((), "int32"), r: R.Tensor((), "float32")) -> R.Tensor((), "float32"):
        cls = Module
        stop = R.equal(n, R.const(0, "int32"))
        if stop:
            o = r
        else:
            m = R.subtract(n, R.const(1, "int32"))
            q = R.multiply(r, R.const(2.0, "float32"))
            o = cls.power(m, q)
        return o
"""


@pytest.mark.parametrize("private", [False, True])
def test_a_function_that_calls_itself_may_be_renamed(private):
    text = RECURSIVE
    if private:
        text = text.replace("@R.function", "@R.function(private=True)")
        text += """
    @R.function
    def main(n: R.Tensor((), "int32"), r: R.Tensor((), "float32")) -> R.Tensor((), "float32"):
        cls = Module
        gv = cls.power(n, r)
        return gv
"""
    diff = irviz.diff(loaded(text), loaded(text.replace("power", "renamed")))
    found = {one.before: one for one in diff.functions}
    assert found["power"].after == "renamed"
    expected = [] if private else ["name: power → renamed"]  # which only others call
    assert [str(one) for one in found["power"].differences] == expected
    assert all(not one.changed_nodes for one in diff.functions)
    other = text.replace("power", "renamed").replace("2.0", "3.0")
    assert any(one.changed_nodes for one in irviz.diff(loaded(text), loaded(other)).functions) or {
        one.change for one in irviz.diff(loaded(text), loaded(other)).functions
    } >= {ChangeKind.ADDED, ChangeKind.REMOVED}


def test_exchanged_branches_keep_their_operations():
    text = """
from tvm.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        if c:
            p = R.exp(x)
            o = p
        else:
            q = R.sin(x)
            o = q
        return o
"""
    lines = "p = R.exp(x)\n            o = p", "q = R.sin(x)\n            o = q"
    other = text.replace(lines[0], "cut").replace(lines[1], lines[0]).replace("cut", lines[1])
    found = {one.before: one for one in nodes(loaded(text), loaded(other))}
    assert (found[("p",)].after, found[("q",)].after) == (("p",), ("q",))
    assert found[("o",)].change is ChangeKind.CHANGED


def folded():
    """Return a module with a tuple of operations on constants alone, and a pair of its items."""

    def made(builder, x):
        one, two, three, four = (relax.const(np.full(4, at, "float32")) for at in range(4))
        total = builder.emit(relax.op.add(one, two))
        product = builder.emit(relax.op.multiply(three, four))
        item = builder.emit(relax.TupleGetItem(relax.Tuple([total, product]), 0))
        both = builder.emit(relax.Tuple([total, product]))
        other = builder.emit(relax.TupleGetItem(both, 1))
        return relax.op.add(builder.emit(relax.op.add(x, item)), other)

    return relax.transform.LegalizeOps()(function(made, relax.TensorType((4,), "float32")))


@pytest.mark.parametrize("is_read", [False, True], ids=["variables shared", "read from texts"])
def test_what_was_folded_inside_a_tuple_became_its_constants(is_read, diff_by_values):
    before = folded()
    after = relax.transform.FoldConstant()(before)
    found = nodes(before, diff_by_values.read_again(after) if is_read else after)
    assert [one.change for one in found].count(ChangeKind.FOLDED) == 2
    assert not {one.change for one in found} & {ChangeKind.ADDED, ChangeKind.REMOVED}


def test_parameters_that_were_bound_in_a_file_are_bound_in_the_diff(diff_by_values):
    weights = {"w0": np.ones((128, 784), "float32"), "b0": np.zeros(128, "float32")}
    after = relax.transform.BindParams("main", weights)(MyModuleHighLevel)
    bound = {
        one.before[0]
        for one in nodes(MyModuleHighLevel, diff_by_values.read_again(after))
        if any(each.aspect is Aspect.BOUND for each in one.differences)
    }
    assert bound == set(weights)
    changes = {one.change for one in nodes(diff_by_values.read_again(after), MyModuleHighLevel)}
    assert changes == {ChangeKind.SAME, ChangeKind.CHANGED}


def test_a_value_that_was_merged_with_its_other_name_is_not_removed():
    def named(builder, x):
        value = builder.emit(relax.op.exp(x), "value")
        builder.emit(relax.op.tanh(value), "unused")
        return value

    mod = function(named, X)
    for make in (relax.transform.CanonicalizeBindings, relax.transform.ConvertToDataflow):
        found = {name: one for one in nodes(mod, make()(mod)) for name in one.before}
        assert found["value"].after == found["gv"].after != ()


@pytest.mark.build
@pytest.mark.parametrize("name", ["MyModuleHighLevel", "random"])
def test_without_shared_variables_partners_are_found_by_what_is_computed(name, diff_by_values):
    is_random = name == "random"
    mod = diff_by_values.random_operators(3, 12) if is_random else MODULES[name]
    expected = 0
    for what, passes in diff_by_values.SEQUENCES.items():
        tolerance = diff_by_values.ROUNDED if "rounded" in what else diff_by_values.EXACT
        after = diff_by_values.lowered(mod, *passes)
        found = diff_by_values.agreement_when_read(mod, after, tolerance)
        assert found[1:] == ([], []), what
        expected += found.expected
    assert expected > 12


def test_lowered_operators_of_a_mask_keep_their_variables(diff_by_values):
    def masked(builder, x):
        at = builder.emit(relax.op.arange(0, 4, 1, "int64"))
        rows = builder.emit(relax.op.expand_dims(at, 1))
        columns = builder.emit(relax.op.expand_dims(at, 0))
        mask = builder.emit(relax.op.less_equal(columns, rows))
        kept = builder.emit(relax.op.astype(mask, "float32"))
        return relax.op.multiply(x, kept)

    mod = function(masked, X)
    count, lost = diff_by_values.lost_variables(mod, diff_by_values.lowered(mod, "LegalizeOps"))
    assert (count, lost) == (7, [])


@pytest.mark.parametrize("name", ["LegalizeOps", "ToMixedPrecision", "CanonicalizeBindings"])
def test_a_variable_that_survives_is_paired_with_itself(name, diff_by_values):
    builder = relax.BlockBuilder()
    x, w = (relax.Var(each, X) for each in "xw")
    with builder.function("main", [x, w]):
        with builder.dataflow():
            half = builder.emit(relax.op.astype(builder.emit(relax.op.matmul(x, w)), "float16"))
            value = builder.emit(relax.op.add(builder.emit(relax.op.astype(half, "float32")), w))
            same = builder.emit(value)
            result = builder.emit_output(relax.op.nn.relu(same))
        builder.emit_func_output(result)
    mod = builder.get()
    count, lost = diff_by_values.lost_variables(mod, diff_by_values.lowered(mod, name))
    assert (count > 2, lost) == (True, [])

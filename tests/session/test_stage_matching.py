# ruff: noqa: N803, N805, N812, SIM108
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""Where the runs of two stages part is found: through passes, called functions and branches."""

import numpy as np
import pytest
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

import irviz
from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MyModule, MyModuleStatic
from irviz.model.graph.graph import NodeKind, inlined_id
from irviz.runtime.run import run
from irviz.session import run_stages
from irviz.session.session import Session
from irviz.session.stage_cache import node_correspondence

pytestmark = pytest.mark.build

PARAMS, DIGITS = mlp_params(), digits()


@I.ir_module
class Called:
    """A PrimFunc that is used within a function, which another one calls twice; and a branch."""

    @T.prim_func(s_tir=True)
    def doubled(X: T.Buffer((4,), "float32"), Y: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.sblock("Y"):
                vi = T.axis.spatial(4, i)
                Y[vi] = X[vi] * T.float32(2)

    @R.function
    def layer(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Called
        with R.dataflow():
            a = R.add(x, x)
            b = R.call_tir(cls.doubled, (a,), R.Tensor((4,), "float32"))
            R.output(b)
        return b

    @R.function
    def main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((4,), "float32"):
        cls = Called
        once = R.nn.relu(x)
        twice = cls.layer(once)
        if c:
            chosen = R.negative(twice)
        else:
            chosen = R.exp(twice)
        return chosen


@T.prim_func(s_tir=True)
def tripled(X: T.Buffer((4,), "float32"), Y: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.sblock("Y"):
            vi = T.axis.spatial(4, i)
            Y[vi] = X[vi] * T.float32(3)


def register(name, function):
    irviz.library.register(name, "(...)->(...)")(function)


@pytest.fixture
def wrong(forgets_registrations):  # noqa: ARG001 - it undoes the registration
    """The name of a kernel that is wrong."""

    def relu_and_a_half(x, out):
        np.maximum(x, 0, out=out)
        out += 0.5

    register("env.relu_and_a_half", relu_and_a_half)
    return "env.relu_and_a_half"


def mlp():
    return Session(
        MyModule,
        params=PARAMS,
        inputs=DIGITS.images[:5],
        labels=DIGITS.labels[:5],
        isolate=False,
    )


def called(c=True):
    inputs = {"x": np.array([-1, 1, 2, 3], np.float32), "c": np.array(c)}
    return Session(Called, inputs=inputs, isolate=False)


def test_a_wrong_kernel_is_where_the_stages_part(wrong):
    found = mlp().bind().swap("relu0", wrong).first_difference("2")
    assert found.stages == ("2", "0")
    assert (found.divergence.node, found.divergence.reference) == ("lv1", "lv1")
    assert found.divergence.difference.max_abs == pytest.approx(0.5)
    assert {"x", "lv0"} <= set(found.divergence.upstream)
    assert "out" not in found.divergence.upstream
    assert found.line_of("lv1").startswith("different from lv1 in stage 0: max |Δ| 0.5, 128 of")
    assert found.line_of("nowhere") == ""
    assert "stages 2 and 0 differ first at lv1 (env.relu_and_a_half)" in found.line
    assert found.line in repr(found)


def test_a_wrong_kernel_is_found_among_two_that_are_right(wrong):
    session = mlp().bind().swap("linear0", "env.linear").swap("relu0", wrong)
    session = session.apply("ToNonDataflow")
    assert session.first_difference("4", "2").divergence.node == "lv1"
    assert session.first_difference("2").divergence is None
    assert session.first_difference("4", "3").divergence is None


@pytest.mark.parametrize("passes", [["LegalizeOps"], ["LegalizeOps", "AnnotateTIROpPattern"]])
def test_a_wrong_kernel_is_found_through_later_passes(wrong, passes):
    session = mlp().bind().swap("relu0", wrong)
    for name in passes:
        session = session.apply(name)
    assert session.first_difference(session.current_id).divergence.node == "lv1"
    assert session.first_difference("0", session.current_id).divergence.node == "lv1"


def test_a_wrong_prim_func_is_found_within_a_fused_function():
    session = called().apply("LegalizeOps").apply("AnnotateTIROpPattern")
    session = session.update_function("doubled", tripled)
    fused = session.apply("FuseOps", fuse_opt_level=2)
    found = fused.first_difference(fused.current_id)
    assert found.divergence is not None
    assert found.divergence.reference == inlined_id("twice", "b")
    assert "b" in found.divergence.node


@pytest.mark.parametrize("c", [True, False])
def test_a_bug_in_a_called_function_is_found_there_in_either_branch(c):
    found = called(c).update_function("doubled", tripled).first_difference("1")
    assert found.divergence.node == inlined_id("twice", "b")
    assert inlined_id("twice", "a") in found.divergence.upstream
    assert "differ first at twice/b (doubled)" in found.line


def test_a_branch_of_the_tree_is_compared_with_another_by_way_of_what_both_are_made_from(wrong):
    session = mlp().bind().swap("relu0", wrong).checkout("1").apply("LegalizeOps")
    session = session.apply("ToNonDataflow")
    assert session.lineage("4") == ("0", "1", "3", "4")
    found = session.first_difference("4", "2")
    assert (found.divergence.node, found.divergence.reference) == ("lv1", "lv1")
    back = session.first_difference("2", "4")
    assert (back.divergence.node, back.divergence.reference) == ("lv1", "lv1")


def test_bound_weights_correspond_to_the_parameters_that_they_were():
    session = mlp().bind()
    found = node_correspondence(session.tree, session.function, "1", "0")
    constants = {found[node.id] for node in session.graph().nodes if node.kind is NodeKind.CONSTANT}
    assert constants == {"w0", "b0", "w1", "b1"}
    assert {node: other for node, other in found.items() if other not in constants} == {
        one: one for one in ("x", "lv0", "lv1", "out")
    }


def test_a_stage_corresponds_to_itself_node_by_node():
    session = called()
    found = node_correspondence(session.tree, session.function, "0", "0")
    assert inlined_id("twice", "b") in found
    assert all(one == other for one, other in found.items())


def test_there_and_back_are_each_others_inverse(wrong):
    session = mlp().bind().swap("relu0", wrong).checkout("1").apply("LegalizeOps")
    there, back = (
        node_correspondence(session.tree, session.function, "3", "2"),
        node_correspondence(session.tree, session.function, "2", "3"),
    )
    assert {other: one for one, other in there.items()} == back
    session = session.checkout("0").apply("ToNonDataflow")
    there, back = (
        node_correspondence(session.tree, session.function, "4", "2"),
        node_correspondence(session.tree, session.function, "2", "4"),
    )
    assert {other: one for one, other in there.items()} == back
    assert there["w0"] != "w0"  # which is a constant there


def recorded(*passes):
    """Return a session of a recording of passes, each with the module that it gets."""
    with irviz.record() as recording:
        for made, mod in passes:
            made(mod)
    inputs = DIGITS.images[:2]
    session = recording.session().with_inputs(inputs).with_params(PARAMS)
    return session.with_run_config(isolate=False)


def test_the_stages_of_a_recording_are_compared():
    bound = mlp().bind().current.module
    legalize, plain = relax.transform.LegalizeOps(), relax.transform.ToNonDataflow()
    session = recorded((legalize, MyModule), (plain, bound))
    found = session.first_difference(session.stages[-1].id)
    assert found.divergence is None
    assert {"x", "lv0", "lv1", "out"} <= found.differences.keys()


def test_a_recording_may_have_two_beginnings():
    legalize, plain = relax.transform.LegalizeOps(), relax.transform.ToNonDataflow()
    session = recorded((legalize, MyModule), (plain, MyModuleStatic))
    first, *_, last = (stage.id for stage in session.stages)
    assert set(session.lineage(first)).isdisjoint(session.lineage(last))
    found = session.first_difference(last, first)
    assert found.divergence is None
    assert {"x", "w0", "b0", "w1", "b1"} <= found.differences.keys()


@pytest.mark.usefixtures("forgets_registrations")
def test_the_input_with_the_largest_difference_is_compared():
    largest = [mlp().value("lv0", case=case)[0].max() for case in range(5)]
    threshold = sorted(largest)[2]

    def wrong_for_large(x, out):
        np.maximum(x, 0, out=out)
        out[x > threshold] += 1  # as two inputs have

    register("env.relu_wrong_for_large", wrong_for_large)
    session = mlp().swap("relu0", "env.relu_wrong_for_large")
    differs = session.compare("1", "0").worst_case
    large = [case for case in range(5) if largest[case] > threshold]
    assert 0 < len(large) < 5
    assert differs in large
    assert session.first_difference("1").traces[0].case == differs
    equal = next(case for case in range(5) if case not in large)
    assert session.first_difference("1", case=equal).divergence is None


def test_values_that_were_too_large_to_keep_are_fetched_to_be_compared(monkeypatch):
    fetched = []

    def watched(*arguments, trace=None, **facts):
        fetched.extend(trace.kept if trace else ())
        return run(*arguments, trace=trace, **facts)

    monkeypatch.setattr(run_stages, "run", watched)

    size = 3_000_000  # 12 MB, and a trace keeps 8 of one value
    x = relax.Var("x", relax.TensorType([size], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        y = builder.emit(relax.op.add(x, relax.const(1.0, "float32")), "y")
        total = builder.emit(relax.op.sum(y), "total")
        builder.emit_func_output(total)
    mod = builder.get()
    session = Session(mod, inputs={"x": np.zeros(size, np.float32)}, isolate=False)
    session = session.apply("LegalizeOps")
    assert session.first_difference("1").divergence is None
    assert fetched == []  # their digests are equal
    name = next(n for n in session.functions if n.startswith("add"))
    shifted = session.current.module[name]
    session = session.update_function(name, _plus_two(size))
    assert shifted is not session.current.module[name]
    assert session.first_difference("2").divergence.node == "y"
    assert fetched == ["y", "y"]


def _plus_two(size):
    @T.prim_func(s_tir=True)
    def add(X: T.Buffer((T.int64(size),), "float32"), Y: T.Buffer((T.int64(size),), "float32")):
        for i in range(T.int64(size)):
            with T.sblock("Y"):
                vi = T.axis.spatial(T.int64(size), i)
                Y[vi] = X[vi] + T.float32(2)

    return add


def test_stages_that_are_the_same_do_not_part_and_say_so():
    found = mlp().bind().first_difference("1")
    assert found.divergence is None
    assert found.line == "stages 1 and 0 do not diverge: no value is known to differ"
    assert found.dimmed(mlp().view(), "0") == []

# ruff: noqa: ARG001, N803, N805, N812, RET504
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""What computes the same as what a call calls is found by trying, whatever it is named."""

import re
import threading
import time

import numpy as np
import pytest
import tvm
from tvm import ir, relax, tirx
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

from irviz.course.mlp import MODULES, MyModule, MyModuleStatic, MyModuleWithExternCall
from irviz.errors import TransformError
from irviz.ir.function_graph import extract
from irviz.model.graph.graph import NodeId, NodeKind
from irviz.transforms.kernels import candidates as candidates_module
from irviz.transforms.kernels import library
from irviz.transforms.kernels.candidates import (
    Equivalence,
    compare_on_samples,
    iter_candidates,
)
from irviz.transforms.kernels.library import create_prim_func
from irviz.transforms.kernels.library import numpy_relu as relu
from irviz.transforms.kernels.signature import SampleSpec, parse_signature, with_small_sizes
from irviz.transforms.kernels.swap import CallTargetKind, Swap
from irviz.worker import supervisor

pytestmark = [pytest.mark.worker, pytest.mark.usefixtures("only_irvizs_kernels")]


HERE = SampleSpec(parse_signature("(4,8)->(4,8)"))


def candidates(mod, function, node):
    """Return the replacements of a node's callee after all of them have been tried."""
    return [(), *iter_candidates(mod, function, node)][-1]


@I.ir_module
class Misleading:
    """A PrimFunc that is called relu and computes the sigmoid; one in a branch and one inside."""

    @T.prim_func(s_tir=True)
    def relu(X: T.Buffer((4, 8), "float32"), Y: T.Buffer((4, 8), "float32")):
        for i, j in T.grid(4, 8):
            with T.sblock("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = T.sigmoid(X[vi, vj])

    @R.function
    def main(x: R.Tensor((4, 8), "float32"), c: R.Tensor((), "bool")):
        cls = Misleading

        @R.function
        def inner(a: R.Tensor((4, 8), "float32")) -> R.Tensor((4, 8), "float32"):
            within = R.call_tir(cls.relu, (a,), R.Tensor((4, 8), "float32"))
            return within

        y = R.call_tir(cls.relu, (x,), R.Tensor((4, 8), "float32"))
        z = inner(y)
        if c:
            w = R.call_tir(cls.relu, (z,), R.Tensor((4, 8), "float32"))
            out = R.add(w, w)
        else:
            out = R.add(z, z)
        return out


@T.prim_func(s_tir=True)
def past_the_end(X: T.Buffer((4, 8), "float32"), Y: T.Buffer((4, 8), "float32")):
    for i, j in T.grid(4, 8):
        with T.sblock("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi + 200000000, vj]


@T.prim_func(s_tir=True)
def for_a_gpu(X: T.Buffer((4, 8), "float32"), Y: T.Buffer((4, 8), "float32")):
    for i in T.thread_binding(4, thread="blockIdx.x"):
        for j in T.thread_binding(8, thread="threadIdx.x"):
            with T.sblock("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = T.max(X[vi, vj], T.float32(0))


@T.prim_func(s_tir=True)
def only_half(X: T.Buffer((4, 8), "float32"), Y: T.Buffer((4, 8), "float32")):
    for i, j in T.grid(2, 8):
        with T.sblock("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = T.max(X[vi, vj], T.float32(0))


@T.prim_func(s_tir=True)
def no_number(X: T.Buffer((4, 8), "float32"), Y: T.Buffer((4, 8), "float32")):
    for i, j in T.grid(4, 8):
        with T.sblock("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = T.sqrt(-1.0 - X[vi, vj] * X[vi, vj])


def named(found):
    return {each.name: each for each in found}


def same(found):
    return [each.name for each in found if each.computes_the_same]


def with_torch(*names):
    """Return these names, where PyTorch is installed."""
    return [name for name in names if name in library.kernels()]


def found_of(candidate, callee=relu, samples=HERE):
    return compare_on_samples(samples, callee, {"it": candidate}, {})["it"]


def calling(callee, *types, out=None, function=None):
    """Return a module whose one call is of a kernel or a PrimFunc."""
    params = [relax.Var(f"x{i}", type_) for i, type_ in enumerate(types)]
    builder = relax.BlockBuilder()
    with builder.function("main", params):
        if function is None:
            call = relax.call_dps_packed(callee, relax.Tuple(params), out or types[0])
        else:
            gvar = builder.add_func(function.with_attr("global_symbol", callee), callee)
            call = relax.call_tir(gvar, params, out or types[0])
        builder.emit_func_output(builder.emit(call, "y"))
    return builder.get()


# --- the course's modules ----------------------------------------------------------------------

LINEAR = ["env.linear", "numpy.linear", *with_torch("torch.linear"), "topi.linear"]
RELU = ["env.relu", "numpy.relu", *with_torch("torch.relu"), "topi.relu"]


@pytest.mark.parametrize("name", [name for name in MODULES if name != "MyModuleHighLevel"])
def test_the_courses_calls_can_be_made_by_the_library_and_by_te(name):
    mod = MODULES[name]
    kinds = (NodeKind.CALL_TIR, NodeKind.CALL_DPS_PACKED)
    calls = [node for node in extract(mod).nodes if node.kind in kinds]
    assert len(calls) == 3
    for node in calls:
        expected = list(RELU if "relu" in node.callee else LINEAR)
        if name == "MyModuleMixture" and "linear" in node.callee:
            expected = ["linear0", *expected]
        found = candidates(mod, "main", node.id)
        assert same(found) == [each for each in expected if each != node.callee], node.id
        assert [each.name for each in found[: len(same(found))]] == same(found)


def test_what_does_not_compute_the_same_says_how_far_it_is_off_or_why_it_does_not_fit():
    found = named(candidates(MyModuleStatic, "main", NodeId("lv1")))
    assert found["env.relu"].kind is CallTargetKind.KERNEL
    assert found["topi.relu"].kind is CallTargetKind.DEFINITION
    assert (found["env.relu"].verdict, found["env.relu"].reason) == (
        Equivalence.EQUAL,
        "equal on sample inputs",
    )
    assert re.fullmatch(
        r"computes something else: max \|Δ\| \d\S*; at \(0, \d+\) it gives \S+ where \S+ is wanted",
        found["numpy.tanh"].reason,
    )
    assert found["linear0"].verdict is Equivalence.MISFIT
    assert found["linear0"].reason.startswith("its signature is (1,784),(128,784),(128)->(1,128)")
    assert found["numpy.linear"].reason == (
        "its signature is (...,k),(n,k),(n)->(...,n) of float32, float64 or float16, "
        "and the call has (1,128)->(1,128) of float32"
    )
    assert "relu0" not in found


def test_sums_in_another_order_are_equal_within_rounding():
    found = named(candidates(MyModuleStatic, "main", NodeId("lv0")))["numpy.linear"]
    assert found.verdict is Equivalence.CLOSE
    assert re.fullmatch(r"equal within rounding: max \|Δ\| \S+ in numbers up to \S+", found.reason)


@pytest.mark.parametrize("node", ["x", "nowhere", ""])
def test_what_is_no_such_call_has_no_candidates(node):
    assert candidates(MyModuleStatic, "main", NodeId(node)) == ()


def test_an_operator_has_no_candidates():
    assert candidates(MODULES["MyModuleHighLevel"], "main", NodeId("lv0")) == ()


def test_a_function_that_is_not_there_is_told():
    with pytest.raises(ValueError, match="no function 'other'; its Relax functions are 'main'"):
        candidates(MyModule, "other", NodeId("lv0"))


@pytest.mark.parametrize("name", MODULES)
def test_what_fits_can_be_swapped_in_and_what_does_not_is_refused_with_the_reason(name):
    mod = MODULES[name]
    found = {node: candidates(mod, "main", node.id) for node in extract(mod).nodes}
    assert any(found.values()) == (name != "MyModuleHighLevel")
    for node, those in found.items():
        for each in those:
            swap = Swap(node.callee, each.name, node.id)
            if each.verdict is Equivalence.MISFIT:
                with pytest.raises(TransformError, match=re.escape(each.reason)):
                    swap(mod)
            else:
                now = extract(swap(mod))[node.id].callee
                assert now == (each.name if each.kind is not CallTargetKind.DEFINITION else now)
                assert now != node.callee


# --- by what it computes -----------------------------------------------------------------------


@pytest.mark.parametrize("node", ["y", "w", "within"])
def test_a_misleading_name_misleads_nobody_also_in_branches_and_inner_functions(node):
    found = candidates(Misleading, "main", NodeId(node))
    assert same(found) == ["numpy.sigmoid", *with_torch("torch.sigmoid"), "topi.sigmoid"]
    assert named(found)["numpy.relu"].verdict is Equivalence.DIFFERENT


def test_a_kernel_of_ones_own_is_matched_and_one_that_is_a_little_off_is_not():
    @library.register("test.logistic", "(...)->(...)")
    def logistic(x, out):
        np.divide(1, 1 + np.exp(-x), out=out)

    @library.register("test.nearly", "(...)->(...)")
    def nearly(x, out):
        logistic(x, out)
        np.subtract(out, 1e-2, out=out, where=x < 0)

    found = named(candidates(Misleading, "main", NodeId("y")))
    assert found["test.logistic"].computes_the_same
    assert found["test.nearly"].verdict is Equivalence.DIFFERENT
    assert "max |Δ| 0.01;" in found["test.nearly"].reason


def test_a_bound_beyond_small_numbers_is_noticed_even_in_a_call_of_few_numbers():
    def relu6(x, out):
        np.clip(x, 0, 6, out=out)

    few = SampleSpec(parse_signature("(1,3)->(1,3)"))
    assert found_of(relu6, samples=few).verdict is Equivalence.DIFFERENT
    assert found_of(np.negative, np.negative, few).verdict is Equivalence.EQUAL


@pytest.mark.parametrize("size", ["(1,3)", "(4,8)", "(300,300)"])
def test_functions_that_are_alike_on_positive_numbers_only_are_told_apart(size):
    samples = SampleSpec(parse_signature(f"{size}->{size}"))
    assert found_of(np.abs, relu, samples).verdict is Equivalence.DIFFERENT
    assert found_of(np.positive, relu, samples).verdict is Equivalence.DIFFERENT


def test_where_one_gives_no_number_the_other_must_give_none():
    assert found_of(np.sqrt, np.sqrt).verdict is Equivalence.EQUAL
    other = found_of(lambda x, out: np.sqrt(np.abs(x), out=out), np.sqrt)
    assert other.verdict is Equivalence.DIFFERENT
    assert "max |Δ| inf" in other.reason


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "uint8", "bool"])
def test_other_dtypes_are_tried_too(dtype):
    samples = SampleSpec(parse_signature("(4,8),(4,8)->(4,8)", dtype))
    assert found_of(np.maximum, np.maximum, samples).verdict is Equivalence.EQUAL
    assert found_of(np.minimum, np.maximum, samples).verdict is Equivalence.DIFFERENT


def test_whole_numbers_are_never_close():
    samples = SampleSpec(parse_signature("(4,8)->(4,8)", "int64"))
    off = found_of(
        lambda x, out: np.add(x * 10**6, 1, out=out),
        lambda x, out: np.multiply(x, 10**6, out=out),
        samples,
    )
    assert off.verdict is Equivalence.DIFFERENT


def test_every_output_is_compared():
    def split(x, a, b):
        np.add(x, 1, out=a)
        b[:] = 2

    def other(x, a, b):
        np.add(x, 1, out=a)
        b[:] = x

    samples = SampleSpec(parse_signature("(4,8)->(4,8),(4,8)"))
    assert found_of(split, split, samples).verdict is Equivalence.EQUAL
    assert found_of(other, split, samples).verdict is Equivalence.DIFFERENT


# --- what cannot be tried ----------------------------------------------------------------------


def test_a_candidate_that_ends_the_process_is_a_reason_and_the_others_are_found():
    found = compare_on_samples(
        HERE, relu, {"wild": past_the_end, "gpu": for_a_gpu, "numpy": relu}, {}
    )
    assert found["wild"].verdict is Equivalence.FAILED
    assert found["wild"].reason == "it ended the process that tried it (SIGSEGV)"
    assert found["gpu"].verdict is Equivalence.FAILED
    assert found["gpu"].reason.startswith("it failed on sample inputs: InternalError")
    assert found["numpy"].verdict is Equivalence.EQUAL


def test_what_is_called_may_end_the_process_itself():
    found = compare_on_samples(HERE, past_the_end, {"numpy": relu}, {"here": relu})
    assert {each.verdict for each in found.values()} == {Equivalence.UNTRIED}
    assert found["numpy"].reason == (
        "not tried: the callee itself cannot be tried: it ended the process that tried it (SIGSEGV)"
    )


def test_what_takes_too_long_is_stopped():
    def forever(x, out):
        while True:
            time.sleep(1)

    found = compare_on_samples(HERE, relu, {"forever": forever, "numpy": relu}, {}, seconds=8.0)
    assert found["forever"].reason == "it took longer than 4 s and was stopped"
    assert found["numpy"].verdict is Equivalence.EQUAL


def test_what_writes_too_much_or_too_little_is_not_offered():
    def into_its_input(x, out):
        relu(x, out)
        x[:] = 0

    def nothing(x, out):
        pass

    assert found_of(into_its_input).reason == "it writes into its inputs"
    assert found_of(only_half).verdict is Equivalence.DIFFERENT
    assert found_of(nothing).verdict is Equivalence.DIFFERENT


def test_what_raises_says_what_it_raised():
    def raises(x, out):
        raise KeyError(f"no {x.shape} {'and so on ' * 100}")

    reason = found_of(raises).reason
    assert reason.startswith("it failed on sample inputs: KeyError: 'no (4, 8) and so on")
    assert reason.endswith("…")
    assert len(reason) < 300
    assert found_of(relu, callee=raises).verdict is Equivalence.UNTRIED


def test_what_holds_on_to_something_that_cannot_travel_says_so():
    lock = threading.Lock()

    def locked(x, out):
        with lock:
            relu(x, out)

    assert found_of(locked).reason.startswith("it cannot be sent to the process that tries: Type")
    assert found_of(relu, callee=locked).verdict is Equivalence.UNTRIED


def test_from_what_gives_no_number_at_all_nothing_follows():
    found = found_of(no_number, callee=no_number)
    assert found.verdict is Equivalence.UNTRIED
    assert found.reason.endswith("on sample inputs it gives no finite number")


def test_a_dtype_that_numpy_lacks_is_told():
    found = found_of(relu, samples=SampleSpec(parse_signature("(4)->(4)", "bfloat16")))
    assert found.reason.endswith("NumPy has no dtype bfloat16 to draw sample inputs of")


def test_what_is_registered_past_irviz_is_listed_and_not_tried():
    tvm.register_global_func("test.past", lambda *_: None, override=True)
    tensor = relax.TensorType([4, 8], "float32")
    past = calling("test.past", tensor)
    found = candidates(past, "main", NodeId("y"))
    assert same(found) == []
    assert (
        named(found)["env.relu"].reason == "not tried: 'test.past' was registered with TVM directly"
    )
    x = relax.Var("x", tensor)
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        y = builder.emit(relax.call_dps_packed("env.relu", x, tensor), "y")
        builder.emit_func_output(builder.emit(relax.call_dps_packed("test.past", y, tensor)))
    other = named(candidates(builder.get(), "main", NodeId("y")))["test.past"]
    assert (other.kind, other.verdict) == (CallTargetKind.REGISTERED, Equivalence.UNTRIED)
    assert other.reason == "not tried: it was registered with TVM directly"


def test_a_kernel_that_somebody_registered_over_is_not_taken_for_irvizs_own():
    library.register("env.test_over", "(...)->(...)")(relu)
    tensor = relax.TensorType([4, 8], "float32")
    mod = calling("env.test_over", tensor)
    assert "env.relu" in same(candidates(mod, "main", NodeId("y")))
    tvm.register_global_func("env.test_over", lambda *_: None, override=True)
    assert same(candidates(mod, "main", NodeId("y"))) == []


def test_a_name_that_leads_nowhere_has_candidates_that_are_not_tried(modules):
    found = candidates(modules.EveryKind, "main", NodeId("unknown"))
    assert named(found)["env.relu"].reason == "not tried: 'env.nowhere' is not registered"
    other = candidates(modules.EveryKind, "main", NodeId("relaxed"))
    assert named(other)["env.relu"].reason == "not tried: 'twice' is a Relax function"


def test_numbers_among_the_arguments_fit_nothing(modules):
    found = candidates(modules.Half, "main", NodeId("scaled"))
    assert {each.reason for each in found} == {
        "the call has arguments that are not tensors of known shape"
    }


# --- sizes -------------------------------------------------------------------------------------


def test_sizes_that_are_expressions_are_tried():
    n = tirx.Var("n", "int64")
    tensor = relax.TensorType([n // 2 - 20, n * 2], "float32")
    whole = relax.TensorType([n], "float32")
    x, y = relax.Var("x", tensor), relax.Var("y", whole)
    builder = relax.BlockBuilder()
    with builder.function("main", [x, y]):
        builder.emit_func_output(builder.emit(relax.call_dps_packed("env.relu", x, tensor), "z"))
    found = candidates(builder.get(), "main", NodeId("z"))
    assert same(found) == [name for name in RELU if name != "env.relu"]


def test_a_size_that_the_prim_func_has_in_numbers_is_that(modules):
    mod = modules.StaticAndSymbolic
    n = tirx.Var("n", "int64")
    unsure = calling("fixed", relax.TensorType([n], "float32"), function=mod["fixed"])

    @library.register("test.plus_one", "(n)->(n)")
    def plus_one(x, out):
        np.add(x, 1, out=out)

    assert "test.plus_one" in same(candidates(unsure, "main", NodeId("y")))
    assert same(candidates(mod, "main", NodeId("a"))) == ["any_size", "test.plus_one"]


def huge(rows, inner, columns):
    """Return a linear layer of these sizes, its PrimFunc of fixed or of symbolic sizes."""
    types = [
        relax.TensorType(shape, "float32") for shape in ([rows, inner], [columns, inner], [columns])
    ]
    names = [rows, *(tirx.Var(name, "int64") for name in "kn")]
    symbolic = [
        relax.TensorType(shape, "float32")
        for shape in ([names[0], names[1]], [names[2], names[1]], [names[2]])
    ]
    linear = library.definitions()["topi.linear"]
    fixed = create_prim_func(
        linear,
        types,
        parse_signature(f"({rows},{inner}),({columns},{inner}),({columns})->({rows},{columns})"),
    )
    free = create_prim_func(linear, symbolic, parse_signature(f"({rows},k),(n,k),(n)->({rows},n)"))
    out = relax.TensorType([rows, columns], "float32")
    return [calling("linear", *types, out=out, function=one) for one in (fixed, free)]


def test_what_is_much_work_is_tried_in_small_or_not_at_all():
    fixed, free = huge(64, 4096, 4096)
    found = named(candidates(fixed, "main", NodeId("y")))
    assert (
        found["env.linear"].reason == "not tried: too much to do here; swap it and compare stages"
    )
    assert "env.linear" in same(candidates(free, "main", NodeId("y")))


def test_a_weight_of_a_million_numbers_is_tried_as_it_is():
    fixed, _ = huge(1, 1024, 1024)
    assert same(candidates(fixed, "main", NodeId("y"))) == LINEAR


def test_smaller_sizes_stay_equal_where_they_were_and_distinct_where_not():
    given = parse_signature("(64,4096),(1,4096),(0,512)->(64,1)")
    assert str(with_small_sizes(given)) == "(19,23),(1,23),(0,17)->(19,1)"
    assert str(with_small_sizes(given, {"64", "19"})) == "(64,23),(1,23),(0,17)->(64,1)"


def test_integers_beside_other_numbers_stay_within_the_tensors():
    mixed = parse_signature("(50,3)->(7)")
    table = mixed.inputs[0]
    index = parse_signature("(7)->(7)", "int64").inputs[0]
    signature = type(mixed)((table, index), mixed.outputs)
    samples = list(SampleSpec(signature).draw())
    assert samples
    for inputs, _ in samples:
        assert inputs[1].min() >= 0
        assert inputs[1].max() < 3


# --- when it is tried --------------------------------------------------------------------------


def test_signatures_come_first_and_then_what_was_tried():
    @library.register("test.fresh", "(...)->(...)")
    def fresh(x, out):
        np.maximum(x, 0, out=out)

    steps = [
        named(found) for found in iter_candidates(MyModuleWithExternCall, "main", NodeId("lv1"))
    ]
    assert [step["test.fresh"].is_pending for step in steps] == [True, False, False]
    assert [step["test.fresh"].computes_the_same for step in steps] == [False, True, True]
    assert not any(each.is_pending for each in steps[-1].values())
    assert {each.verdict for each in steps[0].values()} == {Equivalence.UNTRIED, Equivalence.MISFIT}


def test_what_is_known_is_not_tried_again_until_the_kernel_is_replaced(monkeypatch):
    @library.register("test.changing", "(...)->(...)")
    def first(x, out):
        np.maximum(x, 0, out=out)

    assert "test.changing" in same(candidates(MyModule, "main", NodeId("lv1")))
    asked = []

    def asking(samples, callee, given, here):
        asked.extend([*given, *here])
        return compare_on_samples(samples, callee, given, here)

    monkeypatch.setattr(candidates_module, "compare_on_samples", asking)
    assert "test.changing" in same(candidates(MyModule, "main", NodeId("lv1")))
    assert asked == []

    @library.register("test.changing", "(...)->(...)")
    def second(x, out):
        np.tanh(x, out=out)

    assert "test.changing" not in same(candidates(MyModule, "main", NodeId("lv1")))
    assert asked == ["test.changing"]


def test_who_comes_back_to_a_call_is_told_all_at_once_until_another_function_is_there():
    first = list(iter_candidates(MyModule, "main", NodeId("lv1")))
    assert list(iter_candidates(MyModule, "main", NodeId("lv1"))) == [first[-1]]

    @library.register("test.newcomer", "(...)->(...)")
    def newcomer(x, out):
        np.maximum(x, 0, out=out)

    steps = list(iter_candidates(MyModule, "main", NodeId("lv1")))
    assert named(steps[0])["test.newcomer"].is_pending
    assert named(steps[-1])["test.newcomer"].computes_the_same


def test_another_prim_func_of_the_same_name_is_tried_anew():
    renamed = calling("relu0", relax.TensorType([4, 8], "float32"), function=Misleading["relu"])
    assert same(candidates(renamed, "main", NodeId("y")))[0] == "numpy.sigmoid"
    other = calling("relu0", relax.TensorType([4, 8], "float32"), function=only_half)
    assert same(candidates(other, "main", NodeId("y"))) == []


def test_the_process_that_tries_is_not_this_one():
    pid = supervisor.TRIES.call(_pid)

    def tells(x, out):
        import os

        out[:] = os.getpid()

    def is_that(x, out):
        out[:] = pid

    assert found_of(tells, callee=is_that).verdict is Equivalence.EQUAL


def _pid():
    import os

    return os.getpid()


def test_the_module_stays_as_it_was():
    text = MyModule.script()
    candidates(MyModule, "main", NodeId("lv0"))
    assert MyModule.script() == text
    assert isinstance(MyModule, ir.IRModule)

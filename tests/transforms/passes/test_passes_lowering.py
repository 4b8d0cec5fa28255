# ruff: noqa: N803, N805, N812, RET504
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""Passes that lower a function to what the VM does: memory, sizes, calls with their outputs."""

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

from irviz.model.runs.run_result import Verdict
from irviz.session.session import Session

pytestmark = pytest.mark.worker

LOWERING = (
    "LegalizeOps",
    "RewriteDataflowReshape",
    "ToNonDataflow",
    "RemovePurityChecking",
    "CallTIRRewrite",
    "StaticPlanBlockMemory",
    "RewriteCUDAGraph",
    "LowerAllocTensor",
    "KillAfterLastUse",
    "LowerRuntimeBuiltin",
    "ComputePrimValue",
    "VMShapeLower",
    "AttachGlobalSymbol",
)
"""What tvm.compile applies to a Relax function by default, in its order."""


def built(mod, *names):
    """Return a module on the VM, built with these passes of Relax and no other."""
    passes = [getattr(relax.transform, name)() for name in names]
    pipeline = tvm.ir.transform.Sequential(passes)
    return relax.VirtualMachine(tvm.compile(mod, "llvm", relax_pipeline=pipeline), tvm.cpu())


def remaining(name):
    return LOWERING[LOWERING.index(name) + 1 :]


def random(*shape):
    return np.random.default_rng(7).standard_normal(shape).astype("float32")


def new_tensor():
    """Return the call that allocates a tensor; TVMScript cannot say that it has a type with it."""
    plain = R.builtin.alloc_tensor(R.shape([2, 2]), "float32", 0)
    return tvm.ir.Call(plain.op, plain.args, plain.attrs, [relax.TensorType((2, 2), "float32")])


@I.ir_module
class OutputsReturned:
    @T.prim_func(s_tir=True)
    def double(X: T.Buffer((2, 2), "float32"), Y: T.Buffer((2, 2), "float32")):
        for i, j in T.grid(2, 2):
            with T.sblock("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = X[vi, vj] + X[vi, vj]

    @R.function
    def main(x: R.Tensor((2, 2), "float32")):
        R.func_attr({"relax.force_pure": True})
        cls = OutputsReturned
        two = R.call_tir(cls.double, (x,), R.Tensor((2, 2), "float32"))
        four = R.call_tir(cls.double, (two,), R.Tensor((2, 2), "float32"))
        eight = R.call_tir(cls.double, (four,), R.Tensor((2, 2), "float32"))
        sixteen = R.call_tir(cls.double, (eight,), R.Tensor((2, 2), "float32"))
        return sixteen


@I.ir_module
class OutputsGiven:
    @T.prim_func(s_tir=True)
    def double(X: T.Buffer((2, 2), "float32"), Y: T.Buffer((2, 2), "float32")):
        for i, j in T.grid(2, 2):
            with T.sblock("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = X[vi, vj] + X[vi, vj]

    @R.function
    def main(x: R.Tensor((2, 2), "float32")):
        R.func_attr({"relax.force_pure": True})
        cls = OutputsGiven
        out = new_tensor()
        cls.double(x, out)
        two = out
        out1 = new_tensor()
        cls.double(two, out1)
        four = out1
        out2 = new_tensor()
        cls.double(four, out2)
        eight = out2
        out3 = new_tensor()
        cls.double(eight, out3)
        sixteen = out3
        return sixteen


@I.ir_module
class MemoryPlanned:
    @T.prim_func(s_tir=True)
    def double(X: T.Buffer((2, 2), "float32"), Y: T.Buffer((2, 2), "float32")):
        for i, j in T.grid(2, 2):
            with T.sblock("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = X[vi, vj] + X[vi, vj]

    @R.function
    def main(x: R.Tensor((2, 2), "float32")):
        R.func_attr({"relax.force_pure": True})
        cls = MemoryPlanned
        place = R.memory.alloc_storage(R.shape([16]), 0, "global", "float32")
        out = R.memory.alloc_tensor(place, 0, R.shape([2, 2]), "float32")
        cls.double(x, out)
        two = out
        other = R.memory.alloc_storage(R.shape([16]), 0, "global", "float32")
        out1 = R.memory.alloc_tensor(other, 0, R.shape([2, 2]), "float32")
        cls.double(two, out1)
        four = out1
        out2 = R.memory.alloc_tensor(place, 0, R.shape([2, 2]), "float32")  # `two` is done with
        cls.double(four, out2)
        eight = out2
        out3 = new_tensor()  # it is returned
        cls.double(eight, out3)
        sixteen = out3
        return sixteen


def is_sixteenfold(session, name):
    x = random(2, 2)
    lowered = built(session.current.module, *remaining(name))
    assert session.compare("1", "0").verdict is Verdict.EQUAL
    return np.array_equal(lowered["main"](tvm.runtime.tensor(x)).numpy(), 16 * x)


def test_call_tir_rewrite_allocates_each_output_and_gives_it_to_the_call(makes):
    session = makes(OutputsReturned, "CallTIRRewrite", OutputsGiven)
    assert is_sixteenfold(session, "CallTIRRewrite")


def test_static_plan_block_memory_uses_a_place_again_when_it_is_done_with(makes):
    session = makes(OutputsGiven, "StaticPlanBlockMemory", MemoryPlanned)
    assert is_sixteenfold(session, "StaticPlanBlockMemory")


@I.ir_module
class Sizes:
    @R.function
    def main(x: R.Tensor(("n", 2), "float32")):
        R.func_attr({"relax.force_pure": True})
        n = T.int64()
        sizes = R.shape([n, n + 1])
        return sizes


# what vm.builtin.match_shape does with a size, each followed by a number or a place on the heap
EQUALS, STORE, EQUALS_STORED = 0, 1, 3
STORED = 1  # where vm.builtin.make_shape takes a size from, followed by its place on the heap

OF_X = 'ErrorContext(fn=main, loc=param[0], param=x, annotation=R.Tensor((n, 2), dtype="float32")) '
OF_RETURN = "ErrorContext(fn=main, loc=return, annotation=R.Shape([n, n + 1])) "


@I.ir_module
class SizesOnTheHeap:
    @T.prim_func(private=True, s_tir=True)
    def shape_func(H: T.Buffer((T.int64(2),), "int64")):
        T.func_attr({"tirx.is_host_func": True})
        H[T.int64(1)] = H[T.int64(0)] + T.int64(1)

    @R.function
    def main(x: R.Tensor(("n", 2), "float32")) -> R.Shape(["n", "n + 1"]):
        R.func_attr({"relax.force_pure": True})
        cls = SizesOnTheHeap
        heap = R.call_builtin_with_ctx(
            "vm.builtin.alloc_shape_heap", (2,), ty_args=R.Tensor(ndim=1, dtype="int64")
        )
        R.call_packed(
            "vm.builtin.check_tensor_info", x, 2, R.dtype("float32"), OF_X, ty_args=R.Tuple
        )
        R.call_packed(
            "vm.builtin.match_shape", x, heap, 2, STORE, 0, EQUALS, 2, OF_X, ty_args=R.Tuple
        )
        cls.shape_func(heap)
        sizes = R.call_packed(
            "vm.builtin.make_shape", heap, 2, STORED, 0, STORED, 1, ty_args=R.Shape(ndim=2)
        )
        R.call_packed(
            "vm.builtin.match_shape",
            *(sizes, heap, 2, EQUALS_STORED, 0, EQUALS_STORED, 1, OF_RETURN),
            ty_args=R.Tuple,
        )
        return sizes


def test_vm_shape_lower_computes_sizes_in_memory_of_their_own(makes):
    session = makes(Sizes, "VMShapeLower", SizesOnTheHeap)
    inputs = {"x": random(3, 2)}
    assert session.compare("1", "0", inputs).verdict is Verdict.EQUAL
    lowered = built(session.current.module, *remaining("VMShapeLower"))
    assert tuple(lowered["main"](tvm.runtime.tensor(inputs["x"]))) == (3, 4)
    with pytest.raises(Exception, match="param=x"):
        lowered["main"](tvm.runtime.tensor(random(3, 3)))


@I.ir_module
class Network:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 3), "float32")):
        n = T.int64()
        with R.dataflow():
            product = R.matmul(x, w)
            active = R.nn.relu(product)
            flat = R.reshape(active, R.shape([n * 3]))
            y = R.exp(flat)
            R.output(y)
        return y


def test_the_lowering_here_is_the_one_of_tvm():
    applied = []

    @tvm.instrument.pass_instrument
    class Names:
        def run_before_pass(self, mod, info):  # noqa: ARG002 - as TVM calls it
            applied.append(info.name)

    with tvm.transform.PassContext(instruments=[Names()]):
        tvm.compile(Network, "llvm")
    assert tuple(name for name in applied if name in LOWERING) == LOWERING


def test_after_each_pass_of_the_lowering_those_that_remain_give_the_same_result():
    inputs = {"x": random(5, 4), "w": random(4, 3)}
    arguments = [tvm.runtime.tensor(array) for array in inputs.values()]
    session = Session(Network)
    first = session.run(inputs)
    for name in LOWERING:
        session = session.apply(name)
        assert session.current.error == "", name
        result = built(session.current.module, *remaining(name))["main"](*arguments).numpy()
        assert result.tobytes() == first.outputs[0][0].tobytes(), name
        assert session.compare(session.current.id, "0", inputs).verdict is Verdict.EQUAL, name
    whole = relax.get_pipeline("default_build")(Network)
    tvm.ir.assert_structural_equal(session.current.module, whole)

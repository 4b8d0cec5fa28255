"""The rules hold for the course's other chapters: TensorIR, schedules, tuning, graphs, GPUs."""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pytest
import tvm

from irviz.loaders.upgrade.upgrade import upgrade

IMPORTS = """
import numpy as np
import tvm
from tvm import relax
from tvm import te, tir
from tvm.ir.module import IRModule
from tvm.script import relax as R
from tvm.script import tir as T
"""
MM_RELU = """
@tvm.script.ir_module
class MyModule:
    @T.prim_func
    def mm_relu(A: T.Buffer[(128, 128), "float32"],
                B: T.Buffer[(128, 128), "float32"],
                C: T.Buffer[(128, 128), "float32"]):
        T.func_attr({"global_symbol": "mm_relu", "tir.noalias": True})
        Y = T.alloc_buffer((128, 128), dtype="float32")
        for i, j, k in T.grid(128, 128, 128):
            with T.block("Y"):
                vi = T.axis.spatial(128, i)
                vj = T.axis.spatial(128, j)
                vk = T.axis.reduce(128, k)
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(128, 128):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
"""
ARRAYS = """
a_np = np.random.default_rng(0).standard_normal((128, 128), dtype="float32")
b_np = np.random.default_rng(1).standard_normal((128, 128), dtype="float32")
a_nd, b_nd = tvm.nd.array(a_np), tvm.nd.array(b_np)
c_nd = tvm.nd.empty((128, 128), dtype="float32")
"""
RUN_MM_RELU = """
rt_lib["mm_relu"](a_nd, b_nd, c_nd)
result, wanted = c_nd.numpy(), np.maximum(a_np @ b_np, 0)
"""


@pytest.fixture
def run(tmp_path, request):
    """Upgrade a script, run it as a file, and return what it defines."""

    def run_script(old, notes=()):
        new = upgrade(old)
        assert [note.what for note in new.notes] == list(notes)
        assert upgrade(new.text).text == new.text
        name = f"chapter_{abs(hash(request.node.name))}"
        path = tmp_path / f"{name}.py"
        path.write_text(new.text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # where TVMScript looks for the source
        request.addfinalizer(lambda: sys.modules.pop(name))
        spec.loader.exec_module(module)
        return module

    return run_script


def right(module):
    return np.allclose(module.result, module.wanted, atol=1e-4)


@pytest.mark.build
def test_the_chapter_on_tensorir_builds_and_times_its_kernel(run):
    text = (
        IMPORTS
        + MM_RELU
        + ARRAYS
        + """
rt_lib = tvm.build(MyModule, target="llvm")
f_timer = rt_lib.time_evaluator("mm_relu", tvm.cpu(), number=1)
seconds = f_timer(a_nd, b_nd, c_nd).mean
"""
        + RUN_MM_RELU
    )
    module = run(text)
    assert right(module)
    assert module.seconds > 0


@pytest.mark.build
def test_the_chapter_on_tensorir_schedules(run):
    text = (
        IMPORTS
        + MM_RELU
        + ARRAYS
        + """
def transform(mod, jfactor):
    sch = tvm.tir.Schedule(mod)
    block_Y = sch.get_block("Y", func_name="mm_relu")
    i, j, k = sch.get_loops(block_Y)
    j0, j1 = sch.split(j, factors=[None, jfactor])
    sch.reorder(j0, k, j1)
    block_C = sch.get_block("C", "mm_relu")
    sch.reverse_compute_at(block_C, j0)
    sch.decompose_reduction(block_Y, k)
    return sch.mod

def by_tir(mod):
    sch = tir.Schedule(mod)
    return sch.mod

mod = by_tir(transform(MyModule, jfactor=4))
rt_lib = tvm.build(mod, target="llvm")
"""
        + RUN_MM_RELU
    )
    assert right(run(text))


@pytest.mark.build
def test_a_schedule_of_a_tensor_expression(run):
    text = (
        IMPORTS
        + ARRAYS
        + """
A = te.placeholder((128, 128), "float32", name="A")
B = te.placeholder((128, 128), "float32", name="B")
k = te.reduce_axis((0, 128), "k")
Y = te.compute((128, 128), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="Y")
C = te.compute((128, 128), lambda i, j: te.max(Y[i, j], 0), name="C")
te_func = te.create_prim_func([A, B, C]).with_attr({"global_symbol": "mm_relu"})
MyModuleFromTE = tvm.IRModule({"mm_relu": te_func})
sch = tvm.tir.Schedule(MyModuleFromTE)
sch.compute_inline
rt_lib = tvm.build(sch.mod, target="llvm")
assert isinstance(te_func, tvm.tir.PrimFunc) and isinstance(te_func, tir.PrimFunc)
"""
        + RUN_MM_RELU
    )
    assert right(run(text))


def test_the_chapter_on_tuning_finds_its_names(run):
    module = run(
        IMPORTS
        + MM_RELU
        + """
from tvm import meta_schedule as ms

def stochastic_schedule_mm(sch: tvm.tir.Schedule):
    block_Y = sch.get_block("Y", func_name="mm_relu")
    i, j, k = sch.get_loops(block=block_Y)
    j_factors = sch.sample_perfect_tile(loop=j, n=2)
    sch.split(loop=j, factors=j_factors)
    return sch

sch = stochastic_schedule_mm(tvm.tir.Schedule(MyModule))
space = ms.space_generator.ScheduleFn(stochastic_schedule_mm)
target = tvm.target.Target("llvm --num-cores=2")
tune = ms.tune_tir
"""
    )
    assert module.target.attrs["num-cores"] == 2
    assert "sample_perfect_tile" in str(module.sch.trace)


def test_a_target_with_options_is_a_dictionary_where_a_target_is_meant():
    text = 'import tvm\nlib = tvm.compile(mod, target="llvm -num-cores=4 -mattr=+avx2,+fma")\n'
    assert upgrade(text).text == (
        'import tvm\nlib = tvm.compile(mod, target={"kind": "llvm", "num-cores": 4, '
        '"mattr": ["+avx2", "+fma"]})\n'
    )
    other = 'import tvm\nprint("llvm -num-cores=4")\n'
    assert upgrade(other).text == other


def test_the_chapter_on_graphs_rewrites_with_a_mutator(run):
    module = run(
        IMPORTS
        + """
@tvm.script.ir_module
class MyModule:
    @R.function
    def main(x: Tensor((3, 4), "float32"), y: Tensor((3, 4), "float32")):
        with R.dataflow():
            lv0 = relax.multiply(x, y)
            gv0 = relax.add(lv0, y)
            R.output(gv0)
        return gv0

@relax.expr_functor.mutator
class EwiseFMARewriter(relax.PyExprMutator):
    def visit_call_(self, call):
        call = self.visit_expr_post_order(call)
        add_op = tvm.ir.Op.get("relax.add")
        multiply_op = tvm.ir.Op.get("relax.multiply")
        ewise_fma_op = tvm.ir.Op.get("relax.ewise_fma")
        if call.op != add_op:
            return call
        value = self.lookup_binding(call.args[0])
        if value is None:
            return call
        if not isinstance(value, relax.Call) or value.op != multiply_op:
            return call
        fma_call = relax.Call(
            ewise_fma_op, [value.args[0], value.args[1], call.args[1]], None, None
        )
        return fma_call

updated_fn = EwiseFMARewriter().visit_expr(MyModule["main"])
"""
    )
    assert "R.ewise_fma(x, y, y)" in module.updated_fn.script()


def test_variables_take_the_type_of_others(run):
    module = run(
        IMPORTS
        + """
x = relax.Var("x", (1, 784), relax.DynTensorType(2, "float32"))
type_anno = relax.DynTensorType(ndim=2, dtype="float32")
w = relax.Var("w", [128, 784], type_anno)
param_x = relax.Var("x", x.shape_, x._checked_type_)
b0 = relax.const(np.zeros((128,), "float32"), relax.DynTensorType(1, "float32"))
shapes = [x.struct_info.shape, param_x.shape_, w.checked_type.shape]
bb = relax.BlockBuilder()
with bb.function("main", [x, w]):
    with bb.dataflow():
        lv0 = bb.emit(relax.op.dense(x, w))
        lv1 = bb.emit(relax.op.add(lv0, b0))
        gv = bb.emit_output(relax.op.softmax(relax.op.relu(lv1)))
    bb.emit_func_output(gv)
MyModule = bb.get()
"""
    )
    assert [list(map(int, shape)) for shape in module.shapes] == [[1, 784], [1, 784], [128, 784]]
    assert isinstance(module.MyModule["main"].ret_ty, tvm.relax.TensorType)
    assert "R.nn.softmax" in module.MyModule.script()


@pytest.mark.build
def test_several_outputs_have_a_type_each(run):
    module = run(
        IMPORTS
        + """
@tvm.script.ir_module
class MyModule:
    @T.prim_func
    def twice(A: T.Buffer[4, "float32"], B: T.Buffer[4, "float32"], C: T.Buffer[4, "int32"]):
        for i in T.serial(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] + A[vi]
                C[vi] = 7

    @R.function
    def main(x: Tensor((4,), "float32")):
        both = R.call_tir(
            twice,
            (x,),
            [(4,), (4,)],  # one of each
            dtype=["float32", "int32"],
        )
        return both

vm = relax.VirtualMachine(relax.vm.build(MyModule, target="llvm"), tvm.cpu())
first, second = vm["main"](tvm.nd.array(np.arange(4, dtype="float32")))
"""
    )
    assert module.first.numpy().tolist() == [0, 2, 4, 6]
    assert module.second.numpy().tolist() == [7, 7, 7, 7]


def test_structures_are_compared_by_the_library_that_does_so_now(run):
    text = IMPORTS + MM_RELU + "same = tvm.ir.structural_equal(MyModule, MyModule)\n"
    assert run(text).same


def test_what_needs_a_gpu_is_upgraded_and_not_run():
    old = IMPORTS + MM_RELU + (
        "sch = tvm.tir.Schedule(MyModule)\n"
        'sch.bind(i0, "blockIdx.x")\n'
        'rt_mod = tvm.build(sch.mod, target="cuda")\n'
        "dev = tvm.cuda(0)\nA_nd = tvm.nd.array(A_np, dev)\n"
    )  # fmt: skip
    new = upgrade(old)
    assert new.notes == ()
    assert new.text.endswith(
        "sch = tvm.s_tir.Schedule(MyModule)\n"
        'sch.bind(i0, "blockIdx.x")\n'
        'rt_mod = tvm.tirx.build(sch.mod, target="cuda")\n'
        "dev = tvm.cuda(0)\nA_nd = tvm.runtime.tensor(A_np, dev)\n"
    )


def test_a_buffer_is_aligned_as_memory_is_today(run):
    function = """
@T.prim_func
def copy(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (16, 16), "float16", align=128, offset_factor=16)
    B = T.match_buffer(b, (16, 16), "float16", align=128, offset_factor=16, scope="shared")
    with T.block("root"):
        for i, j in T.grid(16, 16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
"""
    copy = run(IMPORTS + function).copy
    assert {param.ty.data_alignment for param in copy.params} == {64}
    new = function.replace("T.prim_func", "T.prim_func(s_tir=True)")
    assert "align=128" in upgrade(new).text


def test_types_of_packed_calls_and_what_structures_were_called(run):
    module = run(
        IMPORTS
        + """
@tvm.script.ir_module
class MyModule:
    @R.function(pure=False)
    def main(x: R.Tensor((1, 4), "float32")) -> R.Object:
        y = R.call_packed("env.f", x, sinfo_args=(R.Tensor((1, 4), "float32"),))
        z = R.call_packed("env.g", y, type_args=(Object))
        return z

kind = relax.TensorStructInfo((1, 4), "float32")
x = relax.Var("x", relax.TensorStructInfo((1, 4), "float32"))
"""
    )
    assert module.kind == module.x.ty
    assert "R.Any" in module.MyModule.script()

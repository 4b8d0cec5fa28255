# ruff: noqa: N803, N812
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""What calls read, write and share is told by TVM's objects."""

import pytest
import tvm_ffi
from tvm import ir, relax, s_tir, tirx
from tvm.script import tirx as T

from irviz.course.mlp import MODULES
from irviz.ir.relax_calls import ACCESSES, prim_func_access

LOWERED = relax.transform.LegalizeOps()(MODULES["MyModuleHighLevel"])
KERNELS = {
    gvar.name_hint: function
    for mod in (LOWERED, MODULES["MyModule"])
    for gvar, function in mod.functions.items()
    if isinstance(function, tirx.PrimFunc)
}


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_accesses_what_tvms_regions_say(name):
    function = KERNELS[name]
    buffers = {param: param for param in function.params}
    regions = s_tir.analysis.get_sblock_read_write_region(function.body.block, buffers)
    places = {param: at for at, param in enumerate(function.params)}
    read, written = (
        {places[one.source] for one in each if one.source in places} for each in regions
    )
    access = prim_func_access(function)
    assert set(access.writes) == written
    assert set(access.reads) - written == read - written
    assert not access.has_effect


def test_a_pointer_that_leaves_a_kernel_is_read_and_written():
    @T.prim_func(private=True, s_tir=True)
    def passes_on(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), n: T.int32):
        T.evaluate(T.call_extern("int32", "f", A.data, T.address_of(B[2]), n))

    access = prim_func_access(passes_on)
    assert (access.reads, access.writes, access.has_effect) == ((0, 1), (0, 1), True)


def test_a_number_that_is_computed_of_a_buffer_is_only_a_read():
    @T.prim_func(private=True, s_tir=True)
    def exponentials(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = T.exp(A[i])

    access = prim_func_access(exponentials)
    assert (access.reads, access.writes) == ((0,), (1,))


def test_a_kernel_that_was_flattened_writes_the_same_parameters():
    before = {name: prim_func_access(one) for name, one in KERNELS.items()}
    for name, function in KERNELS.items():
        mod = ir.IRModule({name: function})
        for each in (
            "LowerInitBlock",
            "PlanAndUpdateBufferAllocationLocation",
            "ConvertBlocksToOpaque",
            "LowerOpaqueBlock",
        ):
            mod = getattr(s_tir.transform, each)()(mod)
        mod = tirx.transform.FlattenBuffer()(mod)
        assert prim_func_access(mod[name]).writes == before[name].writes != ()


def test_every_name_is_that_of_an_operator_or_a_function_of_tvm():
    operators = set(map(str, ir.Op.list_op_names()))
    functions = set(tvm_ffi.registry.list_global_func_names())
    assert set(ACCESSES) <= operators | functions

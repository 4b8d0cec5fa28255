"""The names of TVMScript's dialect for GPUs and other accelerators, and what each kind does.

The source of each in the installed TVM was reviewed: when a text is parsed, it makes a node of the
IR from its arguments. None of them evaluates or compiles a string, opens a file, or loops as often
as a number in the text says; source code (`T.cuda.func_call`) and PTX stay text in the IR.

- `T.cuda`, `T.nki`, `T.nvshmem`, `T.s_tir`, `T.ptx_legacy`: a call of an operator.
- `T.ptx.ld.global_.b32(…)`, `T.ptx["ld.global.b32"](…)`: the same, of the instruction that a table
  has for these words.
- `T.tile`, `Tx`, `T.cta` and other scopes: a TilePrimitiveCall, which keeps all its arguments.
- `T.TileLayout(T.S[(8, 4) : (4, 1)] + 2 @ Axis.laneid)`: a Layout. TVM multiplies the extents.
- `A.view(…)`, `A.sub[…]` and the like (`dialect.VIEWS`): a declaration of a buffer.

Left out are functions that keep a Python object for later lines (`T.meta_var`, `T.meta_class`,
`T.SMEMPool`, `T.cuda.timer_start`), and those that change TVM (`Axis.get` registers an axis).
"""

from __future__ import annotations

import re

_CUDA = """
__activemask __shfl_down_sync __shfl_sync __shfl_up_sync __shfl_xor_sync any_sync atomic_add
atomic_cas ballot_sync bfloat1622float2 bfloat162float clock64 cluster_sync cta_max cta_min
cta_reduce cta_sum cta_sync cvta_generic_to_shared elect_sync fadd2_rn fdividef ffs_u32
float22bfloat162_rn float22bfloat162_rn_from_float2 float22half2 float2_x float2_y float8tohalf8
float_as_uint fmul2_rn fp8x4_e4m3_from_float4 func_call get_tmem_addr grid_sync half2float
half8tofloat8 hmax2 hmin2 ldg make_float2 mbarrier_wait mbarrier_wait_acquire_cluster mma_fill
mma_fill_legacy mma_store mma_store_legacy mov_sreg nano_sleep printf reduce_add_sync_u32
reduce_min_sync_u32 runtime_instr_desc sm100_2sm_leader_smem_addr smem_addr_from_uint64
syncthreads_and syncthreads_or thread_fence thread_rank trap_when_assert_failed uint_as_float
wait_until warp_max warp_min warp_reduce warp_sum warp_sync warpgroup_sync
iket.mark iket.official_event iket.range_end iket.range_pop iket.range_push iket.range_start
iket.sentinel_token
tcgen05.encode_instr_descriptor tcgen05.encode_instr_descriptor_block_scaled
tcgen05.encode_matrix_descriptor
wgmma.encode_matrix_descriptor wgmma.noop_barrier
"""
_NKI = """
activation activation_reduce affine_select identity load matmul memset reciprocal
scalar_tensor_scalar scalar_tensor_tensor store tensor_copy tensorreduce tensorscalar
tensorscalar_reduce tensortensor
"""
_NVSHMEM = """
barrier_all fence getmem_nbi getmem_nbi.block getmem_nbi.warp my_pe n_pes putmem_nbi
putmem_nbi.block putmem_nbi.warp putmem_signal_nbi putmem_signal_nbi.block putmem_signal_nbi.warp
quiet signal_op wait_until
"""
_TILE = """
add binary_chain binary_reduce cast copy copy_async exp exp2 fdiv fill fma gemm gemm_async log2 max
maximum memset min minimum mul permute_layout reciprocal reduce_negate select silu sqrt sub sum
unary_reduce zero
"""
_AXES = """
Bank F P TCol TLane bx by bz cbx cby cbz laneid m tid_in_wg tx warpid wgid wid_in_wg
"""
_SCOPES = ("cluster", "cta", "thread", "warp", "warpgroup", "wg")

AXES = frozenset(_AXES.split())
"""The axes of layouts: `Axis.laneid`."""

TILE_SCOPED = frozenset(f"{scope}.{name}" for scope in _SCOPES for name in _TILE.split())
"""The tile operations of the threads of a scope: `T.cta.copy`."""
TILE = frozenset(_TILE.split()) | TILE_SCOPED
"""All tile operations: `Tx.copy`, `Tx.cta.copy`; TVM prints them as `T.tile.copy`."""

INTRINSICS = frozenset(
    {
        *(f"cuda.{name}" for name in _CUDA.split()),
        *(f"nki.{name}" for name in _NKI.split()),
        *(f"nvshmem.{name}" for name in _NVSHMEM.split()),
        "s_tir.cp_async_raw",
        "s_tir.cp_async_raw.legacy",
        "s_tir.ldg32",
    }
)
"""The functions that make a call of an operator and nothing else."""

LAYOUTS = frozenset({"T.TileLayout", "T.ComposeLayout"})
"""The functions that make a layout."""
LAYOUT_FUNCTIONS = ("tcgen05_atom_layout", "tmem_datapath_layout", "wg_local_layout")
"""The functions of `tvm.tirx.layout` that make a layout of a few numbers."""
EXTENTS = frozenset({"T.S", "T.R"})
"""The objects whose indices are extents and strides of a layout."""
MAX_EXTENTS = 64
"""The maximum number of extents in a layout: TVM multiplies them, and Python's integers are
unbounded."""
MAX_SWIZZLE = 32
"""The bound of the numbers of T.ComposeLayout, which are logarithms of sizes."""

PTX_OPERANDS = frozenset({"T.ptx.addr", "T.ptx.pred"})
"""The functions that mark an operand of an instruction; they are allowed nowhere else."""
PTX_SINK = "T.ptx.SINK"
"""The operand of an instruction that discards a result."""

_PTX = re.compile(r"ptx(?:\.[A-Za-z][A-Za-z0-9_]*)+")
_PTX_TEXT = re.compile(r"[A-Za-z][A-Za-z0-9_:]*(?:\.[A-Za-z0-9][A-Za-z0-9_:]*){0,40}")
_PTX_WORD = re.compile(r"[A-Za-z0-9_:.,]{0,100}")


def is_ptx(path: str) -> bool:
    """Tell whether a path of T is an instruction of PTX, such as `ptx.ld.global_.b32`.

    TVM looks its words up in a table. Each word starts with a letter, because attributes that start
    with an underscore are Python's own.
    """
    return _PTX.fullmatch(path) is not None and f"T.{path}" not in PTX_OPERANDS | {PTX_SINK}


def is_ptx_text(text: str) -> bool:
    """Tell whether a string is an instruction of PTX: TVM reads attributes by its words."""
    return _PTX_TEXT.fullmatch(text) is not None


def is_ptx_word(text: str) -> bool:
    """Tell whether a string is what TVM prints after the operands of an instruction."""
    return _PTX_WORD.fullmatch(text) is not None

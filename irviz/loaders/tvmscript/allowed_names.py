"""The names of T, R, I and Tx that a text may use: an allowlist, because no blocklist is safe.

T, R and I are Python modules. Besides TVMScript's functions they contain TVM's internals: modules
(`T.external_kernel` contains `os`, `T.tile` contains `tvm`), decorators that run the decorated
function, functions that open files or start a compiler. A name is in these lists only if, whatever
a text passes to it, it makes a piece of IR and does nothing else, and its result contains no string
of the caller.

`T.call_packed`, `T.call_extern` and the like make a call that happens when the module runs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

# --- The names of TVMScript's dialect for GPUs and other accelerators, and what each kind does ---
#
# The source of each in the installed TVM was reviewed: when a text is parsed, it makes a node of
# the IR from its arguments. None of them evaluates or compiles a string, opens a file, or loops
# as often as a number in the text says; source code (`T.cuda.func_call`) and PTX stay text in
# the IR.
#
# - `T.cuda`, `T.nki`, `T.nvshmem`, `T.s_tir`, `T.ptx_legacy`: a call of an operator.
# - `T.ptx.ld.global_.b32(…)`, `T.ptx["ld.global.b32"](…)`: the same, of the instruction that a
#   table has for these words.
# - `T.tile`, `Tx`, `T.cta` and other scopes: a TilePrimitiveCall, which keeps all its arguments.
# - `T.TileLayout(T.S[(8, 4) : (4, 1)] + 2 @ Axis.laneid)`: a Layout. TVM multiplies the extents.
# - `A.view(…)`, `A.sub[…]` and the like (`dialect.VIEWS`): a declaration of a buffer.
#
# Left out are functions that keep a Python object for later lines (`T.meta_var`, `T.meta_class`,
# `T.SMEMPool`, `T.cuda.timer_start`), and those that change TVM (`Axis.get` registers an axis).


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
_S_TIR = "cp_async_raw cp_async_raw.legacy ldg32"
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
    f"{home}.{name}"
    for home, names in {"cuda": _CUDA, "nki": _NKI, "nvshmem": _NVSHMEM, "s_tir": _S_TIR}.items()
    for name in names.split()
)
"""The functions that make a call of an operator and nothing else."""

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
PTX_TEXT = re.compile(r"[A-Za-z][A-Za-z0-9_:]*(?:\.[A-Za-z0-9][A-Za-z0-9_:]*){0,40}")
"""The strings that are an instruction of PTX: TVM reads attributes by their words."""
PTX_WORD = re.compile(r"[A-Za-z0-9_:.,]{0,100}")
"""The strings that TVM prints after the operands of an instruction."""


def is_ptx(path: str) -> bool:
    """Tell whether a path of T is an instruction of PTX, such as `ptx.ld.global_.b32`.

    TVM looks its words up in a table. Each word starts with a letter, because attributes that start
    with an underscore are Python's own.
    """
    return _PTX.fullmatch(path) is not None and f"T.{path}" not in PTX_OPERANDS | {PTX_SINK}


# --- dialect ------------------------------


_RELAX = """
abs acos acosh add arange argmax argmin argsort asin asinh assert_op astype atan atan2 atanh
bitwise_and bitwise_not bitwise_or bitwise_xor broadcast_to bucketize call_builtin_with_ctx
call_dps_packed call_inplace_packed call_packed call_pure_packed call_tir call_tir_inplace
call_tir_with_grad ceil clip collapse_sum_like collapse_sum_to concat const cos cosh cpu cuda
cumprod cumsum dequantize device device_mesh divide dtype dynamic_strided_slice einsum
emit_with_ty equal erf
ewise_fma exp expand_dims ext_dev eye eye_like flatten flip floor floor_divide floor_mod full
full_like func_attr gather_elements gather_nd greater greater_equal hamming_window hexagon
hint_on_device index_put index_tensor invoke_closure invoke_pure_closure isfinite isinf isnan
layout_transform left_shift less less_equal linear log log_add_exp logical_and logical_not
logical_or logical_xor make_closure match_cast matmul max maximum mean median meshgrid metal min
minimum mod multinomial_from_uniform multiply negative nonzero not_equal null_value one_hot ones
ones_like opencl outer output permute_dims power prim_value print prod quantize repeat reshape
reverse_sequence right_shift rocm round rsqrt scatter_elements scatter_nd shape shape_of
shape_to_tensor sigmoid sign sin sinh size slice_scatter sort split sqrt square squeeze stack
std stop_lift_params str strided_slice subtract sum take tan tanh tensor_to_shape tile
to_vdevice topk tril triu trunc tuple unique variance vpi vulkan webgpu where wrap_param zeros
zeros_like
Any Callable DTensor ExternFunc Object Prim Shape ShapeExpr Tensor Tuple TupleGetItem
dataflow
builtin.alloc_tensor builtin.stop_lift_params
ccl.allgather ccl.allreduce ccl.broadcast_from_worker0 ccl.scatter_from_worker0
dist.annotate_sharding dist.call_tir dist.call_tir_local_view dist.const dist.redistribute
dist.redistribute_replica_to_shard
grad.avg_pool2d_backward grad.end_checkpoint grad.max_pool2d_backward grad.nll_loss_backward
grad.no_grad grad.start_checkpoint grad.take_backward
image.affine_grid image.grid_sample image.resize2d image.resize3d
memory.alloc_storage memory.alloc_tensor memory.ensure_zero_offset memory.kill_storage
memory.kill_tensor memory.view
nn.adaptive_avg_pool1d nn.adaptive_avg_pool2d nn.adaptive_avg_pool3d nn.attention
nn.attention_bias nn.attention_var_len nn.avg_pool1d nn.avg_pool2d nn.avg_pool3d
nn.batch_flatten nn.batch_norm nn.conv1d nn.conv1d_transpose nn.conv2d nn.conv2d_transpose
nn.conv3d nn.conv3d_transpose nn.cross_entropy_with_logits nn.dropout nn.gelu nn.gelu_tanh
nn.group_norm nn.instance_norm nn.layer_norm nn.leakyrelu nn.log_softmax nn.max_pool1d
nn.max_pool2d nn.max_pool3d nn.nll_loss nn.pad nn.pixel_shuffle nn.prelu nn.relu nn.relu6
nn.rms_norm nn.selu nn.silu nn.softmax nn.softplus
vision.all_class_non_max_suppression vision.get_valid_counts vision.multibox_transform_loc
vision.non_max_suppression vision.roi_align vision.roi_pool
vm.alloc_storage vm.alloc_tensor vm.call_tir_dyn vm.kill_object
"""

_TIRX = """
TVMBackendAllocWorkspace TVMBackendFreeWorkspace abs acos acosh address_of anylist_getitem
anylist_resetitem anylist_setitem_call_cpacked anylist_setitem_call_packed asin asinh assume
atan atan2 atanh bitwise_and bitwise_not bitwise_or bitwise_xor break_loop call_cpacked
call_cpacked_lowered call_extern call_ffi_kernel call_intrin call_llvm_intrin
call_llvm_pure_intrin call_packed call_packed_lowered call_pure_extern ceil ceildiv clz
continue_loop copysign cos cosh dp4a end_profile_intrinsic erf exp exp10 exp2 fabs floor
floordiv floormod fma fmod get_active_lane_mask handle_add_byte_offset hypot if_then_else
ignore_loop_partition infinity isfinite isinf isnan isnullptr ldexp likely
llvm_lookup_intrinsic_id log log10 log1p log2 lookup_param masked_load masked_store max_value
min_value nearbyint nextafter popcount pow ptr_byte_offset q_multiply_shift
q_multiply_shift_per_axis reinterpret round rsqrt selector shift_left shift_right sigmoid sin
sinh sqrt start_profile_intrinsic tan tanh thread_return trunc truncdiv truncmod tvm_access_ptr
tvm_bmma_sync tvm_call_cpacked tvm_call_cpacked_lowered tvm_call_packed tvm_call_packed_lowered
tvm_fill_fragment tvm_global_barrier_kinit tvm_kernel_replace_point tvm_load_matrix_sync
tvm_mma_sync tvm_stack_alloca tvm_stack_make_array tvm_stack_make_shape tvm_storage_sync
tvm_store_matrix_sync tvm_struct_get tvm_struct_set tvm_thread_allreduce tvm_thread_invariant
tvm_throw_last_error tvm_tuple tvm_warp_activemask tvm_warp_shuffle tvm_warp_shuffle_down
tvm_warp_shuffle_up tvm_warp_shuffle_xor type_annotation undef vectorcombine vectorhigh
vectorlow vscale
Add And BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Broadcast Cast Div EQ FloorDiv FloorMod GE GT
LE LShift LT Max Min Mod Mul NE Not Or RShift Ramp Select Shuffle Sub
Bind Buffer Call FloatImm IntImm Let Ptr Range Return Tuple Var alloc_buffer
alloc_local alloc_scalar
alloc_shared attr bind bool boolean broadcast buffer buffer_decl buffer_store buffer_var cast
comm_reducer decl_buffer decl_scalar env_thread evaluate func_attr grid handle hint index_map init
iter_var launch_thread let local_scalar match_buffer max min parallel ptr ramp reads sblock
sblock_alloc_buffer sblock_attr serial shared_scalar static_assert target thread_binding unroll
var vectorized void where writes
axis.R axis.S axis.opaque axis.reduce axis.remap axis.scan axis.spatial
metal.make_filled_simdgroup_matrix metal.simd_shuffle metal.simd_shuffle_down
metal.simd_shuffle_up metal.simdgroup_load metal.simdgroup_multiply_accumulate
metal.simdgroup_store ptx_legacy.ldmatrix ptx_legacy.mma
webgpu.subgroup_shuffle webgpu.subgroup_shuffle_down webgpu.subgroup_shuffle_up
TensorMap alloc_cast_frag alloc_tcgen05_ldst_frag cluster_id cooperative_tensor_fill
cooperative_tensor_load cooperative_tensor_multiply_accumulate cooperative_tensor_store cta_id
cta_id_in_cluster cta_id_in_pair device_entry lane_id thread_id thread_id_in_wg
smem tensormap_encode_tiled tmem warp_id warp_id_in_wg warpgroup_id wg_reg_tile
ComposeLayout TileLayout ptx.addr ptx.pred
"""

_IR = """
Range StringImm StringType dummy_global_info lookup_vdevice module_attrs module_global_infos vdevice
"""

FUNCTIONS = {
    "R": frozenset(_RELAX.split()),
    "T": frozenset(_TIRX.split()) | INTRINSICS | TILE_SCOPED | {f"tile.{name}" for name in TILE},
    "I": frozenset(_IR.split()),
    "Tx": TILE,
    "Axis": frozenset[str](),
}
"""The names that a text may call, by dialect; T has the instructions of PTX too."""

_DTYPE = re.compile(
    r"(?:bf|bfloat|f|float|i|int|u|uint)\d+(?:_?e\d+m\d+(?:b\d+)?(?:fn)?(?:uz|u)?)?(?:x\d+)?"
)

TYPES = {
    "R": frozenset({"Any", "Callable", "Object", "Shape", "Tensor", "Tuple"}),
    "T": frozenset({"TensorMap", "bool", "boolean", "handle", "let", "void"}),
}
"""The names that may occur without a call. TVM calls them without arguments."""

PLACED = EXTENTS | {"T.ptx", PTX_SINK} | {f"Axis.{name}" for name in AXES}
"""The names that are only allowed in one kind of expression: a layout or a PTX instruction."""

SHAPES = {"R.Tensor": "shape", "R.DTensor": "shape", "R.Shape": "values", "T.Buffer": "shape"}
"""The functions whose first argument may contain expressions in quotes, and its name.

TVM evaluates these: Relax by `eval`, T.Buffer as a part of the text.
"""

SIGNATURES = frozenset({*SHAPES, "R.Callable", "R.Tuple"})
"""The types of parameters and results that contain such expressions, or types that do."""

_SELECT = frozenset(name for name in TILE if name.rpartition(".")[2] == "select")
LAMBDAS = frozenset(
    {"R.layout_transform", "T.comm_reducer", "T.cuda.wait_until", "T.index_map"}
    | {f"{root}.{name}" for root in ("T", "T.tile", "Tx") for name in _SELECT}
)
"""The functions that take a lambda, and call it with variables."""

DECORATORS = {
    "I.ir_module": frozenset({"check_well_formed", "s_tir"}),
    "T.prim_func": frozenset({"check_well_formed", "persistent", "private", "s_tir"}),
    "R.function": frozenset({"check_well_formed", "private", "pure"}),
}
"""The decorators and their options, which are True or False."""

ATTRIBUTES = frozenset({"data", "elem_offset", "shape", "strides"})
"""The attributes of values that may be read; none of them is a string."""

TEXT_ATTRIBUTES = frozenset({"dtype", "ty"})
"""The attributes of values that may be strings: they are read only where a string may be."""

VIEWS = frozenset({"local", "permute", "rearrange", "view"})
"""The methods that derive a buffer from a buffer, and can be chained: `A.view(4, 4).local()`."""

INDEXERS = frozenset({"chunk", "sub", "tile"})
"""What must be indexed to make a buffer: `A.sub[0, :]`, `A.tile((0, (2, 4)))[:, i]`."""

METHODS = VIEWS | {"access_ptr", "astype", "elem_offset_of", "ptr_to", "vload", "vstore"}
"""The methods of variables that may be called; `astype` also of expressions."""

METHOD_WORD = re.compile(r"[a-z][a-z0-9_]*")
"""The strings that methods take: data types and the modes of pointers."""

REARRANGEMENT = re.compile(r"[\w() >-]{0,200}")
"""The strings of `A.rearrange("(a b) c -> a c b")`: TVM takes the square of their length."""

TVM_CALLS = frozenset(
    {"cpu", "cuda", "device", "ir.Op.get", "target.Target", "tirx.call_intrin", "tirx.const"}
    | {f"tirx.layout.{name}" for name in LAYOUT_FUNCTIONS}
)
"""The functions of `tvm` itself that a text may call."""

METADATA_STRINGS = frozenset({"ffi.String", "ir.StringImm"})
METADATA = METADATA_STRINGS | {"ffi.Tensor", "ir.GenericConst"}
"""The types of constants in a text's JSON: plain values, including strings."""

_WHY = {
    "T.inline": "it defines a Python function",
    "T.macro": "it defines a Python function",
    "R.macro": "it defines a Python function",
    "T.jit": "it defines a Python function",
    "I.pyfunc": "it defines a Python function",
    "R.call_py_func": "it calls a Python function",
    "R.emit_te": "it calls a Python function",
    "T.call_kernel": "it opens files and starts a compiler",
    "T.meta_var": "it keeps a Python value",
    "I.meta_var": "it keeps a Python value",
    "T.meta_class": "it keeps a Python object",
    "T.SMEMPool": "it keeps a Python object",
    "T.TMEMPool": "it keeps a Python object",
    "T.print_buffer": "it is for TVM's own passes",
}


def may_call(root: str, path: str) -> bool:
    """Tell whether a text may call `path` of a dialect, such as "nn.relu" of "R"."""
    known = FUNCTIONS.get(root, ())
    return path in known or _is_dtype(root, path) or (root == "T" and is_ptx(path))


def may_reference(root: str, path: str) -> bool:
    """Tell whether a text may use `path` without calling it, as annotations do."""
    return path in TYPES.get(root, ()) or _is_dtype(root, path)


def keeps_arguments(root: str, path: str) -> bool:
    """Tell whether TVM keeps an argument of a function as it is, even a Python function."""
    if root not in ("T", "Tx"):
        return (root, path) == ("R", "call_packed")
    return path.removeprefix("tile.") in TILE or (root, path) == ("T", "hint")


def has_type(root: str, path: str) -> bool:
    """Tell whether the attribute `ty` of a call's result may be read, as of `T.handle()`."""
    return (root, path) == ("T", "handle") or _is_dtype(root, path)


def is_dtype(text: str) -> bool:
    """Tell whether a string is a data type, such as "float32"."""
    return text == "bool" or _DTYPE.fullmatch(text) is not None


def _is_dtype(root: str, path: str) -> bool:
    return root == "T" and _DTYPE.fullmatch(path) is not None


_MOST_COMPARED = 80
"""The length of a name that is compared with others, which takes time."""


def refusal_reason(root: str, path: str) -> str:
    """Return why a text may not use a name, to be appended to its place."""
    name = f"{root}.{path}"
    if name in _WHY:
        return f"{name} is refused: {_WHY[name]}"
    if name in DECORATORS:
        return f"{name} is refused here: it is a decorator"
    if name in PLACED:
        return f"{name} is refused here: it is a part of a layout or of an instruction of PTX"
    if may_call(root, path):
        return f"{name} is refused here: it must be called"
    known = FUNCTIONS[root] if len(path) < _MOST_COMPARED else ()
    meant = "".join(f"; did you mean {root}.{one}?" for one in get_close_matches(path, known, 1))
    return f"{name} is refused: TVMScript does not need it{meant}"


# --- The names that a text imports from TVM's GPU dialect, and their full names ------------------
#
# TVM's functions are written under imported names: `laneid` for `Axis.laneid`. No import is
# executed: the syntax tree gets the full names before it is checked, and TVM's parser the
# objects that they mean. A name that the text itself binds keeps the text's meaning.


MEANINGS: Mapping[tuple[str, str], str] = {
    **{("tvm.tirx.layout", name): f"Axis.{name}" for name in AXES},
    ("tvm.tirx.layout", "S"): "T.S",
    ("tvm.tirx.layout", "R"): "T.R",
    ("tvm.tirx.layout", "TileLayout"): "T.TileLayout",
    ("tvm.tirx.layout", "ComposeLayout"): "T.ComposeLayout",
    **{("tvm.tirx.layout", name): f"tvm.tirx.layout.{name}" for name in LAYOUT_FUNCTIONS},
    ("tvm.script.tirx", "tile"): "Tx",
}
"""What may be imported, as a module and a name, and its full name in a text."""


def imported_names(tree: ast.Module) -> dict[str, str]:
    """Return the names that the imports at the outermost level bind, with their full names."""
    return {
        one.asname or one.name: MEANINGS[node.module or "", one.name]
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and not node.level
        for one in node.names
        if (node.module or "", one.name) in MEANINGS
    }


def used_names(tree: ast.Module, imported: Mapping[str, str]) -> dict[str, str]:
    """Return the imported names whose meaning a text does not change."""
    bound = set(_bound(tree)) if imported else set()
    return {name: meaning for name, meaning in imported.items() if name not in bound}


def _bound(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name


def with_full_names(tree: ast.Module, imported: Mapping[str, str]) -> ast.Module:
    """Return a tree with the full names of imported ones, at the same places."""
    if imported:  # to visit all nodes takes as long as to parse them
        _FullNames(imported).visit(tree)
    return tree


class _FullNames(ast.NodeTransformer):
    def __init__(self, imported: Mapping[str, str]) -> None:
        self._imported = imported

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Return the full name of an imported name."""
        if node.id not in self._imported:
            return node
        full = ast.parse(self._imported[node.id], mode="eval").body
        for part in ast.walk(full):
            ast.copy_location(part, node)
        return full

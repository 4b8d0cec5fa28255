"""Converters for calls that TVM lacks or imports with another meaning, and for complex numbers."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import ir, relax, tirx

from irviz.loaders.models.imported_layers import described
from irviz.loaders.models.importer_workarounds import NORMALISATIONS

if TYPE_CHECKING:
    import torch
    from torch.fx import Node
    from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter

Convert = Callable[["Node"], relax.Expr]
_OVERLOADS = ("Scalar", "Tensor")
_LAST = 2**63 - 1
"""The number that torch uses for the end of a dimension."""


def own_operators(importer: ExportedProgramImporter) -> dict[str, Convert]:
    """Return converters for an importer, by the names of operators."""
    known = importer.convert_map
    importer._upsample_impl = partial(_upsample, importer)
    made: dict[str, Convert] = {
        "amax.default": partial(_reduce, importer, relax.op.max),
        "amin.default": partial(_reduce, importer, relax.op.min),
        "convert_element_type.default": partial(_operand, importer),
        "empty_strided.default": partial(_empty, importer),
        "complex.default": partial(_complex, importer),
        "view_as_complex.default": partial(_operand, importer),
        "view_as_real.default": partial(_operand, importer),
        "clamp.default": partial(_clamp, importer),
        "cumsum.default": partial(_cumsum, importer),
        "div.Tensor_mode": partial(_div, importer),
        "elu.default": partial(_elu, importer),
        "grid_sampler_2d.default": partial(_grid_sample, importer),
        "histc.default": partial(_histc, importer),
        "hypot.default": partial(_hypot, importer),
        "index_put.default": partial(_index_put, importer),
        "min.dim": partial(_min_dim, importer),
        "scatter_add.default": partial(_scatter_reduce, importer),
        "scatter_reduce.two": partial(_scatter_reduce, importer),
        "searchsorted.Tensor": partial(_searchsorted, importer),
        "var_mean.correction": partial(_var_mean, importer),
        "_cdist_forward.default": partial(_cdist, importer),
        "_trilinear.default": partial(_trilinear, importer),
        "while_loop": partial(_while_loop, importer),
        "index.Tensor": partial(_index_tensor, importer),
        "slice.Tensor": partial(_slice, importer),
        "sym_float": lambda node: tirx.Cast("float64", importer.env[node.args[0]]),
        "_upsample_bilinear2d_aa.default": partial(_upsample_smoothed, importer),
    }
    for name, op in (("lshift", relax.op.left_shift), ("rshift", relax.op.right_shift)):
        made |= {f"__{name}__.{kind}": partial(_shift, importer, op) for kind in _OVERLOADS}
    for dims in "23":
        name = f"max_pool{dims}d_with_indices.default"
        made[name] = partial(_max_pool, known[name])
    for name, op in (("add.Tensor", relax.op.add), ("sub.Tensor", relax.op.subtract)):
        made[name] = partial(_scaled, importer, op, known[name])
    return made


def _while_loop(importer: ExportedProgramImporter, node: Node) -> relax.Expr:
    """Import a loop as a function that calls itself while its condition holds."""
    condition, body, carried, *more = node.args
    operands = [importer.env[one] for one in (*carried, *(more[0] if more else ()))]
    if not all(isinstance(getattr(one, "ty", None), relax.TensorType) for one in operands):
        raise ValueError("it carries numbers that are no tensors")
    goes_on, step = (
        importer._import_branch_subgraph(importer.env[one], operands, name)
        for one, name in ((condition, "while_condition"), (body, "while_body"))
    )
    builder, count = importer.block_builder, len(carried)
    types = builder.get()[step].params
    params = [relax.Var(one.name, one.ty) for one in types]
    results = relax.Tuple(params[:count]) if count > 1 else params[0]
    kept = [one.ty for one in params[:count]]
    type_ = relax.TupleType(kept) if count > 1 else kept[0]
    loop = builder.add_func(relax.Function(params, results, type_), "while_loop")
    after = relax.Call(step, params)
    fields = [relax.TupleGetItem(after, at) for at in range(count)] if count > 1 else [after]
    again = relax.Call(loop, [*fields, *params[count:]])
    choice = relax.If(relax.Call(goes_on, params), again, results)
    function = relax.Function(params, choice, type_)
    plain = relax.BlockBuilder(builder.get())  # which is in no dataflow block, where If is illegal
    builder.update_func(loop, plain.normalize(function))
    return builder.emit(relax.Call(loop, operands))


def _operand(importer: ExportedProgramImporter, node: Node) -> relax.Expr:
    """Import what changes at most the dtype, which each result gets in the end."""
    return importer.env[node.args[0]]


def _empty(importer: ExportedProgramImporter, node: Node) -> relax.Expr:
    """Import a tensor that nothing sets as one of zeros."""
    dtype = importer._convert_data_type(node.meta["val"].dtype)
    return importer.block_builder.emit(relax.op.zeros(importer.retrieve_args(node)[0], dtype))


def _complex(importer: ExportedProgramImporter, node: Node) -> relax.Expr:
    return importer.block_builder.emit(relax.op.stack(importer.retrieve_args(node), axis=-1))


_ALONG = (
    *("argmax", "argmin", "cumprod", "cumsum", "flip", "gather", "index_select", "max.dim"),
    *("min.dim", "scatter", "scatter_add", "scatter_reduce", "sort", "topk"),
)
"""Operators along a dimension, of which TVM needs at least one."""
_OF_NUMBERS = ("argmax", "argmin", "isinf", "max", "min", "sign", "sort", "topk")
"""Operators that TVM cannot build for bools."""
_POOLS = ("avg_pool2d", "avg_pool3d")
_DIVISOR = 6
"""The position of a divisor among the arguments of these, which TVM lacks."""


def unsuited(node: Node) -> str:
    """Return why TVM cannot build what its importer makes of a node, or "" if it can."""
    full_name = str(getattr(node.target, "__name__", ""))
    name = full_name.partition(".")[0]
    value = getattr(node.args[0], "meta", {}).get("val") if node.args else None
    if {name, full_name} & {*_ALONG} and getattr(value, "shape", None) == ():
        return "its operand has no dimension"
    if name in _OF_NUMBERS and str(getattr(value, "dtype", "")) == "torch.bool":
        return "its operand has bools"
    sizes = [one for each in node.args[1:3] for one in each] if name == "as_strided" else []
    if not all(isinstance(one, int) for one in sizes):
        return "its sizes or strides may vary"
    if name in _POOLS and len(node.args) > _DIVISOR and node.args[_DIVISOR] is not None:
        return "it has a divisor of its own"
    return ""


_OPTIONS = (
    *("strides", "padding", "output_padding", "dilation", "groups"),
    *("data_layout", "kernel_layout", "out_layout"),
)


def keep_dtypes(builder: relax.BlockBuilder) -> None:
    """Make a builder's products and convolutions give the dtype of their operands.

    TVM's importer asks for float32 whatever they have. Half precision is added up in float32 and
    rounded once, as torch does; float64 is computed in float64.
    """
    emit = builder.emit

    def emitted(expr: relax.Expr, name_hint: str = "") -> relax.Var:
        asked = getattr(getattr(expr, "attrs", None), "out_dtype", None)
        dtype = str(expr.args[0].ty.dtype) if str(asked) == "float32" else ""
        if dtype == "float64":
            name = expr.op.name.removeprefix("relax.").removeprefix("nn.")
            attrs = {one: getattr(expr.attrs, one) for one in _OPTIONS if hasattr(expr.attrs, one)}
            op = relax.op.matmul if name == "matmul" else getattr(relax.op.nn, name)
            return emit(op(*expr.args, **attrs, out_dtype=dtype), name_hint)
        if dtype in ("float16", "bfloat16"):
            return emit(relax.op.astype(emit(expr), dtype), name_hint)
        return emit(expr, name_hint)

    builder.emit = emitted


_NORMALISATION = re.compile(r"(?:_?native_)?((?:layer|group|instance|rms|batch)_norm)")


def in_suitable_dtype(
    importer: ExportedProgramImporter, node: Node, rounded: list[str]
) -> contextlib.AbstractContextManager[None]:
    """Cast a call's operands to the dtype in which torch computes it.

    TVM's importer computes `x * 0.5` in integers if `x` has integers. A normalisation that TVM does
    not compute in its dtype gets float32, and its description is added to `rounded`.
    """
    kind = _NORMALISATION.match(node.target.__name__)
    if (
        kind
        and str(importer.env[node.args[0]].ty.dtype) not in NORMALISATIONS[f"relax.nn.{kind[1]}"]
    ):
        rounded.append(described(node))
        operands = [one for one in node.args if hasattr(one, "meta")]
        return _operands_in(importer, operands, "float32")
    dtype = _common_dtype(node)
    if dtype is None:
        return contextlib.nullcontext()
    return _operands_in(importer, _operands(node), importer._convert_data_type(dtype))


@contextlib.contextmanager
def _operands_in(
    importer: ExportedProgramImporter, operands: Sequence[Any], wanted: str
) -> Iterator[None]:
    """Give operands another dtype until the block ends."""
    cast: dict[Node, Any] = {}
    for operand in dict.fromkeys(operands):
        before = importer.env.get(operand)
        is_tensor = isinstance(before, relax.Var | ir.GenericConst)
        if is_tensor and isinstance(before.ty, relax.TensorType):
            if str(before.ty.dtype) != wanted:
                cast[operand] = importer.block_builder.emit(relax.op.astype(before, wanted))
        elif isinstance(before, tirx.Expr) and wanted != "int64":
            cast[operand] = tirx.Cast(wanted, before)
    with _values(importer, cast):
        yield


@contextlib.contextmanager
def _values(importer: ExportedProgramImporter, values: Mapping[Node, Any]) -> Iterator[None]:
    """Give nodes other values until the block ends."""
    before = {node: importer.env[node] for node in values}
    importer.env.update(values)
    try:
        yield
    finally:
        importer.env.update(before)


_JOINED = ("cat", "stack")


def _operands(node: Node) -> list[Any]:
    """Return the operands that must share a dtype: nodes and numbers; none for other operators."""
    import torch

    name = str(getattr(node.target, "__name__", "")).partition(".")[0]
    if name in _JOINED:
        return list(node.args[0])
    if torch.Tag.pointwise not in getattr(node.target, "tags", ()) or name == "masked_fill":
        return []
    return list(node.args[1:3] if name == "where" else node.args[:2])


def _common_dtype(node: Node) -> torch.dtype | None:
    """Return the dtype in which an elementwise operator computes, None if any will do.

    For a predicate on a single value, such as isnan, it is that of the operand.
    """
    import torch

    value, operands = node.meta.get("val"), _operands(node)
    if not operands or not isinstance(value, torch.Tensor):
        return None
    if node.args[0] == operands:  # they are joined
        return value.dtype
    if value.dtype is not torch.bool:
        return value.dtype if value.dtype.is_floating_point or len(operands) == 2 else None
    values = [one.meta.get("val") if hasattr(one, "meta") else one for one in operands]
    plain = [one if isinstance(one, torch.Tensor | bool | int | float) else 1 for one in values]
    return torch.result_type(*plain) if len(plain) == 2 else None


def _reduce(importer: ExportedProgramImporter, op: Any, node: Node) -> relax.Expr:
    """Import `x.amax(dims, keepdim)`, which TVM's importer lacks."""
    source, axes, keeps = (*node.args, None, False)[:3]
    x = importer.env[source]
    return importer.block_builder.emit(op(x, list(axes or ()) or None, bool(keeps)))


def _cumsum(importer: ExportedProgramImporter, node: Node) -> relax.Expr:
    """Import a cumulative sum of bools or integers in torch's dtype: TVM's adds bools as bools."""
    source, axis = importer.env[node.args[0]], node.args[1]
    dtype = importer._convert_data_type(node.meta["val"].dtype)
    if str(source.ty.dtype) != dtype:
        source = importer.block_builder.emit(relax.op.astype(source, dtype))
    return importer.block_builder.emit(relax.op.cumsum(source, axis=axis, dtype=dtype))


def _div(importer: ExportedProgramImporter, node: Node) -> relax.Expr:
    """Import a rounded division of integers, where TVM's importer refuses or changes the dtype."""
    value, divisor = node.args
    rounding, source = node.kwargs.get("rounding_mode"), importer.env[value]
    is_int = str(source.ty.dtype).startswith(("int", "uint"))
    ops = {"floor": relax.op.floor_divide, "trunc": relax.op.divide}  # of integers it truncates
    if rounding not in ops or not (is_int or (rounding, type(divisor)) == ("floor", float)):
        return importer._div(node)
    is_number = isinstance(divisor, int | float)
    operand = _constant(divisor, source) if is_number else importer.env[divisor]
    return importer.block_builder.emit(ops[rounding](source, operand))


def _constant(number: float, like: relax.Expr) -> relax.Expr:
    return relax.const(number, str(like.ty.dtype))


def _shift(importer: ExportedProgramImporter, op: Any, node: Node) -> relax.Expr:
    """Import `n << 2` and `n >> 2`, which TVM's importer lacks."""
    value, count = importer.retrieve_args(node)
    count = _constant(count, value) if isinstance(count, int) else count
    return importer.block_builder.emit(op(value, count))


def _min_dim(importer: ExportedProgramImporter, node: Node) -> relax.Expr:
    """Import `x.min(dim)`, which TVM's importer lacks: the least value and its index."""
    source, axis, keeps = (*node.args, False)[:3]
    x, emit = importer.env[source], importer.block_builder.emit
    least = emit(relax.op.min(x, axis, keepdims=bool(keeps)))
    index = emit(relax.op.argmin(x, axis, keepdims=bool(keeps)))
    return emit(relax.Tuple([least, index]))


def _var_mean(importer: ExportedProgramImporter, node: Node) -> relax.Expr:
    """Import `torch.var_mean`, which TVM's importer lacks."""
    source, axes = (*node.args, None)[:2]
    x, emit, op = importer.env[source], importer.block_builder.emit, relax.op
    keeps, correction = node.kwargs.get("keepdim", False), node.kwargs.get("correction")
    axes = list(axes) if axes else list(range(x.ty.ndim))
    sizes = [x.ty.shape[axis] for axis in axes]
    if not all(isinstance(size, int | tirx.IntImm) for size in sizes):
        raise ValueError("its dimensions have sizes that may vary")
    count = math.prod(map(int, sizes))
    factor = count / (count - (1 if correction is None else correction))
    variance = op.multiply(op.variance(x, axes, keeps), _constant(factor, x))
    return emit(relax.Tuple([emit(variance), emit(op.mean(x, axes, keeps))]))


def _hypot(importer: ExportedProgramImporter, node: Node) -> relax.Expr:
    one, other = importer.retrieve_args(node)
    squares = relax.op.add(relax.op.multiply(one, one), relax.op.multiply(other, other))
    return importer.block_builder.emit(relax.op.sqrt(squares))


def _clamp(importer: ExportedProgramImporter, node: Node) -> relax.Expr:
    """Import limits of integers; TVM's importer gives them infinity for one that is missing."""
    source, least, most = (*node.args, None, None)[:3]
    x = importer.env[source]
    if not str(x.ty.dtype).startswith(("int", "uint")):
        return importer._clamp(node)
    for limit, op in ((least, relax.op.maximum), (most, relax.op.minimum)):
        if limit is not None:
            x = importer.block_builder.emit(op(x, _constant(limit, x)))
    return x


def _histc(importer: ExportedProgramImporter, node: Node) -> relax.Expr:
    """Import a histogram with given limits: numbers are compared with the bins."""
    source, bins, low, high = (*node.args, 100, 0, 0)[:4]
    if low == high:
        raise ValueError("its limits follow from the numbers: give min and max")
    emit, op, x = importer.block_builder.emit, relax.op, importer.env[source]
    dtype = str(x.ty.dtype)
    flat = emit(op.astype(op.reshape(x, [-1, 1]), "float32"))
    scaled = op.multiply(op.subtract(flat, relax.const(float(low))), relax.const(float(bins)))
    place = op.floor(op.divide(scaled, relax.const(float(high - low))))
    place = emit(op.where(op.equal(flat, relax.const(float(high))), relax.const(bins - 1.0), place))
    at = relax.const(np.arange(bins, dtype="float32")[None])
    return emit(op.sum(op.astype(op.equal(place, at), dtype), axis=0))


def _searchsorted(importer: ExportedProgramImporter, node: Node) -> relax.Expr:
    """Import `torch.searchsorted`: the count of sorted numbers that are less."""
    numbers, values = (importer.env[one] for one in node.args)
    is_right = node.kwargs.get("right") or node.kwargs.get("side") == "right"
    if node.kwargs.get("sorter") is not None:
        raise ValueError("it has a sorter: sort the numbers before")
    emit, op = importer.block_builder.emit, relax.op
    dtype = importer._convert_data_type(node.meta["val"].dtype)
    count = numbers.ty.ndim
    row = op.expand_dims(numbers, -2 if count > 1 else list(range(values.ty.ndim)))
    is_less = (op.less_equal if is_right else op.less)(emit(row), op.expand_dims(values, -1))
    return emit(op.sum(op.astype(is_less, dtype), axis=-1))


def _cdist(importer: ExportedProgramImporter, node: Node) -> relax.Expr:
    one, other, power = (*importer.retrieve_args(node), 2.0)[:3]
    emit, op = importer.block_builder.emit, relax.op
    if power in (0.0, float("inf")):
        raise ValueError(f"it has p={power}: give another p")
    apart = emit(op.subtract(op.expand_dims(one, -2), op.expand_dims(other, -3)))
    if power == 2.0:
        return emit(op.sqrt(op.sum(op.multiply(apart, apart), axis=-1)))
    powers = op.sum(op.power(op.abs(apart), _constant(power, apart)), axis=-1)
    return emit(op.power(powers, _constant(1 / power, apart)))


def _grid_sample(importer: ExportedProgramImporter, node: Node) -> relax.Expr:
    """Import `grid_sample`, whose grid TVM has with the coordinates first."""
    first = relax.op.permute_dims(importer.env[node.args[1]], [0, 3, 1, 2])
    with _values(importer, {node.args[1]: importer.block_builder.emit(first)}):
        return importer._grid_sampler_2d(node)


_REDUCTIONS = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}


def _scatter_reduce(importer: ExportedProgramImporter, node: Node) -> relax.Expr:
    """Import `x.scatter_reduce(dim, index, source, reduce)`; without the last, as scatter_add.

    A mean is the sum over the count. Without the numbers of `x`, those that are replaced are first
    set to what changes nothing.
    """
    x, axis, index, source, reduce = (*importer.retrieve_args(node), "sum")[:5]
    has_self = node.kwargs.get("include_self", True)
    emit, op = importer.block_builder.emit, relax.op

    def scattered(into: relax.Expr, numbers: relax.Expr, reduction: str) -> relax.Expr:
        # torch takes the part that the index is as large as
        for at, (size, most) in enumerate(zip(index.ty.shape, numbers.ty.shape, strict=True)):
            if isinstance(size, int | tirx.IntImm) and int(size) != int(most):
                numbers = emit(op.strided_slice(numbers, [at], [0], [size], [1]))
        return emit(op.scatter_elements(into, index, numbers, axis, reduction))

    start = x
    if not has_self:
        dtype = np.dtype(str(x.ty.dtype))
        limits = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
        nothing = {"prod": 1, "amax": limits.min, "amin": limits.max}.get(reduce, 0)
        filled = emit(op.full_like(source, relax.const(nothing, str(dtype))))
        start = scattered(x, filled, "update")
    if reduce != "mean":
        return scattered(start, source, _REDUCTIONS[reduce])
    total = scattered(start, source, "add")
    counted = emit((op.ones_like if has_self else op.zeros_like)(x))
    counts = scattered(counted, emit(op.ones_like(source)), "add")
    return emit(op.divide(total, emit(op.maximum(counts, _constant(1, x)))))


def _index_put(importer: ExportedProgramImporter, node: Node) -> relax.Expr:
    """Import `x[:, rows] = values`, also where not all dimensions have an index.

    The indexed dimensions are put first, and back at the end.
    """
    x, indices, values, *rest = importer.retrieve_args(node)
    emit, op = importer.block_builder.emit, relax.op
    axes = [axis for axis, index in enumerate(indices) if index is not None]
    if any(str(indices[axis].ty.dtype) == "bool" for axis in axes):
        return importer._index_put(node)
    sizes = list(x.ty.shape)
    others = [axis for axis in range(len(sizes)) if axis not in axes]
    if axes[-1] - axes[0] >= len(axes):
        raise ValueError("a dimension without an index is between those with one")
    found = [_not_negative(importer, indices[axis], sizes[axis]) for axis in axes]
    shape = list(emit(reduce(op.add, found)).ty.shape)
    if axes[0] > 0:
        values = _moved(importer, values, axes[0], len(shape), len(others))
    stacked = [op.broadcast_to(op.astype(one, "int64"), shape) for one in found]
    at = emit(op.stack(stacked, axis=-1))
    rows = emit(op.broadcast_to(values, [*shape, *(sizes[axis] for axis in others)]))
    first = emit(op.permute_dims(x, axes + others)) if others else x
    reduction = "add" if rest and rest[0] else "update"
    result = emit(op.scatter_nd(first, at, rows, reduction))
    back = [(axes + others).index(axis) for axis in range(len(sizes))]
    return emit(op.permute_dims(result, back)) if others else result


def _moved(
    importer: ExportedProgramImporter, values: relax.Expr, axis: int, depth: int, others: int
) -> relax.Expr:
    """Put the dimensions of values that are those of the indices, from `axis` on, first."""
    order = list(range(depth + others))
    values = relax.op.expand_dims(values, order[: len(order) - values.ty.ndim])
    inner = order[axis : axis + depth]
    return importer.block_builder.emit(
        relax.op.permute_dims(values, inner + order[:axis] + order[axis + depth :])
    )


def _max_pool(convert: Convert, node: Node) -> relax.Expr:
    """Import max_pool2d with the stride that it has by default, and without its indices.

    TVM's importer gives it other indices than torch.
    """
    if any(user.args[1] == 1 and user.users for user in node.users):
        raise ValueError("its indices are used, which TVM does not compute")
    before = node.args
    stride = list(before[2]) if len(before) > 2 else []
    node.args = (*before[:2], stride or before[1], *before[3:])
    try:
        return convert(node)
    finally:
        node.args = before


def _trilinear(importer: ExportedProgramImporter, node: Node) -> relax.Expr:
    """Import the sum of products that nn.Bilinear consists of."""
    *factors, first, second, third, summed = importer.retrieve_args(node)[:7]
    op = relax.op
    spread = [
        op.expand_dims(factor, list(axes)) if axes else factor
        for factor, axes in zip(factors, (first, second, third), strict=True)
    ]
    product = importer.block_builder.emit(op.multiply(op.multiply(*spread[:2]), spread[2]))
    return importer.block_builder.emit(op.sum(product, list(summed)))


def _scaled(importer: ExportedProgramImporter, op: Any, convert: Convert, node: Node) -> relax.Expr:
    """Import `torch.add(x, y, alpha=2)`: TVM's importer leaves out the factor."""
    if (alpha := node.kwargs.get("alpha", 1)) == 1:
        return convert(node)
    value, other = importer.retrieve_args(node)
    scaled = relax.op.multiply(other, _constant(alpha, other))
    return importer.block_builder.emit(op(value, scaled))


def _elu(importer: ExportedProgramImporter, node: Node) -> relax.Expr:
    """Import ELU with both factors, as in SELU: TVM's importer leaves out the second."""
    source, alpha, scale, within = (*node.args, 1.0, 1.0, 1.0)[:4]
    x, op = importer.env[source], relax.op
    number = partial(relax.const, dtype=str(x.ty.dtype))
    below = op.subtract(op.exp(op.multiply(op.minimum(x, number(0)), number(within))), number(1))
    both = op.add(op.nn.relu(x), op.multiply(number(alpha), below))
    return importer.block_builder.emit(op.multiply(both, number(scale)))


def _upsample(
    importer: ExportedProgramImporter,
    x: relax.Expr,
    size: Any,
    scale_factor: Any,
    method: str,
    align_corners: bool,
) -> relax.Expr:
    """Import `interpolate` with torch's sampling, also for dynamic sizes.

    TVM's importer rounds to other nearest positions than torch.
    """
    if size is None:
        factors = scale_factor if isinstance(scale_factor, list | tuple) else (scale_factor,) * 2
        size = [_times(one, factor) for one, factor in zip([*x.ty.shape][2:], factors, strict=True)]
    nearest = method == "nearest_neighbor"
    between = "align_corners" if align_corners else "half_pixel"
    return importer.block_builder.emit(
        relax.op.image.resize2d(
            x,
            tuple(importer._retrieve_args(list(size))),
            layout="NCHW",
            method=method,
            coordinate_transformation_mode="asymmetric" if nearest else between,
            rounding_method="floor" if nearest else "round",
            cubic_alpha=-0.75,
        )
    )


def _times(size: Any, factor: float) -> Any:
    if isinstance(size, int | tirx.IntImm):
        return int(int(size) * factor)
    if factor != int(factor):
        raise ValueError(f"a size that may vary is scaled by {factor}, which is not an integer")
    return size * int(factor)


def _upsample_smoothed(importer: ExportedProgramImporter, node: Node) -> relax.Expr:
    """Import interpolation with antialias=True if that makes no difference."""
    source, result = node.args[0].meta["val"].shape, node.meta["val"].shape
    if any(not isinstance(to, int) or to < of for of, to in zip(source, result, strict=True)):
        raise ValueError("it makes an image smaller with antialias=True, which TVM cannot")
    return importer._upsample_bilinear2d_aa(node)


def _slice(importer: ExportedProgramImporter, node: Node) -> relax.Expr:
    """Import `x[start:end]` with the size that torch infers.

    TVM's importer gives it the minimum of two dynamic sizes, which it cannot prove equal to any
    other size.
    """
    args: list[Any] = [*node.args, *(None, 0, None, None)[len(node.args) :]]
    source, axis, start, end, *step = args
    before, after = source.meta["val"].shape, node.meta["val"].shape
    begin = 0 if start is None else start
    first, last = (getattr(one, "meta", {"val": one})["val"] for one in (begin, end))
    if begin != 0 and (last is None or (isinstance(last, int) and last >= _LAST)):
        end, last = importer.env[source].ty.shape[axis], before[axis]
    if step or last is None or str(last - first) != str(after[axis]):
        return importer._slice(node)
    limits = [[one] for one in importer._retrieve_args([axis % len(after), begin, end, 1])]
    return importer.block_builder.emit(
        relax.op.strided_slice(importer.env[source], *limits, assume_inbound=True)
    )


def _index_tensor(importer: ExportedProgramImporter, node: Node) -> relax.Expr:
    """Import `x[:, rows, columns]` with torch's meaning, also for negative indices.

    TVM's importer refuses or mixes up dimensions if some are not indexed, and reads out of bounds
    at negative indices.
    """
    data, indices = importer.retrieve_args(node)
    emit = importer.block_builder.emit
    axes = [axis for axis, index in enumerate(indices) if index is not None]
    if any(str(indices[axis].ty.dtype) == "bool" for axis in axes):
        raise ValueError("its result has as many elements as a mask selects, which is not known")
    if len(axes) == 1:
        return emit(relax.op.take(data, indices[axes[0]], axis=axes[0], mode="wrap"))
    sizes = list(data.ty.shape)
    found = [_not_negative(importer, indices[axis], sizes[axis]) for axis in axes]
    others = [axis for axis in range(len(sizes)) if axis not in axes]
    if axes[-1] >= len(axes):  # R.index_tensor takes the first dimensions
        data = emit(relax.op.permute_dims(data, axes + others))
    result = emit(relax.op.index_tensor(data, found))
    if axes[0] == 0 or axes[-1] - axes[0] >= len(axes):
        return result  # torch, too, puts the indexed dimensions first
    depth = result.ty.ndim - len(others)
    order = list(range(result.ty.ndim))
    before = order[depth : depth + axes[0]]
    return emit(relax.op.permute_dims(result, before + order[:depth] + order[depth + axes[0] :]))


def _not_negative(importer: ExportedProgramImporter, index: relax.Expr, size: Any) -> relax.Expr:
    """Return an index that counts from the start of a dimension."""
    dtype = str(index.ty.dtype)
    if isinstance(size, int | tirx.IntImm):
        divisor = relax.const(int(size), dtype)
    else:
        divisor = relax.prim_value(size if dtype == "int64" else tirx.Cast(dtype, size))
    return importer.block_builder.emit(relax.op.floor_mod(index, divisor))


# --- Complex numbers, which TVM lacks, as pairs of numbers in a last dimension of their own ------


OF_COMPLEX = ("complex.default", "view_as_complex.default", "view_as_real.default", "getitem")
"""The operators whose converters are right for pairs; torch computes all others."""


def is_complex(value: Any) -> bool:
    """Tell whether a value is a tensor of complex numbers."""
    return hasattr(value, "is_complex") and bool(value.is_complex())


def has_complex(node: Node) -> bool:
    """Tell whether a node takes or gives complex numbers."""
    values = [one.meta.get("val") for one in (node, *node.all_input_nodes)]
    flat = [part for one in values for part in (one if isinstance(one, list | tuple) else [one])]
    return any(map(is_complex, flat))


def pair_complex_numbers(
    importer: ExportedProgramImporter, program: torch.export.ExportedProgram
) -> None:
    """Make an importer give inputs and weights of complex numbers the type of pairs of numbers."""
    import torch

    create, convert = importer.create_input_vars, importer._convert_pytorch_tensor_to_tvm
    type_of = importer._convert_data_type
    paired = {
        node.name
        for node in program.graph.find_nodes(op="placeholder")
        if is_complex(node.meta.get("val"))
    }

    def created(program: torch.export.ExportedProgram) -> Any:
        *variables, ranges = create(program)
        for named in variables:
            for name in named.keys() & paired:
                type_ = named[name].ty
                pairs = relax.TensorType([*type_.shape, 2], type_.dtype)
                named[name] = relax.Var(named[name].name, pairs)
        return *variables, ranges

    def real(dtype: Any) -> Any:
        is_dtype = isinstance(dtype, torch.dtype) and dtype.is_complex
        return type_of(dtype.to_real() if is_dtype else dtype)

    if paired:
        importer.create_input_vars, importer._convert_data_type = created, real
        importer._convert_pytorch_tensor_to_tvm = lambda one: convert(as_pairs(one))


def as_pairs(tensor: torch.Tensor) -> torch.Tensor:
    """Return complex numbers as pairs of numbers, and any other tensor unchanged."""
    import torch

    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor

"""Operators of TOPI on small tensors, each as its inputs and its output."""

from collections.abc import Callable

from tvm import te, tirx, topi


def _floats(*shape: int, name: str = "A") -> te.Tensor:
    return te.placeholder(shape, name=name, dtype="float32")


def _ints(*shape: int, name: str) -> te.Tensor:
    return te.placeholder(shape, name=name, dtype="int32")


A, B = _floats(2, 3, 4), _floats(2, 3, 4, name="B")
IMAGE, KERNEL = _floats(1, 2, 5, 5, name="image"), _floats(3, 2, 3, 3, name="kernel")
M, W, V = _floats(3, 4, name="M"), _floats(5, 4, name="W"), _floats(4, name="V")
N, INDEX = _ints(2, 3, name="N"), _ints(2, name="index")
SCALE, SHIFT = _floats(2, name="scale"), _floats(2, name="shift")
MEAN, VARIANCE = _floats(2, name="mean"), _floats(2, name="variance")

_UNARY = (
    *("exp", "tanh", "sigmoid", "erf", "sqrt", "rsqrt", "log", "log2", "log10", "floor", "ceil"),
    *("trunc", "round", "abs", "negative", "sign", "sin", "cos", "tan", "asin", "acos", "atan"),
    *("sinh", "cosh", "asinh", "atanh", "isnan", "isfinite", "isinf", "fast_exp", "fast_erf"),
)
_BINARY = (
    *("add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "floor_divide"),
    *("floor_mod", "mod", "greater", "less_equal", "equal", "not_equal"),
)
_ALONG_AXIS = ("sum", "max", "min", "prod", "argmax", "argmin")
_OTHERS: dict[str, Callable[[], te.Tensor]] = {
    "softmax": lambda: topi.nn.softmax(A),
    "log_softmax": lambda: topi.nn.log_softmax(M),
    "leaky_relu": lambda: topi.nn.leaky_relu(A, 0.1),
    "dense": lambda: topi.nn.dense(M, W),
    "batch_matmul": lambda: topi.nn.batch_matmul(A, B),
    "conv2d": lambda: topi.nn.conv2d_nchw(IMAGE, KERNEL, 1, 1, 1),
    "conv2d_transpose": lambda: topi.nn.conv2d_transpose_nchw(
        IMAGE, _floats(2, 3, 3, 3, name="kernel"), (1, 1), (0, 0, 0, 0), "float32", (0, 0)
    ),
    "depthwise_conv2d": lambda: topi.nn.depthwise_conv2d_nchw(
        IMAGE, _floats(2, 1, 3, 3, name="kernel"), (1, 1), (1, 1), (1, 1)
    ),
    "max_pool": lambda: topi.nn.pool2d(IMAGE, [2, 2], [2, 2], [1, 1], [0, 0, 0, 0], "max"),
    "avg_pool": lambda: topi.nn.pool2d(IMAGE, [3, 3], [2, 2], [1, 1], [1, 1, 1, 1], "avg"),
    "adaptive_pool": lambda: topi.nn.adaptive_pool(IMAGE, [2, 2], "avg"),
    "batch_norm": lambda: topi.nn.batch_norm(IMAGE, SCALE, SHIFT, MEAN, VARIANCE)[0],
    "layer_norm": lambda: topi.nn.layer_norm(M, V, None, [1]),
    "rms_norm": lambda: topi.nn.rms_norm(M, V, [1]),
    "pad": lambda: topi.nn.pad(M, [1, 0], [0, 2]),
    "upsampling": lambda: topi.nn.upsampling(IMAGE, 2, 2),
    "resize": lambda: topi.image.resize2d(
        IMAGE, [0.0] * 4, (7, 7), method="linear", coordinate_transformation_mode="half_pixel"
    ),
    "transpose": lambda: topi.transpose(A, (2, 0, 1)),
    "reshape": lambda: topi.reshape(A, (6, 4)),
    "concatenate": lambda: topi.concatenate([A, B], 1),
    "split": lambda: topi.split(A, 2, 2)[1],
    "strided_slice": lambda: topi.strided_slice(A, [0, 1, 0], [2, 3, 4], [1, 1, 2]),
    "flip": lambda: topi.flip(A, 1),
    "take": lambda: topi.take(M, INDEX, axis=0, mode="clip"),
    "where": lambda: topi.where(topi.greater(A, B), A, B),
    "cast to int32": lambda: topi.cast(A, "int32"),
    "cast to float16": lambda: topi.cast(A, "float16"),
    "clip": lambda: topi.clip(A, -0.5, 0.5),
    "one_hot": lambda: topi.one_hot(INDEX, 1.0, 0.0, 4, -1, "float32"),
    "cumsum": lambda: topi.cumsum(A, axis=1),
    "trilu": lambda: topi.trilu(M, tirx.const(0, "int32"), True),
    "left_shift": lambda: topi.left_shift(N, 1),
    "bitwise_not": lambda: topi.bitwise_not(N),
    "scatter_elements": lambda: topi.scatter_elements(
        M, _ints(2, 2, name="at"), _floats(2, 2, name="updates")
    ),
}
OPERATORS: dict[str, Callable[[], te.Tensor]] = {
    **{name: lambda name=name: getattr(topi, name)(A) for name in _UNARY},
    **{name: lambda name=name: getattr(topi, name)(A, B) for name in _BINARY},
    **{name: lambda name=name: getattr(topi, name)(A, axis=1) for name in _ALONG_AXIS},
    **_OTHERS,
}


def prim_func(output: te.Tensor) -> tirx.PrimFunc:
    """Return the PrimFunc that TVM makes of an operator's inputs and output."""
    return te.create_prim_func([*_inputs(output), output])


def _inputs(output: te.Tensor) -> list[te.Tensor]:
    found: list[te.Tensor] = []
    waiting = [output]
    while waiting:
        one = waiting.pop()
        waiting += list(one.op.input_tensors)
        if isinstance(one.op, te.PlaceholderOp) and not any(one.same_as(other) for other in found):
            found.append(one)
    return found

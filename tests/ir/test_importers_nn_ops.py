# ruff: noqa: N812
"""Each operator of `relax.frontend.nn` is read as the oracle reads it."""

import inspect

import pytest
from tvm import topi
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import op, spec
from tvm.script import tirx as T

from irviz.model.graph.graph import NodeKind, Resolution

OUT = nn.Tensor.placeholder([2, 4], "float32")


@T.prim_func(s_tir=True, private=True)
def doubled(x: T.Buffer((2, 4), "float32"), y: T.Buffer((2, 4), "float32")):
    for i, j in T.grid(2, 4):
        with T.sblock("y"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = x[vi, vj] * T.float32(2)


@T.prim_func(s_tir=True, private=True)
def doubled_in_place(x: T.Buffer((2, 4), "float32")):
    for i, j in T.grid(2, 4):
        with T.sblock("x"):
            vi, vj = T.axis.remap("SS", [i, j])
            x[vi, vj] = x[vi, vj] * T.float32(2)


def column(x):
    return op.sum(x, axis=1, keepdims=True)


def whole(x, dtype="int32"):
    return op.astype(column(x), dtype)


def four(x):
    """Return the tensor as an attention's queries, keys or values."""
    return op.reshape(x, [1, 2, 2, 2])


def talking(x):
    op.debug_func("env.debug", x, 3, 0.5, "text", _line_info="here")
    op.print_(x)
    return x


WAYS = {
    "unsqueeze": lambda x: op.unsqueeze(x, 0),
    "concat": lambda x: op.concat([x, x, x], 0),
    "add": lambda x: op.add(x, x) + 1.0,
    "subtract": lambda x: 1.0 - op.subtract(x, x),
    "multiply": lambda x: op.multiply(x, x) * x,
    "divide": lambda x: op.divide(x, x) / 2.0,
    "chunk": lambda x: op.chunk(x, 2, 1),
    "sum": lambda x: op.sum(x, axis=[0, 1]),
    "max": lambda x: op.max(x, axis=1, keepdims=True),
    "min": lambda x: op.min(x),
    "matmul": lambda x: op.matmul(x, op.permute_dims(x)),
    "conv1d": lambda x: op.conv1d(op.unsqueeze(x, 0), op.ones([3, 2, 3])),
    "conv2d": lambda x: op.conv2d(four(x), op.ones([3, 2, 2, 2]), op.ones([3]), padding=1),
    "conv3d": lambda x: op.conv3d(op.unsqueeze(four(x), 0), op.ones([3, 1, 2, 2, 2])),
    "conv1d_transpose": lambda x: op.conv1d_transpose(op.unsqueeze(x, 0), op.ones([2, 3, 3])),
    "maximum": lambda x: op.maximum(x, x),
    "minimum": lambda x: op.minimum(x, x),
    "broadcast_to": lambda x: op.broadcast_to(x, [3, 2, 4]),
    "permute_dims": lambda x: op.permute_dims(x, [1, 0]),
    "reshape": lambda x: op.reshape(x, [4, -1]),
    "repeat": lambda x: op.repeat(x, 2, 1),
    "squeeze": lambda x: op.squeeze(column(x), 1),
    "take": lambda x: op.take(x, op.astype(op.sum(x, axis=1), "int32"), axis=0),
    "astype": lambda x: op.astype(x, "float16"),
    "relu": op.relu,
    "relu6": op.relu6,
    "silu": op.silu,
    "gelu": lambda x: op.gelu(x, "tanh"),
    "sigmoid": op.sigmoid,
    "softmax": op.softmax,
    "softplus": op.softplus,
    "prelu": lambda x: op.prelu(x, op.ones([4])),
    "tanh": op.tanh,
    "exp": op.exp,
    "log": op.log,
    "floor": op.floor,
    "arange": lambda _: op.arange(0, 4),
    "permute": lambda x: op.permute(x, [1, 0]),
    "negative": op.negative,
    "layer_norm": lambda x: op.layer_norm(x, [4], op.ones([4]), op.ones([4])),
    "rms_norm": lambda x: op.rms_norm(x, op.ones([4]), [-1]),
    "group_norm": lambda x: op.group_norm(x, 2, op.ones([4]), op.ones([4])),
    "triu": lambda x: op.triu(x, 1),
    "full": lambda x: op.full([2, 3], op.sum(x)),
    "zeros": lambda _: op.zeros([2, 3]),
    "ones": lambda _: op.ones([2, 3], "float16"),
    "empty": lambda _: op.empty([2, 3]),
    "split": lambda x: op.split(x, [1, 3], axis=1),
    "pad": lambda x: op.pad(x, [0, 1, 2, 0]),
    "square": op.square,
    "sqrt": op.sqrt,
    "get_timestep_embedding": lambda x: op.get_timestep_embedding(op.sum(x, axis=1), 4),
    "scaled_dot_product_attention": lambda x: op.scaled_dot_product_attention(*[four(x)] * 3),
    "interpolate": lambda x: op.interpolate(four(x), scale_factor=2, mode="bilinear"),
    "ccl_allreduce": op.ccl_allreduce,
    "ccl_allgather": lambda x: op.ccl_allgather(x, 2),
    "ccl_broadcast_from_worker0": op.ccl_broadcast_from_worker0,
    "tensor_expr_op": lambda x: op.tensor_expr_op(topi.add, "sum", [x, x], attrs={"note": 1}),
    "tensor_ir_op": lambda x: op.tensor_ir_op(doubled, "doubled", [x], OUT),
    "tensor_ir_inplace_op": lambda x: op.tensor_ir_inplace_op(
        doubled_in_place, "doubled", [x], 0, OUT
    ),
    "extern": lambda x: op.extern("env.relu", [x, 3, 0.5, "text", (x, x)], OUT),
    "debug_func": talking,
    "print_": talking,
    "less": lambda x: op.less(x, x),
    "less_equal": lambda x: op.less_equal(x, x),
    "greater": lambda x: op.greater(x, x),
    "greater_equal": lambda x: op.greater_equal(x, x),
    "equal": lambda x: op.equal(x, x),
    "not_equal": lambda x: op.not_equal(x, x),
    "where": lambda x: op.where(op.less(x, op.exp(x)), x, op.exp(x)),
    "cumsum": lambda x: op.cumsum(x, 1, exclusive=True),
    "sort": lambda x: op.sort(x, descending=True),
    "argsort": op.argsort,
    "topk": lambda x: op.topk(x, 2),
    "multinomial_from_uniform": lambda x: op.multinomial_from_uniform(
        op.softmax(x), column(x), whole(x, "int64")
    ),
    "sample_top_p_top_k_from_sorted_prob": lambda x: op.sample_top_p_top_k_from_sorted_prob(
        op.sort(x), op.argsort(x), column(x), whole(x), column(x), whole(x, "int64")
    ),
    "renormalize_top_p_top_k_prob": lambda x: op.renormalize_top_p_top_k_prob(
        x, op.sort(x), column(x), whole(x)
    ),
}


def imported(way, *shape):
    class Model(nn.Module):
        def forward(self, x: nn.Tensor):
            return way(x)

    given = {"forward": {"x": spec.Tensor(list(shape), "float32")}}
    return Model().export_tvm(spec=given, debug=True)[0]


def test_every_operator_there_is_has_its_turn():
    there = {
        name
        for name, function in vars(op).items()
        if inspect.isfunction(function) and function.__module__ == op.__name__
    }
    assert set(WAYS) == {name for name in there if not name.startswith("_")}


@pytest.mark.parametrize("name", WAYS)
def test_every_operator_is_read(check, name):
    check(imported(WAYS[name], 2, 4))


@pytest.mark.parametrize("name", ["add", "softmax", "permute_dims", "concat", "reshape", "extern"])
def test_operators_of_unknown_sizes_are_read(check, name):
    if name == "extern":
        way = lambda x: op.extern("env.f", [x, x.shape[0], x.shape[0] * 2], x)  # noqa: E731
    else:
        way = WAYS[name]
    check(imported(way, "n", 4))


def test_a_library_call_takes_numbers_texts_and_tuples(check):
    (forward,) = (
        g for name, g in check(imported(WAYS["extern"], 2, 4)).items() if "init" not in name
    )
    (call,) = (node for node in forward.nodes if node.kind is NodeKind.CALL_DPS_PACKED)
    assert call.callee == "env.relu"
    assert call.resolution is Resolution.LIBRARY
    assert [literal.text for literal in call.literals] == ["3", "T.float64(0.5)", "'text'"]
    assert [(e.source, e.position) for e in forward.entering[call.id]] == [
        ("x", (0,)),
        ("x", (4, 0)),
        ("x", (4, 1)),
    ]

"""Modules of any size to measure with, made in a second or two.

Decoder stacks of 33 bindings a layer, by three routes, and a flat graph that repeats nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from tvm import ir, relax
from tvm.relax import op
from tvm.relax.frontend import nn

BINDINGS = 33
"""How many bindings a layer has; a stack has one more, the norm behind the last layer."""

_BATCH, _STEPS, _WIDTH, _HEADS, _INNER = 1, 64, 256, 8, 1024
_EACH = _WIDTH // _HEADS
_SHAPES = {
    **dict.fromkeys(("norm1", "norm2"), (_WIDTH,)),
    **dict.fromkeys(("query", "key", "value", "out"), (_WIDTH, _WIDTH)),
    **dict.fromkeys(("gate", "up"), (_INNER, _WIDTH)),
    "down": (_WIDTH, _INNER),
}
Emit = Callable[[ir.Expr], ir.Var]


def layers_of(bindings: int) -> int:
    """Return how many layers come nearest to so many bindings."""
    return round(bindings / BINDINGS)


def decoder(bindings: int) -> ir.IRModule:
    """Make a decoder stack of high-level operators with a BlockBuilder."""
    builder = relax.BlockBuilder()
    x, layers, norm = _params(layers_of(bindings))
    with builder.function("main", [x, *_flat(layers), norm]):
        with builder.dataflow():
            h = x
            for weights in layers:
                h = _layer(builder.emit, h, weights)
            result = builder.emit_output(_norm(h, norm))
        builder.emit_func_output(result)
    return builder.get()


def legalized(bindings: int) -> ir.IRModule:
    """Make what LegalizeOps makes of the same stack: calls of PrimFuncs.

    The pass takes seconds on a large stack. So it is applied to one layer, which is repeated.
    """
    one = relax.transform.LegalizeOps()(decoder(BINDINGS))
    main = one["main"]
    builder = relax.BlockBuilder()
    callees = {
        var: builder.add_func(function, var.name_hint)
        for var, function in one.functions_items()
        if var.name_hint != "main"
    }
    x, layers, norm = _params(layers_of(bindings))
    *written, last = main.body.blocks[0].bindings
    with builder.function("main", [x, *_flat(layers), norm]):
        with builder.dataflow():
            h = x
            for weights in layers:
                known = dict(zip(main.params, [h, *_flat([weights]), norm], strict=True))
                for binding in written:
                    h = known[binding.var] = builder.emit(_again(binding.value, callees, known))
            ends = {written[-1].var: h, main.params[-1]: norm}
            result = builder.emit_output(_again(last.value, callees, ends))
        builder.emit_func_output(result)
    return builder.get()


def exported(bindings: int) -> ir.IRModule:
    """Export a Llama-like decoder stack from relax.frontend.nn."""
    x = nn.spec.Tensor([_BATCH, _STEPS, _WIDTH], "float32")
    made, _ = _Decoder(layers_of(bindings)).export_tvm(spec={"forward": {"x": x}})
    return made


def flat(bindings: int, reach: int | None = None) -> ir.IRModule:
    """Make random operators on random earlier values, or on the latest ones within reach.

    They are the same ones each time.
    """
    chance = random.Random(bindings)
    unary = (op.nn.relu, op.tanh, op.exp, op.sqrt, op.negative, op.sigmoid, op.abs)
    binary = (op.add, op.subtract, op.multiply, op.maximum, op.minimum, op.matmul)
    builder = relax.BlockBuilder()
    square = relax.TensorType((_STEPS, _STEPS), "float32")
    values: list[ir.Var] = [relax.Var(f"x{index}", square) for index in range(4)]
    with builder.function("main", list(values)):
        with builder.dataflow():
            for _ in range(bindings - 1):
                near = values[-(reach or len(values)) :]
                if chance.random() < 0.5:
                    call = chance.choice(unary)(chance.choice(near))
                else:
                    call = chance.choice(binary)(chance.choice(near), chance.choice(near))
                values.append(builder.emit(call))
            result = builder.emit_output(op.add(values[-1], values[-2]))
        builder.emit_func_output(result)
    return builder.get()


def bindings_of(module: ir.IRModule) -> int:
    """Count the bindings of a module's Relax functions."""
    functions = (f for _, f in module.functions_items() if isinstance(f, relax.Function))
    return sum(len(block.bindings) for f in functions for block in f.body.blocks)


def _params(layers: int) -> tuple[ir.Var, list[dict[str, ir.Var]], ir.Var]:
    def tensor(name: str, *shape: int) -> ir.Var:
        return relax.Var(name, relax.TensorType(shape, "float32"))

    weights = [
        {name: tensor(f"layer{index}_{name}", *shape) for name, shape in _SHAPES.items()}
        for index in range(layers)
    ]
    return tensor("x", _BATCH, _STEPS, _WIDTH), weights, tensor("norm", _WIDTH)


def _flat(layers: Iterable[dict[str, ir.Var]]) -> list[ir.Var]:
    return [weight for weights in layers for weight in weights.values()]


def _norm(x: ir.Expr, weight: ir.Var) -> ir.Expr:
    return op.nn.rms_norm(x, weight, axes=[-1], epsilon=1e-5)


def _layer(emit: Emit, x: ir.Var, weights: dict[str, ir.Var]) -> ir.Var:
    def linear(h: ir.Var, name: str) -> ir.Var:
        return emit(op.matmul(h, emit(op.permute_dims(weights[name]))))

    h = emit(_norm(x, weights["norm1"]))
    x = emit(op.add(x, linear(_attention(emit, *(linear(h, n) for n in _QKV)), "out")))
    h = emit(_norm(x, weights["norm2"]))
    gated = emit(op.multiply(emit(op.nn.silu(linear(h, "gate"))), linear(h, "up")))
    return emit(op.add(x, linear(gated, "down")))


_QKV = ("query", "key", "value")


def _attention(emit: Emit, *projected: ir.Var) -> ir.Var:
    def heads(h: ir.Var) -> ir.Var:
        split = emit(op.reshape(h, (_BATCH, _STEPS, _HEADS, _EACH)))
        return emit(op.permute_dims(split, [0, 2, 1, 3]))

    query, key, value = (heads(one) for one in projected)
    scores = emit(op.matmul(query, emit(op.permute_dims(key, [0, 1, 3, 2]))))
    scaled = emit(op.multiply(scores, relax.const(_EACH**-0.5, "float32")))
    mixed = emit(op.matmul(emit(op.nn.softmax(scaled)), value))
    joined = emit(op.permute_dims(mixed, [0, 2, 1, 3]))
    return emit(op.reshape(joined, (_BATCH, _STEPS, _WIDTH)))


def _again(
    call: ir.Call, callees: dict[ir.GlobalVar, ir.GlobalVar], known: dict[ir.Var, ir.Var]
) -> ir.Call:
    """Write a call_tir once more, with other values."""
    callee, arguments = call.args
    values = relax.Tuple([known.get(one, one) for one in arguments.fields])
    return relax.Call(call.op, [callees[callee], values], call.attrs, call.ty_args)


class _Layer(nn.Module):
    def __init__(self) -> None:
        def linear(before: int, behind: int) -> nn.Linear:
            return nn.Linear(before, behind, bias=False)

        self.norm1 = nn.RMSNorm(_WIDTH, -1, bias=False)
        self.norm2 = nn.RMSNorm(_WIDTH, -1, bias=False)
        self.query, self.key, self.value = (linear(_WIDTH, _WIDTH) for _ in range(3))
        self.out = linear(_WIDTH, _WIDTH)
        self.gate, self.up = (linear(_WIDTH, _INNER) for _ in range(2))
        self.down = linear(_INNER, _WIDTH)

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        h = self.norm1(x)
        x = x + self.out(self._attention(self.query(h), self.key(h), self.value(h)))
        h = self.norm2(x)
        return x + self.down(nn.op.silu(self.gate(h)) * self.up(h))

    def _attention(self, *projected: nn.Tensor) -> nn.Tensor:
        def heads(h: nn.Tensor) -> nn.Tensor:
            split = nn.op.reshape(h, (_BATCH, _STEPS, _HEADS, _EACH))
            return nn.op.permute_dims(split, [0, 2, 1, 3])

        query, key, value = (heads(one) for one in projected)
        scores = nn.op.matmul(query, nn.op.permute_dims(key, [0, 1, 3, 2])) / _EACH**0.5
        mixed = nn.op.matmul(nn.op.softmax(scores, axis=-1), value)
        joined = nn.op.permute_dims(mixed, [0, 2, 1, 3])
        return nn.op.reshape(joined, (_BATCH, _STEPS, _WIDTH))


class _Decoder(nn.Module):
    def __init__(self, layers: int) -> None:
        self.layers = nn.ModuleList([_Layer() for _ in range(layers)])
        self.norm = nn.RMSNorm(_WIDTH, -1, bias=False)

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)

"""The pictures of the README and the docs as irviz draws them; `figures.toml` declares them."""

from __future__ import annotations

from typing import Any

from tvm import relax, s_tir, te

import irviz
from assets.moving_stages import fused_mlp
from irviz.cli.main import demo_stages
from irviz.course.digits import mlp_params
from irviz.course.mlp import MyModuleMixture
from irviz.view.figure import Figure


def bound_mlp() -> irviz.Session:
    """Return the MLP, and then with its weights bound."""
    return irviz.Session(MyModuleMixture, params=mlp_params()).bind()


def linear_relu() -> irviz.Session:
    """Return a linear layer and its ReLU, and at the end one function with one loop nest."""

    def linear(x: te.Tensor, w: te.Tensor) -> te.Tensor:
        k = te.reduce_axis((0, x.shape[1]), name="k")
        shape = x.shape[0], w.shape[0]
        return te.compute(shape, lambda i, j: te.sum(x[i, k] * w[j, k], axis=k), name="Y")

    def relu(y: te.Tensor) -> te.Tensor:
        return te.compute(y.shape, lambda *i: te.max(y(*i), 0.0), name="out")

    def one_nest(schedule: s_tir.Schedule) -> None:
        product, result = map(schedule.get_sblock, ("Y", "out"))
        _, j, k = schedule.get_loops(product)
        schedule.reverse_compute_at(result, j)
        schedule.decompose_reduction(product, k)

    x = relax.Var("x", relax.TensorType((4, 3072), "float32"))
    w = relax.Var("w", relax.TensorType((200, 3072), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x, w]):
        with builder.dataflow():
            lv = builder.emit_te(linear, x, w)
            out = builder.emit_output(builder.emit_te(relu, lv))
        builder.emit_func_output(out)
    session = irviz.Session(builder.get(), isolate=False)
    for name in ("CanonicalizeBindings", "AnnotateTIROpPattern", "FuseOps", "FuseTIR"):
        session = session.apply(name)
    return session.schedule("fused_linear_relu", one_nest)


def folded_layers() -> Any:
    """Return a stack of equal layers."""
    return stack(48)


def fusion() -> Figure:
    """Return the diff of FuseOps on the MLP with its weights bound."""
    return fused_mlp().diff("4", "5").figure()


def first_difference() -> irviz.Session:
    """Return the MLP, and as the last stage the one whose relu adds 0.5."""

    @irviz.library.register("env.relu_and_more", "(...)->(...)")
    def relu_and_more(x: Any, out: Any) -> None:
        out[...] = x.clip(0) + 0.5

    return demo_stages().checkout("1").swap("relu0", "env.relu_and_more")


def stack(layers: int) -> Any:
    """Return the IRModule of a stack of residual layers, as relax.frontend.nn exports it."""
    from tvm.relax.frontend import nn

    class Layer(nn.Module):
        def __init__(self) -> None:
            self.norm = nn.RMSNorm(64, axes=-1, bias=False)
            self.up, self.down = nn.Linear(64, 256, bias=False), nn.Linear(256, 64, bias=False)

        def forward(self, x: nn.Tensor) -> nn.Tensor:
            return nn.add(x, self.down(nn.silu(self.up(self.norm(x)))))

    class Stack(nn.Module):
        def __init__(self) -> None:
            self.layers = nn.ModuleList([Layer() for _ in range(layers)])
            self.norm = nn.RMSNorm(64, axes=-1, bias=False)

        def forward(self, x: nn.Tensor) -> nn.Tensor:
            return self.norm(self.layers(x))

    x = nn.spec.Tensor([1, 64], "float32")
    return Stack().export_tvm({"forward": {"x": x}})[0]

"""The graph optimisation chapter's programs for figures: small graphs, and rewrites of them."""

from __future__ import annotations

from collections.abc import Callable

from tvm import IRModule, ir, relax
from tvm.relax.dpl import is_op, rewrite_call, wildcard


def multiply_add() -> IRModule:
    """Return x * y + y, of (3, 4) in float32."""
    return main_of(lambda x, y: relax.op.add(relax.op.multiply(x, y), y), x=(3, 4), y=(3, 4))


def linear_relu() -> IRModule:
    """Return relu(x @ w + b), the first layer of the lecture's MLP, with the weight transposed."""

    def build(x: relax.Var, w: relax.Var, b: relax.Var) -> relax.Expr:
        return relax.op.nn.relu(relax.op.add(relax.op.matmul(x, w), b))

    return main_of(build, x=(1, 784), w=(784, 128), b=(128,))


@ir.transform.module_pass(opt_level=0, name="UseFma")  # type: ignore[untyped-decorator]
def use_fma(module: IRModule, _: ir.transform.PassContext) -> IRModule:
    """Replace a product and its addition by one ewise_fma."""
    x, y, z = wildcard(), wildcard(), wildcard()
    pattern = is_op("relax.add")(is_op("relax.multiply")(x, y), z)
    made = rewrite_call(
        pattern, lambda _, found: relax.op.ewise_fma(found[x], found[y], found[z]), module["main"]
    )
    return IRModule({"main": relax.analysis.remove_all_unused(made)})


def fuse_linear_relu() -> ir.transform.Pass:
    """Return the pass that makes a function of each linear layer with its ReLU."""
    product = is_op("relax.matmul")(wildcard(), wildcard())
    layer = is_op("relax.nn.relu")(is_op("relax.add")(product, wildcard()))
    return relax.transform.FuseOpsByPattern([("linear_relu", layer)])


def main_of(build: Callable[..., relax.Expr], **shapes: tuple[int, ...]) -> IRModule:
    """Return a module with a `main` of these parameters, whose last value `build` returns."""
    builder = relax.BlockBuilder()
    parameters = [
        relax.Var(name, relax.TensorType(shape, "float32")) for name, shape in shapes.items()
    ]
    with builder.function("main", parameters):
        with builder.dataflow():
            result = builder.emit_output(builder.normalize(build(*parameters)))
        builder.emit_func_output(result)
    return builder.get()

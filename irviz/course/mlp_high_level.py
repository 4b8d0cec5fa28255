# ruff: noqa: D102, N805, N812
# mypy: ignore-errors
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""The lecture's MLP in Relax's own operators."""

from tvm.script import ir as I
from tvm.script import relax as R


@I.ir_module
class MyModuleHighLevel:
    """Say the same with Relax operators, before anything is lowered."""

    @R.function
    def main(
        x: R.Tensor((1, 784), "float32"),
        w0: R.Tensor((128, 784), "float32"),
        b0: R.Tensor((128,), "float32"),
        w1: R.Tensor((10, 128), "float32"),
        b1: R.Tensor((10,), "float32"),
    ):
        with R.dataflow():
            w0_t = R.permute_dims(w0)
            lv0 = R.matmul(x, w0_t)
            lv1 = R.add(lv0, b0)
            lv2 = R.nn.relu(lv1)
            w1_t = R.permute_dims(w1)
            lv3 = R.matmul(lv2, w1_t)
            out = R.add(lv3, b1)
            R.output(out)
        return out

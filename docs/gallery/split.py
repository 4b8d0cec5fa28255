"""A node that becomes several.

`DecomposeOpsForInference` writes a normalisation out as the operators that it stands for.
"""

from tvm.script import ir as I
from tvm.script import relax as R

import irviz


@I.ir_module
class Normalised:
    @R.function
    def main(
        x: R.Tensor((1, 3, 8, 8), "float32"),
        gamma: R.Tensor((3,), "float32"),
        beta: R.Tensor((3,), "float32"),
        mean: R.Tensor((3,), "float32"),
        variance: R.Tensor((3,), "float32"),
    ):
        with R.dataflow():
            normalised = R.nn.batch_norm(x, gamma, beta, mean, variance, axis=1)
            scaled = normalised[0]
            out = R.nn.relu(scaled)
            R.output(out)
        return out


session = irviz.Session(Normalised).apply("DecomposeOpsForInference")
figure = session.diff("0", "1").figure()

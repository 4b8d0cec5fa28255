"""Nodes that are removed.

Nothing uses the square, so `DeadCodeElimination` takes it out. Removed edges are dashed.
"""

from tvm.script import ir as I
from tvm.script import relax as R

import irviz


@I.ir_module
class Unused:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            square = R.multiply(x, x)
            shifted = R.add(square, x)
            out = R.exp(x)
            R.output(out)
        return out


session = irviz.Session(Unused).apply("DeadCodeElimination")
figure = session.diff("0", "1").figure()

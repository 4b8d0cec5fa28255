"""An `if` with two branches.

Each branch has a frame of its own, and the names that it takes from outside lead into it.
"""

from tvm.script import ir as I
from tvm.script import relax as R

import irviz


@I.ir_module
class Clipped:
    @R.function
    def main(is_large: R.Tensor((), "bool"), x: R.Tensor((4,), "float32")):
        if is_large:
            half = R.multiply(x, R.const(0.5, "float32"))
            y = R.tanh(half)
        else:
            y = R.nn.relu(x)
        z = R.add(y, x)
        return z


figure = irviz.draw(Clipped)
session = irviz.Session(Clipped)

"""A function that is inlined.

The body of `halve` takes the place of its call.
"""

from tvm.script import ir as I
from tvm.script import relax as R

import irviz


@I.ir_module
class Calls:
    @R.function(private=True)
    def halve(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        half = R.multiply(x, R.const(0.5, "float32"))
        y = R.tanh(half)
        return y

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Calls
        lv = cls.halve(x)
        out = R.add(lv, x)
        return out


session = irviz.Session(Calls).apply("InlinePrivateFunctions")
figure = session.diff("0", "1").figure("main")

"""A call that moved past a write.

Another order is a difference only if it changes what a call reads: here `exp` reads `x` after it
was written over.
"""

from tvm.script import ir as I
from tvm.script import relax as R

import irviz


@I.ir_module
class Before:
    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32")):
        a = R.exp(x)
        w = R.call_packed("env.write", x, ty_args=(R.Tensor((4,), "float32"),))
        return (a, w)


@I.ir_module
class After:
    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32")):
        w = R.call_packed("env.write", x, ty_args=(R.Tensor((4,), "float32"),))
        a = R.exp(x)
        return (a, w)


diff = irviz.diff(Before, After)
figure = diff.figure()
text = str(diff)

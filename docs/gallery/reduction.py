"""The smallest module that shows a bug.

Of seven bindings one is left, and it fails as all of them did.
"""

from tvm import IRModule
from tvm.relax.dpl import is_op, rewrite_call, wildcard

import irviz
from irviz.course.mlp_high_level import MyModuleHighLevel


def drop_relu(mod):
    x = wildcard()
    return IRModule(
        {"main": rewrite_call(is_op("relax.nn.relu")(x), lambda _, found: found[x], mod["main"])}
    )


smaller = irviz.reduce(irviz.bisect(MyModuleHighLevel, [drop_relu]))
text = str(smaller)
figure = irviz.draw(smaller.module)

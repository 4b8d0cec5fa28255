"""The first pass that changed a result.

A bisection runs few of the stages. The picture colours the nodes by how much their values differ
from those of the first stage.
"""

from tvm import IRModule
from tvm.relax.dpl import is_op, rewrite_call, wildcard

import irviz
from irviz.course.digits import digits, mlp_params
from irviz.course.mlp_high_level import MyModuleHighLevel


def drop_relu(mod):
    x = wildcard()
    return IRModule(
        {"main": rewrite_call(is_op("relax.nn.relu")(x), lambda _, found: found[x], mod["main"])}
    )


passes = ["FoldConstant", drop_relu, "LegalizeOps"]
data = {"params": mlp_params(), "inputs": digits().images[:20]}
found = irviz.bisect(MyModuleHighLevel, passes, **data)
text = f"{found}\n\n{found.errors()}"
session = found.session
figure = session.draw_overlay("difference", stage=found.stage.id)

"""Nodes that are folded into a constant.

The weights are known, so `FoldConstant` transposes them before the program runs.
"""

import irviz
from irviz.course.digits import mlp_params
from irviz.course.mlp_high_level import MyModuleHighLevel

session = irviz.Session(MyModuleHighLevel, params=mlp_params()).bind()
session = session.apply("LegalizeOps").apply("FoldConstant")
figure = session.diff("2", "3").figure()

"""Operators become calls of PrimFuncs.

`LegalizeOps` changes every node and no edge. In the explorer, press `d` to compare.
"""

import irviz
from irviz.course.mlp_high_level import MyModuleHighLevel

session = irviz.Session(MyModuleHighLevel).apply("LegalizeOps")
figure = session.diff("0", "1").figure()

"""Nodes that are added.

`ToMixedPrecision` lets matrix products compute in float16, and adds the casts that this needs.
"""

import irviz
from irviz.course.mlp_high_level import MyModuleHighLevel

session = irviz.Session(MyModuleHighLevel).apply("ToMixedPrecision")
figure = session.diff("0", "1").figure()

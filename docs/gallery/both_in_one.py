"""A diff in one picture.

What was removed and what was added is marked in a single graph.
"""

import irviz
from irviz.course.mlp_high_level import MyModuleHighLevel

session = irviz.Session(MyModuleHighLevel).apply("ToMixedPrecision")
figure = session.diff("0", "1").figure(overlay=True)

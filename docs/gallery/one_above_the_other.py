"""A diff with one module above the other.

The layout suits wide graphs and pages that are narrow.
"""

import irviz
from irviz.course.mlp_high_level import MyModuleHighLevel

session = irviz.Session(MyModuleHighLevel)
for name in ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps"):
    session = session.apply(name)
figure = session.diff("2", "3").figure(layout="above")

"""The pass that last changed each line.

`blame` does for passes what version control does for commits. The picture shows what the pass did
that is named most.
"""

import irviz
from irviz.course.mlp_high_level import MyModuleHighLevel

session = irviz.Session(MyModuleHighLevel)
for name in ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps"):
    session = session.apply(name)
text = str(session.blame())
figure = session.diff("2", "3").figure("main")

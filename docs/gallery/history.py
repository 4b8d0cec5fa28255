"""The history of a node.

The result of the program, back through each pass to the operators that its author wrote.
"""

import irviz
from irviz.course.mlp_high_level import MyModuleHighLevel

session = irviz.Session(MyModuleHighLevel)
for name in ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps", "FuseTIR"):
    session = session.apply(name)
history = session.history("gv")
figure = history.figure()
text = str(history)

"""The explorer.

Stages are on the left, the graph in the middle, and the selected node on the right. It runs in
notebooks, in the browser, and in saved pages.
"""

import irviz
from irviz.course.digits import digits, mlp_params
from irviz.course.mlp_high_level import MyModuleHighLevel

mlp = irviz.Session(MyModuleHighLevel, params=mlp_params(), inputs=digits().images[:20]).bind()
for name in ("LegalizeOps", "FoldConstant", "AnnotateTIROpPattern", "FuseOps"):
    mlp = mlp.apply(name)
irviz.explore(mlp)

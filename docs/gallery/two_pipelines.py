"""Two pipelines compared.

The same passes with another option, and the first pass after which the modules differ.
"""

import tvm
from tvm import relax

import irviz
from irviz.course.mlp_high_level import MyModuleHighLevel


def recorded(level):
    passes = [
        relax.transform.LegalizeOps(),
        relax.transform.AnnotateTIROpPattern(),
        relax.transform.FuseOps(fuse_opt_level=level),
        relax.transform.FuseTIR(),
    ]
    with irviz.record() as recording:
        tvm.transform.Sequential(passes)(MyModuleHighLevel)
    return recording


found = recorded(0).compare(recorded(2), titles=("level 0", "level 2"))
text = str(found)
figure = found.diff.figure("main")

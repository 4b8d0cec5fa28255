"""Where the time of a compilation goes.

A flame graph of all passes of `tvm.compile`. Passes that changed the module are blue.
"""

import tvm

import irviz
from irviz.course.mlp_high_level import MyModuleHighLevel

with irviz.record() as recording:
    tvm.compile(MyModuleHighLevel, target="llvm")
figure = recording.pass_times().figure()

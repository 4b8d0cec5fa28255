"""The passes of a whole pipeline.

A recording has a stage for each pass that ran. Here, each call of a PrimFunc has
become an allocation and a call that writes to it.
"""

from tvm import relax

import irviz
from irviz.course.mlp_high_level import MyModuleHighLevel

with irviz.record() as recording:
    relax.get_pipeline("default_build")(MyModuleHighLevel)
text = str(recording)
recorded = recording.session()
lowered = next(stage for stage in recorded.stages if stage.label == "LowerAllocTensor")
figure = recorded.draw(lowered.id)

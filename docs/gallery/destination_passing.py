"""Which call writes to which buffer.

Calls of PrimFuncs get the buffer for their result. With `planned=True`, buffers that never live at
the same time share storage.
"""

import irviz
from irviz.course.mlp_high_level import MyModuleHighLevel

session = irviz.Session(MyModuleHighLevel).apply("LegalizeOps")
figure = session.draw_destination_passing(planned=True)

"""The memory that a run holds.

Each bar is a buffer, from the call that allocates it to the last one that reads it.
"""

import irviz
from irviz.course.mlp_high_level import MyModuleHighLevel

session = irviz.Session(MyModuleHighLevel).apply("LegalizeOps")
figure = session.draw_memory()
text = str(session.memory_use())

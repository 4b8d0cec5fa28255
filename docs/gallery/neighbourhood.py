"""The neighbourhood of a node.

Only the nodes that are at most two uses away are drawn.
"""

import irviz
from irviz.course.mlp_high_level import MyModuleHighLevel

figure = irviz.draw(MyModuleHighLevel, around="lv2", steps=2)

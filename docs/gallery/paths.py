"""The paths between two nodes.

This answers how one value reaches another, in a function of any size.
"""

import irviz
from irviz.course.mlp_high_level import MyModuleHighLevel

figure = irviz.draw(MyModuleHighLevel, around="w0", to="out")

"""Nodes coloured by time.

The two matrix products take almost all of it.
"""

import irviz
from irviz.course.digits import digits, mlp_params
from irviz.course.mlp_high_level import MyModuleHighLevel

mlp = irviz.Session(MyModuleHighLevel, params=mlp_params(), inputs=digits().images[:20])
figure = mlp.draw_overlay("time")

"""The values at a node.

After ReLU, most of the 128 values are zero.
"""

import irviz
from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MyModule

mlp = irviz.Session(MyModule, params=mlp_params(), inputs=digits().images[:20])
figure = mlp.draw_value("lv1", "histogram")

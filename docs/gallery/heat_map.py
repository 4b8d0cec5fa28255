"""The values of a weight.

A heat map shows the pixels that the first layer looks at.
"""

import irviz
from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MyModule

mlp = irviz.Session(MyModule, params=mlp_params(), inputs=digits().images[:20])
figure = mlp.draw_value("w0", "heat map")

"""An input as images.

The network reads handwritten digits; this is what the first one looks like.
"""

import irviz
from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MyModule

mlp = irviz.Session(MyModule, params=mlp_params(), inputs=digits().images[:20])
figure = mlp.draw_value("x")

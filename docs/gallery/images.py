"""An input as images.

The session runs on handwritten digits; this is what the first one looks like.
"""

import irviz
from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MyModule

session = irviz.Session(MyModule, params=mlp_params(), inputs=digits().images[:20])
figure = session.draw_value("x")

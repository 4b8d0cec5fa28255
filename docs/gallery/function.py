"""A function as a graph.

Parameters are circles, calls are boxes, and the type of each value is on its edge.
"""

import irviz
from irviz.course.mlp import MyModule

figure = irviz.draw(MyModule)
session = irviz.Session(MyModule)

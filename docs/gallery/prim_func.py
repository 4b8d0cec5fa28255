"""A PrimFunc as the graph of its blocks.

Each block has its axes: `S` for spatial ones, `R` for those that are summed over.
"""

import irviz
from irviz.course.mlp import MyModule

figure = irviz.draw(MyModule, "linear0")
session = irviz.Session(MyModule, function="linear0")

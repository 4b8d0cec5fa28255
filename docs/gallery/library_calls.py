"""Calls of a library beside PrimFuncs.

A library function has bars at its sides, and is dashed red if nobody has registered it.
"""

import irviz
from irviz.course.mlp import MyModuleMixture

figure = irviz.draw(MyModuleMixture)
session = irviz.Session(MyModuleMixture)

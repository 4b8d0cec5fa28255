"""A callee that is replaced.

Both linear layers call a library instead of the PrimFunc that the module brought.
"""

import irviz
from irviz.course.mlp import MyModule

session = irviz.Session(MyModule).swap("linear0", "env.linear")
figure = session.diff("0", "1").figure()

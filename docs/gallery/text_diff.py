"""A diff in words.

Lines of TVMScript are matched by the nodes that they bind, so names are no difference.
"""

import irviz
from irviz.course.mlp import MyModule

session = irviz.Session(MyModule).swap("relu0", "env.relu")
diff = session.diff("0", "1")
figure = diff.figure(around="lv1")
text = str(diff)

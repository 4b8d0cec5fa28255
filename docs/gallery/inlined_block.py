"""A block that is computed inside another.

`reverse_compute_at` moves ReLU below a loop of the matrix product.
"""

import irviz
from irviz.course.mm_relu import MyModule


def below_the_product(sch):
    rows = sch.get_loops(sch.get_sblock("Y"))[0]
    sch.reverse_compute_at(sch.get_sblock("C"), rows)


session = irviz.Session(MyModule).schedule("mm_relu", below_the_product)
figure = session.diff("0", "1").figure()

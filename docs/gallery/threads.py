"""Loops that are fused, split and bound to threads.

Each loop keeps its place, with a mark that says what became of it.
"""

import irviz
from irviz.course.mm_relu import MyModule


def on_threads(sch):
    i, j = sch.get_loops(sch.get_sblock("C"))
    block, thread = sch.split(sch.fuse(i, j), factors=[None, 256])
    sch.bind(block, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")


session = irviz.Session(MyModule).schedule("mm_relu", on_threads)
figure = session.diff("0", "4").figure()

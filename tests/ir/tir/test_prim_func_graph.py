# ruff: noqa: N803, N805, N806, N812
"""A PrimFunc's graph has its blocks, and the buffers between them."""

import pytest
from tvm import s_tir
from tvm.script import ir as I
from tvm.script import tirx as T

from irviz.course.mlp import MyModule
from irviz.ir.function_graph import extract
from irviz.model.graph.graph import NodeKind


@I.ir_module
class MatmulRelu:
    @T.prim_func(s_tir=True)
    def mm_relu(
        A: T.Buffer((4, 8), "float32"), B: T.Buffer((8, 4), "float32"), C: T.Buffer((4, 4), "int8")
    ):
        Y = T.sblock_alloc_buffer((4, 4), "float32")
        for i, j, k in T.grid(4, 4, 8):
            with T.sblock("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(4, 4):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.Cast("int8", Y[vi, vj])

    @T.prim_func(s_tir=True)
    def in_place(A: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.sblock("twice"):
                vi = T.axis.spatial(4, i)
                A[vi] = A[vi] * T.float32(2)

    @T.prim_func(s_tir=True)
    def plain(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = A[i]


def edges(graph):
    return [(edge.source, edge.target, edge.position) for edge in graph.edges]


def kinds(graph):
    return {node.id: node.kind for node in graph.nodes}


PARAM, BLOCK = NodeKind.PARAM, NodeKind.BLOCK


def test_blocks_are_nodes_and_buffers_lead_from_one_to_the_next():
    graph = extract(MatmulRelu, "mm_relu")
    assert kinds(graph) == {"A": PARAM, "B": PARAM, "Y": BLOCK, "C": BLOCK}
    assert edges(graph) == [("A", "Y", (0,)), ("B", "Y", (1,)), ("Y", "C", (0,))]
    assert graph.outputs == ("C",)


def test_a_block_says_what_it_writes_and_over_which_axes():
    graph = extract(MatmulRelu, "mm_relu")
    assert graph["Y"].type_label == "Buffer[(4, 4)]"
    assert graph["C"].type_label == "Buffer[(4, 4)] int8"
    assert dict(graph["Y"].attributes) == {"axes": "vi S 4, vj S 4, vk R 8"}


def test_a_buffer_that_is_read_and_written_is_a_parameter_and_a_result():
    graph = extract(MatmulRelu, "in_place")
    assert edges(graph) == [("A", "twice", (0,))]
    assert graph.outputs == ("twice",)


def test_a_prim_func_without_blocks_has_its_parameters():
    graph = extract(MatmulRelu, "plain")
    assert kinds(graph) == {"A": PARAM, "B": PARAM}
    assert graph.edges == graph.outputs == ()


def test_a_schedule_shows_in_the_graph():
    schedule = s_tir.Schedule(MatmulRelu)
    schedule.work_on("mm_relu")
    schedule.decompose_reduction("Y", schedule.get_loops("Y")[2])
    graph = extract(schedule.mod, "mm_relu")
    assert ("Y_init", "Y_update", (0,)) in edges(graph)
    assert [edge.source for edge in graph.entering["C"]] == ["Y_update"]


def scheduled(step):
    schedule = s_tir.Schedule(MatmulRelu)
    schedule.work_on("mm_relu")
    step(schedule, schedule.get_loops("Y"))
    return extract(schedule.mod, "mm_relu")


def test_a_buffer_says_in_which_memory_it_is():
    graph = scheduled(lambda schedule, _: schedule.cache_read("Y", 0, "shared"))
    assert graph["A_shared"].type_label == "Buffer[(4, 8)] shared"
    assert graph["A"].type_label == "Buffer[(4, 8)]"


def test_a_block_says_which_threads_run_it():
    def bind(schedule, loops):
        schedule.bind(loops[0], "blockIdx.x")
        schedule.bind(loops[1], "threadIdx.x")

    graph = scheduled(bind)
    assert dict(graph["Y"].attributes)["threads"] == "blockIdx.x 4, threadIdx.x 4"
    assert "threads" not in dict(graph["C"].attributes)


def test_blocks_around_others_are_regions():
    def twice(schedule, loops):
        schedule.blockize(loops[2])
        schedule.blockize(loops[1])

    graph = scheduled(twice)
    names = [region.name for region in graph.regions]
    assert names == ["Y_o_o", "Y_o_init", "Y_o"]
    assert [region.parent for region in graph.regions] == [None, 0, 0]
    inside = {node.id: node.region for node in graph.nodes if node.kind is BLOCK}
    assert inside == {"Y_init": 1, "Y": 2, "C": None}


@pytest.mark.parametrize("name", ["linear0", "relu0"])
def test_symbolic_sizes_are_written_as_in_tvmscript(name):
    graph = extract(MyModule, name)
    assert graph.outputs
    assert "n" in graph[graph.outputs[0]].type_label

# ruff: noqa: N803, N805, N812, RET504
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""The graph of a lowered function has its buffers, and the calls that read and write them."""

import pytest
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

from irviz.course.mlp import MODULES
from irviz.ir.destination_passing import LoweringError, destination_passing
from irviz.ir.function_graph import extract
from irviz.ir.module_functions import NoFunctionError, relax_functions
from irviz.model.graph.graph import NodeKind, Resolution
from irviz.transforms.kernels import library  # noqa: F401 - registers env.relu
from irviz.view.graph.graph_figure import draw_graph
from irviz.worker.supervisor import CrashedError

pytestmark = pytest.mark.worker


@I.ir_module
class InPlace:
    """A call that writes into what it reads, and one that reads it afterwards."""

    @T.prim_func(s_tir=True)
    def double(X: T.Buffer((4,), "float32"), Y: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.sblock("Y"):
                vi = T.axis.spatial(4, i)
                Y[vi] = X[vi] + X[vi]

    @T.prim_func(s_tir=True)
    def more(X: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.sblock("Y"):
                vi = T.axis.spatial(4, i)
                X[vi] = X[vi] + T.float32(1)

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        cls = InPlace
        a = R.call_tir(cls.double, (x,), R.Tensor((4,), "float32"))
        b = R.call_tir_inplace(cls.more, (a,), [0], R.Tensor((4,), "float32"))
        c = R.call_tir(cls.double, (b,), R.Tensor((4,), "float32"))
        return c


def buffers(graph):
    return [node for node in graph.nodes if node.kind is NodeKind.ALLOC]


def written_by(graph):
    """Return the names of the buffers that each call writes."""
    found = {}
    for edge in graph.edges:
        if edge.is_write:
            found.setdefault(edge.source, []).append(graph[edge.target].name)
    return found


def read_by(graph, node_id):
    edges = graph.entering.get(node_id, ())
    return [graph[edge.source].name for edge in edges if not edge.is_write]


@pytest.mark.parametrize("name", ["MyModuleStatic", "MyModuleWithExternCall"])
@pytest.mark.parametrize("planned", [False, True], ids=["as written", "planned"])
def test_each_call_of_the_lecture_writes_the_buffer_of_its_binding(name, planned):
    graph = destination_passing(MODULES[name], planned=planned)
    assert written_by(graph) == {"lv0": ["lv0"], "lv1": ["lv1"], "out": ["out"]}
    assert read_by(graph, "lv0") == ["x", "w0", "b0"]
    assert read_by(graph, "lv1") == ["lv0"]
    assert read_by(graph, "out") == ["lv1", "w1", "b1"]
    assert [graph[one].name for one in graph.outputs] == ["out"]
    assert graph[graph.outputs[0]].kind is NodeKind.ALLOC


def test_calls_have_the_ids_of_the_bindings_whose_values_they_make():
    module = MODULES["MyModuleHighLevel"]
    calls = written_by(destination_passing(module, planned=True))
    own = [node.id for node in extract(module).nodes if node.kind is NodeKind.OPERATOR]
    assert list(calls) == own


def test_buffers_say_how_many_bytes_they_take():
    static = buffers(destination_passing(MODULES["MyModuleStatic"]))
    assert [node.attributes for node in static] == [
        (("bytes", "512 B"),),
        (("bytes", "512 B"),),
        (("bytes", "40 B"),),
    ]
    assert static[0].type_label == "Tensor[(1, 128)]"
    symbolic = buffers(destination_passing(MODULES["MyModule"]))
    assert dict(symbolic[0].attributes)["bytes"] == "4 B × n"


def test_planned_buffers_say_which_storage_they_share():
    found = {
        node.name: dict(node.attributes)["storage"]
        for node in buffers(destination_passing(MODULES["MyModuleHighLevel"], planned=True))
    }
    assert found["lv0"] == found["lv2"] == "storage 2"
    assert found["lv1"] == found["w1_t"] == "storage 3"
    assert len(set(found.values())) == 5


def test_a_buffer_is_drawn_behind_the_call_that_writes_it_first():
    graph = destination_passing(MODULES["MyModuleHighLevel"])
    assert graph.edges
    assert all(graph.index[edge.source] < graph.index[edge.target] for edge in graph.edges)


def test_calls_that_write_have_effects_and_give_nothing():
    graph = destination_passing(MODULES["MyModuleStatic"])
    calls = [graph[node_id] for node_id in written_by(graph)]
    assert calls
    assert not any(call.is_pure or call.name for call in calls)


def test_a_call_with_two_outputs_writes_two_buffers(modules):
    graph = destination_passing(modules.TwoOutputs)
    assert written_by(graph) == {"both": ["both[0]", "both[1]"]}
    assert [graph[one].name for one in graph.outputs] == ["both[0]", "both[1]"]
    assert [node.kind for node in graph.nodes].count(NodeKind.TUPLE) == 0


@pytest.mark.parametrize("planned", [False, True], ids=["as written", "planned"])
def test_what_is_written_in_place_is_read_behind_that_as_it_is_then(planned):
    graph = destination_passing(InPlace, planned=planned)
    first, again, last = buffers(graph)
    assert (first.name, again.name, last.name) == ("a", "a", "c")
    assert dict(again.attributes)["place"] == "in place"
    assert {e.source for e in graph.entering[again.id]} == {"b"}
    assert [e.source for e in graph.entering["b"]] == [first.id]
    assert [e.source for e in graph.entering["c"]] == [again.id]


def test_calls_without_a_destination_stay_as_they_are(modules):
    graph = destination_passing(modules.Impure)
    assert written_by(graph) == {"y": ["y"], "z": ["z"]}
    assert graph["got"].callee == "env.effect"
    assert read_by(graph, "got") == ["y"]
    assert "got" in read_by(graph, "z")


def test_branches_write_into_buffers_of_their_own(modules):
    graph = destination_passing(modules.EveryKind)
    assert graph["chosen"].kind is NodeKind.IF
    wrote = written_by(graph)
    assert wrote["chosen_then"] == ["chosen_then"]
    regions = {
        graph.regions[graph.regions[node.region].parent].name for node in buffers(graph)[-2:]
    }
    assert regions == {"then", "else"}


def test_library_functions_of_this_process_are_known(modules):
    graph = destination_passing(modules.EveryKind)
    assert graph["library"].resolution is Resolution.LIBRARY
    assert graph["unknown"].resolution is Resolution.UNKNOWN


def test_a_stage_that_is_lowered_already_is_read_as_well():
    module = MODULES["MyModuleStatic"]
    passes = relax.transform
    for one in (passes.ToNonDataflow(), passes.RemovePurityChecking(), passes.CallTIRRewrite()):
        module = one(module)
    graph = destination_passing(module)
    assert list(written_by(graph).values()) == [["alloc"], ["alloc1"], ["alloc2"]]


def test_everything_that_can_be_lowered_is_drawn(constructs):
    drawn = 0
    for name in constructs.WELL_FORMED:
        module = constructs.construct(name)
        for function in relax_functions(module):
            try:
                graph = destination_passing(module, function, planned=True)
            except LoweringError:
                continue
            drawn += 1
            assert {one for e in graph.edges for one in e[:2]} <= graph.index.keys()
            assert set(graph.outputs) <= graph.index.keys()
            assert len(graph.index) == len(graph.nodes)
    assert drawn > 40


def test_reading_and_writing_are_drawn_in_different_ways():
    svg = draw_graph(destination_passing(MODULES["MyModuleStatic"]), "dark").svg
    assert svg.count('class="edge write"') == 3
    assert svg.count('class="edge"') == 7 + 1  # the reads, and what is returned
    assert svg.count('class="inside"') == 3


def test_a_function_that_is_not_there_is_refused(modules):
    with pytest.raises(NoFunctionError, match="'nowhere'"):
        destination_passing(modules.SameTwice, "nowhere")


def test_what_tvm_cannot_lower_is_said_in_its_words(modules):
    with pytest.raises(LoweringError, match=r"'main' could not be lowered.*LambdaLift"):
        destination_passing(modules.Closure, planned=True)


def test_a_pass_that_ends_its_process_ends_only_that(modules, monkeypatch):
    def crash(*_, **__):
        raise CrashedError("it ended the process that tried it (SIGSEGV)")

    monkeypatch.setattr("irviz.ir.destination_passing.TRIES.call", crash)
    with pytest.raises(LoweringError, match="SIGSEGV"):
        destination_passing(modules.SameTwice)

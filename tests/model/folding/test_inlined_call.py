# ruff: noqa: N805, N812, RET504
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""A called function opened in its call's place: what enters it, what leaves it, what is what."""

import random
from dataclasses import replace

import pytest
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R

from irviz.limits import MOST_NODES
from irviz.model.folding.expansion import Expansion
from irviz.model.folding.group_tree import container_tree
from irviz.model.folding.visible_graph import visible_graph
from irviz.model.graph.graph import INPUT_KINDS, NodeKind, RegionKind, inlined_id
from irviz.session.shown_function import ViewState, inline_call, stage_view
from irviz.session.stage_cache import graph_of
from irviz.transforms.stage import Stage

UNARY = [getattr(relax.op, name) for name in ("exp", "abs", "tanh", "sin", "cos", "sqrt", "log")]
TYPE = relax.TensorType([2], "float32")


@I.ir_module
class Recursive:
    """A function that calls itself, and one that calls it."""

    @R.function
    def down(n: R.Tensor((), "bool"), x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Recursive
        if n:
            y = R.add(x, x)
            z = cls.down(n, y)
        else:
            z = R.multiply(x, x)
        return z

    @R.function
    def main(n: R.Tensor((), "bool"), x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Recursive
        out = cls.down(n, x)
        return out


def calling(*lengths):
    """Return a module whose `main` calls each of functions f0, f1, … of so many operations."""
    builder = relax.BlockBuilder()
    functions = []
    for index, length in enumerate(lengths):
        params = [relax.Var("x", TYPE), relax.Var("pair", relax.TupleType([TYPE, TYPE]))]
        with builder.function(f"f{index}", params):
            here = builder.emit(relax.TupleGetItem(params[1], 1), "second")
            for step in range(length):
                op = (relax.op.add, relax.op.multiply, relax.op.subtract)[step * step % 3]
                here = builder.emit(op(here, params[0]), f"step{step}")
            functions.append(builder.emit_func_output(relax.Tuple([here, params[0]])))
    a, b = relax.Var("a", TYPE), relax.Var("b", TYPE)
    with builder.function("main", [a, b]):
        here = a
        for index, function in enumerate(functions):
            pair = relax.Tuple([b, here])
            made = builder.emit(relax.Call(function, [here, pair]), f"call{index}")
            here = builder.emit(relax.TupleGetItem(made, 0), f"value{index}")
        builder.emit_func_output(here)
    return builder.get()


def opened(module, *ids, function="main"):
    choices = Expansion()
    for one in ids:
        choices = choices.open(one)
    stage = Stage("0", module)
    found = stage_view(stage, function, ViewState(choices))
    check(stage, found)
    return found


def check(stage, found):
    """Check what is true of every picture: ids, frames, places and what can be done."""
    graph = found.graph
    ids = [node.id for node in graph.nodes]
    assert len(set(ids)) == len(ids)
    assert {edge.source for edge in graph.edges} | {edge.target for edge in graph.edges} <= {*ids}
    frames = [region.id for region in graph.regions if region.id]
    assert len(set(frames)) == len(frames)
    assert found.closable == set(frames)
    for index, region in enumerate(graph.regions):
        assert region.parent is None or region.parent != index
    for node in graph.nodes:
        function, inner_id, whole = found.locate(node.id)
        assert whole.nodes == graph_of(stage, function).nodes
        if node.kind is not NodeKind.GROUP:
            assert whole[inner_id].kind is node.kind
            assert node.id.endswith(inner_id)
        if node.id in found.openable and node.kind is NodeKind.CALL_FUNCTION:
            assert node.id not in found.closable
    for node in found.whole.nodes:
        assert found.where(node.id) in set(ids)


def at(path):
    """Return the id of a node in a called function: `call/node`."""
    call, _, node_id = path.partition("/")
    return inlined_id(call, node_id)


def entering(found, node_id):
    return [(edge.source, edge.position) for edge in found.graph.entering.get(node_id, ())]


def test_a_call_that_is_closed_is_one_node_that_can_be_opened(modules):
    found = opened(modules.EveryKind)
    assert "called" in found.openable
    assert "called" not in found.closable
    assert entering(found, "called") == [("first", (0,))]


def test_what_a_call_is_given_enters_the_parameters_and_what_comes_back_enters_the_call(modules):
    found = opened(modules.EveryKind, "called")
    assert entering(found, at("called/x")) == [("first", ())]
    assert entering(found, at("called/y")) == [(at("called/x"), (0,)), (at("called/x"), (1,))]
    assert entering(found, "called") == [(at("called/y"), (0,))]
    assert entering(found, "cast") == [("called", (0,))]
    assert found.locate(at("called/y"))[:2] == ("twice", "y")
    assert found.locate("called")[:2] == ("main", "called")
    assert "called" in found.closable - found.openable
    (frame,) = [region for region in found.graph.regions if region.id == "called"]
    assert (frame.kind, frame.name, frame.owner) == (RegionKind.FUNCTION, "twice", "called")
    inside = found.graph[found.where("called")].region, found.graph[at("called/y")].region
    assert found.graph.regions[inside[1]].parent == inside[0]


def test_tuples_enter_a_parameter_place_by_place_and_each_value_leaves_at_its_own():
    found = opened(calling(3), "call0")
    assert entering(found, at("call0/x")) == [("a", ())]
    assert entering(found, at("call0/pair")) == [("b", (0,)), ("a", (1,))]
    assert entering(found, "call0") == [(at("call0/step2"), (0,)), (at("call0/x"), (1,))]


def test_nodes_of_a_function_stand_before_its_call():
    found = opened(calling(2, 2), "call0", "call1")
    order = [node.id for node in found.graph.nodes]
    for call in ("call0", "call1"):
        inside = [order.index(one) for one in order if one.startswith(inlined_id(call, ""))]
        assert max(inside) < order.index(call)
        assert len(inside) == 5


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_function_that_calls_itself_is_opened_as_deep_as_it_was_asked_for(depth):
    calls, call, inside = [], "out", ""
    ids = []
    for _ in range(depth):
        calls.append(call)
        # the call in the branch that calls itself is opened with the branch around it
        inside = inlined_id(call, "")
        graph = opened(Recursive, *ids, call).graph
        (inner,) = [
            node.id
            for node in graph.nodes
            if node.kind is NodeKind.CALL_FUNCTION and node.id.startswith(inside)
        ]
        ids.append(call)
        call = inner
    found = opened(Recursive, *ids)
    assert {*calls} <= found.closable
    assert found.openable >= {call}
    assert found.locate(call)[0] == "down"
    assert found.locate(inlined_id(calls[-1], "x"))[:2] == ("down", "x")
    frames = [region.name for region in found.graph.regions if region.id in calls]
    assert frames == ["down"] * depth
    closed = stage_view(Stage("0", Recursive), "main", ViewState(Expansion(opened=tuple(ids[1:]))))
    assert closed.inner == {}


def test_what_is_open_in_a_called_function_is_told_by_ids_that_begin_with_the_call():
    module = calling(200)
    found = opened(module, "call0")
    (repeat,) = [one for one in found.closable if one.startswith(at("call0/"))]
    choices = Expansion().open("call0")
    for one, is_open in ((choices.close(repeat), False), (choices.open(repeat), True)):
        again = stage_view(Stage("0", module), "main", ViewState(one))
        check(Stage("0", module), again)
        assert (repeat in again.closable, repeat in again.openable) == (is_open, not is_open)
    name = next(region.name for region in found.graph.regions if region.id == repeat)
    assert name == "×66 · copy 1"
    other = stage_view(Stage("0", module), "main", ViewState(choices.show_copy(repeat, 3)))
    assert "×66 · copy 4" in {region.name for region in other.graph.regions}


def test_a_call_that_is_given_a_bundle_of_parameters_enters_the_bundle(graphs):
    inner = graphs.Text()
    params = [inner.param(f"p{index}") for index in range(20)]
    inner.step("tuple", *params, name="all")
    text = graphs.Text()
    values = [text.param(f"x{index}") for index in range(20)]
    text.step("call", *values, name="c", kind=NodeKind.CALL_FUNCTION)
    outer = text.graph()
    found = inline_call(outer, outer["c"].id, visible_graph(container_tree(inner.graph())))
    into = [edge.source for edge in found.edges if edge.target == at("c/leaves:p0")]
    assert into == values
    assert [edge.source for edge in found.entering["c"]] == [at("c/all")]


def test_arguments_past_the_parameters_and_the_callee_stay_at_the_call(graphs):
    inner = graphs.Text()
    inner.step("op", inner.param("p"), name="made")
    text = graphs.Text()
    f, x, y = (text.param(name) for name in "fxy")
    text.step("call", ((), f), ((0,), x), ((1,), y), name="c", kind=NodeKind.CALL_FUNCTION)
    outer = text.graph()
    found = inline_call(outer, outer["c"].id, visible_graph(container_tree(inner.graph())))
    assert [(edge.source, edge.position) for edge in found.entering["c"]] == [
        ("f", ()),
        ("y", (1,)),
        (at("c/made"), (0,)),
    ]
    assert [(edge.source, edge.position) for edge in found.entering[at("c/p")]] == [("x", ())]
    assert all(
        node.id.startswith(at("c/")) or node.kind in INPUT_KINDS for node in found.nodes[:-1]
    )


def different(count, length):
    """Return a module whose `main` calls functions without any repetition in them."""
    builder = relax.BlockBuilder()
    functions = []
    for index in range(count):
        ops = random.Random(index).choices(UNARY, k=length)
        x = relax.Var("x", TYPE)
        with builder.function(f"f{index}", [x]):
            here = x
            for op in ops:
                here = builder.emit(op(here))
            functions.append(builder.emit_func_output(here))
    x = relax.Var("x", TYPE)
    with builder.function("main", [x]):
        here = x
        for index, function in enumerate(functions):
            here = builder.emit(relax.Call(function, [here]), f"c{index}")
        builder.emit_func_output(here)
    return builder.get()


def test_what_was_opened_last_is_open_and_all_of_it_within_the_limit():
    module = different(4, 100)
    for order in (["c0", "c1", "c2", "c3"], ["c3", "c1", "c2", "c0"]):
        choices = Expansion()
        for call in order:
            choices = choices.open(call)
            found = stage_view(Stage("0", module), "main", ViewState(choices))
            assert len(found.graph.nodes) <= MOST_NODES
            assert call in found.closable


def test_a_call_that_is_both_opened_and_closed_is_closed():
    stage = Stage("0", different(1, 3))
    opened_call = Expansion(opened=("c0",))
    assert list(stage_view(stage, "main", ViewState(opened_call)).inner) == ["c0"]
    closed_call = replace(opened_call, closed=frozenset({"c0"}))
    assert stage_view(stage, "main", ViewState(closed_call)).inner == {}


def test_a_name_that_looks_like_a_place_in_a_called_function_is_no_such_place():
    builder = relax.BlockBuilder()
    x = relax.Var("x", TYPE)
    with builder.function("f", [x]):
        function = builder.emit_func_output(builder.emit(relax.op.add(x, x), "y"))
    with builder.function("main", [a := relax.Var("a", TYPE)]):
        odd = builder.emit(relax.op.exp(a), "c/y")
        builder.emit_func_output(builder.emit(relax.Call(function, [odd]), "c"))
    found = opened(builder.get(), "c")
    assert len(found.graph.index) == len(found.graph.nodes) == 5
    assert found.locate("c/y")[:2] == ("main", "c/y")
    assert found.locate(inlined_id("c", "y"))[:2] == ("f", "y")

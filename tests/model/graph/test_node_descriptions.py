"""Nodes that compute the same have the same description, and no others."""

import numpy as np
import pytest

from irviz.course.mlp import MODULES
from irviz.ir.function_graph import extract
from irviz.model.graph.graph import Edge, Graph, Literal, Node, NodeId, NodeKind, Resolution
from irviz.transforms.bind_params import bind_params
from irviz.transforms.change_summary import descriptions
from irviz.transforms.kernels.swap import Swap


def changed_nodes(graph, reference):
    """Return the nodes that the reference lacks or describes otherwise."""
    known = descriptions(reference)
    return tuple(one for one, found in descriptions(graph).items() if known.get(one) != found)


def test_a_graph_has_not_changed_against_itself(modules):
    for mod in (*MODULES.values(), modules.EveryKind):
        assert changed_nodes(extract(mod), extract(mod)) == ()


def test_a_swapped_call_is_marked_and_what_uses_it_is_not():
    mod = MODULES["MyModuleStatic"]
    after = extract(Swap("relu0", "env.relu")(mod))
    assert changed_nodes(after, extract(mod)) == ("lv1",)
    assert changed_nodes(extract(mod), after) == ("lv1",)


def test_the_same_name_reached_another_way_is_marked():
    mod = MODULES["MyModule"]
    after = extract(Swap("relu0", "relu0")(mod))  # by name before, by reference now
    assert changed_nodes(after, extract(mod)) == ("lv1",)


def test_a_constant_in_the_place_of_a_parameter_is_the_same_input_by_its_name():
    mod = MODULES["MyModuleStatic"]
    bind = bind_params({"b0": np.zeros(128, "float32")})
    bound = extract(bind(mod), constant_names=bind.constant_names)
    assert changed_nodes(extract(mod), bound) == ("b0",)
    assert changed_nodes(bound, extract(mod)) == ("lv0[2]",)


def test_a_constant_without_a_name_is_another_input():
    mod = MODULES["MyModuleStatic"]
    bound = extract(bind_params({"b0": np.zeros(128, "float32")})(mod))
    assert changed_nodes(extract(mod), bound) == ("b0", "lv0")
    assert changed_nodes(bound, extract(mod)) == ("lv0[2]", "lv0")


def test_sizes_that_become_known_are_no_change():
    mod = MODULES["MyModule"]
    given = extract(mod)
    bound = extract(bind_params({"w0": np.zeros((128, 784), "float32")})(mod))
    assert (given["lv1"].type_label, bound["lv1"].type_label) == (
        "Tensor[(1, n)]",
        "Tensor[(1, 128)]",
    )
    assert changed_nodes(bound, given) == ("lv0[1]", "lv0")


X, Y = NodeId("x"), NodeId("y")
ONE_USE = (Edge(X, Y, (0,)),)


def small(edges=ONE_USE, **facts):
    given = {"kind": NodeKind.CALL_DPS_PACKED, "callee": "f", "resolution": Resolution.UNKNOWN}
    nodes = (
        Node(X, NodeKind.PARAM, "x", "T"),
        Node(Y, name="y", type_text="T", **{**given, **facts}),
    )
    return Graph("main", nodes, tuple(edges), (), (Y,))


@pytest.mark.parametrize(
    "other",
    [
        small(kind=NodeKind.CALL_TIR),
        small(callee="g"),
        small(resolution=Resolution.LIBRARY),
        small(literals=(Literal((1,), "2"),)),
        small(edges=[Edge(X, Y, (1,))]),
        small(edges=[*ONE_USE, Edge(X, Y, (1,))]),
        small(edges=[]),
    ],
)
def test_each_thing_that_a_node_is_counts(other):
    assert changed_nodes(other, small()) == ("y",)
    assert changed_nodes(small(), other) == ("y",)


def test_another_argument_or_another_order_of_arguments_is_a_change(modules):
    first = extract(modules.TwoFunctions, "first")
    second = extract(modules.TwoFunctions, "second")
    assert changed_nodes(first, second) == ("y", "said", "z")

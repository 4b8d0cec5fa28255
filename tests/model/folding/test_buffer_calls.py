"""Calls of a lowered function, drawn with the buffers that they write."""

from irviz.model.folding.expansion import Expansion
from irviz.model.folding.group_tree import container_tree
from irviz.model.folding.visible_graph import visible_graph
from irviz.model.graph.graph import LayerPart, NodeKind, Resolution
from irviz.model.graph.layers import with_layers

ALLOC = "relax.builtin.alloc_tensor"


def lowered(graphs, calls=8):
    """Return a chain of calls that write into buffers, as CallTIRRewrite makes it."""
    text = graphs.Text()
    value = text.param("x")
    for index in range(calls):
        weight, alloc = text.param(f"w{index}"), text.step(ALLOC, name=f"alloc{index}")
        text.step(f"f{index}", value, weight, alloc, kind=NodeKind.CALL_FUNCTION, name=f"c{index}")
        text.nodes[-1] = text.nodes[-1]._replace(is_pure=False, resolution=Resolution.PRIM_FUNC)
        value = text.step("", alloc, kind=NodeKind.VALUE, name=f"lv{index}")
    return text.graph(value)


def test_a_call_with_its_buffer_is_one_node_and_its_inputs_stay_beside_it(graphs):
    shown = visible_graph(container_tree(lowered(graphs)), minimum=8).graph
    groups = [node for node in shown.nodes if node.kind is NodeKind.GROUP]
    assert [(node.name, node.callee, node.is_pure) for node in groups] == [
        (f"f{index}", f"f{index}", True) for index in range(8)
    ]
    assert groups[3].type_label == "lv3: T"
    assert len(shown.nodes) == 8 + 9
    sources = [edge.source for edge in shown.entering[groups[3].id]]
    assert sources == [groups[2].id, "w3"]


def test_it_shows_its_buffer_when_it_is_expanded(graphs):
    tree = container_tree(lowered(graphs))
    shown = visible_graph(tree, Expansion().open("call:alloc3")).graph
    assert {"alloc3", "c3", "lv3"} <= shown.index.keys()
    assert not {"alloc2", "c2", "lv2"} & shown.index.keys()


def test_functions_whose_names_differ_in_digits_repeat(graphs):
    text = graphs.Text()
    value = text.param("x")
    layers = {}
    for index in range(10):
        for name in ("fused_slice", "matmul", "add", "relu", "tanh", "exp", "sum"):
            value = text.step(f"{name}{index}", value, kind=NodeKind.CALL_TIR)
            text.nodes[-1] = text.nodes[-1]._replace(resolution=Resolution.PRIM_FUNC)
            layers[value] = ((LayerPart("cells", "LSTM"),),)
    tree = container_tree(with_layers(text.graph(value), layers))
    (repeat,) = graphs.repeats(tree)
    assert (repeat.copies, repeat.title) == (10, "×10 · functions differ")

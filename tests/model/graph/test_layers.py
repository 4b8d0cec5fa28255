"""Nodes tell the layers of a model that they serve, by the names that its author gave them."""

from dataclasses import replace

import pytest

from irviz.model.graph.graph import LayerPart, NodeKind
from irviz.model.graph.layers import (
    common_layer,
    layer_name,
    layer_of_modules,
    layer_of_parameter,
    with_layers,
)


def layer(*names):
    return tuple(map(LayerPart, names))


def test_a_layer_has_the_names_and_classes_of_the_modules_around_it():
    modules = [
        ("", "zoo.Model"),
        ("transformer", "zoo.GPT2Model"),
        ("transformer.h.0", "zoo.Block"),
        ("transformer.h.0.attn", "zoo.Attention"),
    ]
    found = layer_of_modules(modules)
    parts = [("transformer", "GPT2Model"), ("h.0", "Block"), ("attn", "Attention")]
    assert [tuple(part) for part in found] == parts
    assert layer_name(found) == "transformer.h.0.attn"


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("layers.0.attn.q.weight", ["layers.0", "attn", "q"]),
        ("model.layers.12.mlp.bias", ["model.layers.12", "mlp"]),
        ("p_layer1_0_conv1_weight", ["layer1.0", "conv1"]),
        ("fc.weight", ["fc"]),
        ("weight", None),
        ("x", None),
    ],
)
def test_the_name_of_a_parameter_tells_its_layer(name, parts):
    found = layer_of_parameter(name)
    assert found == (None if parts is None else layer(*parts))


def test_the_layer_around_several_is_the_innermost_one():
    assert common_layer([layer("h.0", "attn"), layer("h.0", "mlp")]) == layer("h.0")
    assert common_layer([layer("h.0"), layer("h.1")]) == common_layer([]) == ()


def names(graph):
    return {
        node.id: [layer_name(one) for one in node.layers] for node in graph.nodes if node.layers
    }


def test_a_step_between_two_of_a_layer_is_of_that_layer_and_one_between_layers_of_neither(graphs):
    text = graphs.Text()
    here = text.param("x")
    for index, one in enumerate("aabab"):
        here = text.step(one, here, name=f"{one}{index}")
    known = {"a0": layer("h.0", "a"), "b2": layer("h.0", "b"), "b4": layer("h.1")}
    found = names(with_layers(text.graph(), {one: (at,) for one, at in known.items()}))
    assert found["a1"] == ["h.0.a"]  # as its operand
    assert found["a3"] == ["h.0.b"]
    between = with_layers(text.graph(), {"a0": (layer("h.0"),), "b4": (layer("h.1"),)})
    assert "x" not in names(between)  # an input


def test_without_layers_the_names_of_parameters_tell_them(graphs):
    text = graphs.Text()
    here = text.param("x")
    for block in range(2):
        for part in ("q", "k"):
            weight = text.param(f"layers.{block}.attn.{part}.weight")
            turned = text.step("permute_dims", weight, name=f"turned{block}{part}")
            here = text.step("matmul", here, turned, name=f"product{block}{part}")
        here = text.step("add", here, here, name=f"sum{block}")
    found = names(with_layers(text.graph(), {}))
    assert found["turned0q"] == found["product0q"] == ["layers.0.attn.q"]
    assert found["product1k"] == ["layers.1.attn.k"]
    assert found["layers.0.attn.q.weight"] == ["layers.0.attn.q"]
    assert found["sum0"][0].startswith("layers.0")
    assert "x" not in found


def test_the_last_layer_of_a_list_ends_as_those_before_it(graphs):
    text = graphs.Text()
    here = text.param("x")
    for block in range(3):
        weight = text.param(f"blocks.{block}.weight")
        here = text.step("conv2d", here, weight, name=f"conv{block}")
        here = text.step("relu", here, name=f"relu{block}")
    here = text.step("reshape", here, name="flat")
    text.step("matmul", here, text.param("head.weight"), name="head")
    found = names(with_layers(text.graph(), {}))
    assert found["relu2"] == ["blocks.2"]
    assert found["flat"] == [""]  # continues the block, and yet no block before it has one


def test_a_function_without_such_names_stays_as_it_is(graphs):
    text = graphs.Text()
    text.step("add", text.param("x"), text.param("w0"))
    graph = text.graph()
    assert with_layers(graph, {}) is graph


def test_where_it_is_known_how_many_inputs_there_are_the_rest_are_weights(graphs):
    text = graphs.Text()
    x, w, _ = (text.param(one) for one in ("x", "w", "unused"))
    text.step("add", x, w, name="sum")
    graph = replace(text.graph(), attributes=(("num_input", "1"),))
    found = with_layers(graph, {"sum": (layer("fc"),)})
    assert [node.layers for node in found.nodes if node.kind is NodeKind.PARAM] == [
        (),
        (layer("fc"),),
        ((),),
    ]

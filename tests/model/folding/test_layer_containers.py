"""The first picture of a model is its architecture, by the names of its layers."""

from dataclasses import replace
from itertools import pairwise

import pytest

from irviz.limits import FIRST_NODES, MIN_NODES
from irviz.model.folding.expansion import Expansion, expanded_containers, reveal
from irviz.model.folding.group_tree import (
    Container,
    container_tree,
    count_elements,
    group_facts,
    layer_titles,
)
from irviz.model.folding.visible_graph import visible_graph
from irviz.model.graph.graph import LayerPart, NodeKind, RegionKind, lone_calls
from irviz.model.graph.layers import with_layers
from irviz.view.graph.node_labels import lines, value_label

MODEL = LayerPart("model", "Model")


class Model:
    """A model in the making; every layer is in one that stands around the whole of it."""

    def __init__(self, graphs):
        self.text, self.layers, self.around = graphs.Text(), {}, (MODEL,)
        self.here = self.text.param("x")

    def step(self, op, *operands, weights=0, type_="Tensor[(1, 4)]", kind=NodeKind.OPERATOR):
        own = [self.text.param(type_="Tensor[(4, 4)]") for _ in range(weights)]
        node = self.text.step(op, *(operands or (self.here,)), *own, type_=type_, kind=kind)
        self.layers[node] = (self.around,)
        self.here = node
        return node

    def layer(self, name, kind, make):
        before, self.around = self.around, (*self.around, LayerPart(name, kind))
        make()
        self.around = before

    def linear(self, name):
        def make():
            self.step("matmul", weights=1)
            self.step("add", weights=1)

        self.layer(name, "Linear", make)

    def graph(self):
        graph = replace(self.text.graph(self.here), attributes=(("num_input", "1"),))
        return with_layers(graph, self.layers)


def transformer(graphs, blocks=6):
    model = Model(graphs)

    def attention():
        for name in ("query", "key", "value"):
            model.linear(name)
        for op in ("reshape", "softmax", "transpose", "matmul"):
            model.step(op)

    def block():
        first = model.here
        model.layer("attn", "Attention", attention)
        second = model.step("add", first, model.here)
        model.layer("mlp", "MLP", lambda: (model.linear("up"), model.step("gelu")))
        model.step("add", second, model.here)

    model.linear("embed")
    model.layer("mask", "Mask", lambda: model.step("relu"))
    for index in range(blocks):
        model.layer(f"h.{index}", "Block", block)
    model.linear("head")
    return model.graph()


def picture(graph, **options):
    return visible_graph(container_tree(graph), minimum=MIN_NODES, **options)


def names(shown):
    return [node.name for node in shown.graph.nodes if node.kind is NodeKind.GROUP]


def test_repeats_are_the_models_layers_and_are_called_as_they_are(graphs):
    shown = picture(transformer(graphs, 48))
    frames = [region.name for region in shown.graph.regions]
    assert frames == ["h.0–47 ×48 · Block · copy 1", "attn · Attention"]
    linear = [f"{name} · Linear" for name in ("embed", "query", "key", "value", "head")]
    assert names(shown) == [*linear[:-1], "4 operators", "mlp · MLP", linear[-1]]


def test_a_group_in_a_copy_has_the_layer_of_that_copy(graphs):
    graph = transformer(graphs, 48)
    (repeat,) = graphs.repeats(container_tree(graph))
    for copy in (0, 1, 47):
        shown = picture(graph, expansion=Expansion().show_copy(repeat.id, copy))
        (mlp,) = (node for node in shown.graph.nodes if node.name == "mlp · MLP")
        assert dict(mlp.attributes)["layer"] == f"model.h.{copy}.mlp"


def test_the_layer_around_everything_has_no_frame_and_one_step_alone_is_itself(graphs):
    shown = picture(transformer(graphs))
    assert all("model" not in region.name for region in shown.graph.regions)
    assert "relu" in [node.callee for node in shown.graph.nodes]


def test_weights_are_in_their_layers_and_inputs_beside_them(graphs):
    shown = picture(transformer(graphs))
    (param,) = (node for node in shown.graph.nodes if node.kind is NodeKind.PARAM)
    assert (param.id, param.region) == ("x", None)
    (embed,) = (node for node in shown.graph.nodes if node.name == "embed · Linear")
    facts = dict(embed.attributes)
    assert (facts["parameters"], facts["operators"]) == ("32", "2")
    assert facts["layer"] == "model.embed"


def test_a_weight_that_nothing_uses_is_left_out(graphs):
    model = Model(graphs)
    for index in range(40):
        model.linear(f"fc{index}")
    unused = model.text.param()
    shown = picture(model.graph())
    assert shown.where(unused) is None
    assert unused not in {node.id for node in shown.graph.nodes}


def test_what_a_model_returns_is_what_its_last_layer_gives_by_whatever_name(graphs):
    model = Model(graphs)
    for index in range(40):
        model.linear(f"fc{index}")
    last = model.here
    result = model.text.step("", last, name="gv", kind=NodeKind.VALUE)
    graph = with_layers(
        replace(model.text.graph(result), attributes=(("num_input", "1"),)), model.layers
    )
    shown = picture(graph)
    assert shown.where(result) == shown.where(last)
    assert shown.graph.outputs == (shown.where(last),)
    assert all(region.name.startswith("fc0–39 ×40") for region in shown.graph.regions)


def test_a_weight_whose_shape_alone_is_asked_for_elsewhere_is_a_line_in_both_calls(graphs):
    model, calls = Model(graphs), []
    table, tied = (model.text.param(type_="Tensor[(9, 4)]") for _ in range(2))

    def embed():
        calls.extend(
            model.step(*one)
            for one in (("relax.shape_of", table), ("take", model.here, table), ("relu",))
        )
        calls.extend(model.step(op, model.here, tied) for op in ("matmul", "add"))

    model.layer("embed", "Embedding", embed)
    shown = visible_graph(container_tree(model.graph()), Expansion(every=True))
    lines = [[leaf.id for leaf in shown.graph[call].weights] for call in calls]
    assert lines == [[table], [table], [], [], []]
    assert {edge.target for edge in shown.graph.leaving[tied]} == {*calls[3:]}


def with_elements(graphs, used):
    """Return a model of 12 calls with three elements each, and the ids of the first call's."""
    model, first = Model(graphs), []

    def norm():
        call = model.step("batch_norm", weights=2)
        elements = [model.step("", call, kind=NodeKind.TUPLE_GET_ITEM) for _ in range(3)]
        model.step("sum", *elements[:used])
        first.append((call, *elements))

    for index in range(12):
        model.layer(f"bn{index}", "Norm", norm)
    return container_tree(model.graph()), first[0]


def test_the_only_used_element_of_a_result_is_part_of_the_call_and_a_node_if_it_is_revealed(graphs):
    tree, (call, *elements) = with_elements(graphs, used=1)
    opened = reveal(tree, Expansion(), call)
    shown = visible_graph(tree, opened)
    assert [shown.where(one) for one in elements] == [call] * 3
    assert value_label(shown.graph[call]) == f"{elements[0]}: (1, 4)"
    (after,) = (edge.target for edge in shown.graph.leaving[call])
    assert shown.graph[after].callee == "sum"
    shown = visible_graph(tree, reveal(tree, opened, elements[2]))
    assert [shown.where(one) for one in elements] == [call, call, elements[2]]


def test_a_layer_of_one_call_is_drawn_as_that_call_which_has_its_title(graphs):
    model, calls = Model(graphs), []
    for index in range(12):
        make = lambda: calls.append(model.step("matmul", weights=1))  # noqa: E731
        model.layer(f"fc{index}", "Linear", make)
        model.step("sum", model.here)
    tree = container_tree(model.graph())
    opened = reveal(tree, Expansion(), calls[0])
    shown = visible_graph(tree, opened).graph
    assert [node.id for node in shown.nodes if node.group] == [calls[0]]
    assert lines(shown[calls[0]])[0] == "fc0 · Linear"
    assert lone_calls(shown) == {shown[calls[0]].region: calls[0]}
    weight = tree.graph.entering[calls[0]][1].source
    assert not lone_calls(visible_graph(tree, opened.open(weight)).graph)


def test_a_layer_of_one_call_is_open_until_it_is_closed(graphs):
    model, calls = Model(graphs), []
    model.layer("stem", "Conv2d", lambda: calls.append(model.step("conv2d", weights=1)))
    for index in range(12):
        model.layer(f"h.{index}", "Block", lambda: (model.linear("a"), model.linear("b")))
    tree = container_tree(model.graph())
    for every in (None, False, True):
        shown = visible_graph(tree, Expansion(every=every), minimum=MIN_NODES).graph
        assert shown[calls[0]].group == "stem · Conv2d"
    closed = visible_graph(tree, Expansion().close("layer:model.stem"), minimum=MIN_NODES).graph
    assert calls[0] not in closed.index


def test_elements_of_which_several_are_used_are_nodes(graphs):
    tree, (call, *elements) = with_elements(graphs, used=2)
    shown = visible_graph(tree, reveal(tree, Expansion(), call))
    assert [shown.where(one) for one in elements] == elements


def test_a_result_whose_value_stands_behind_it_is_drawn(graphs):
    # as in the graph of two stages, of which one gives the result no name of its own
    model = Model(graphs)
    for index in range(40):
        model.layer(f"h.{index}", "Block", lambda: model.step("relu", weights=1))
    last, result = model.here, model.text.step("", model.here, name="gv", kind=NodeKind.VALUE)
    model.here = result
    graph = model.graph()
    nodes = sorted(graph.nodes, key=lambda node: (node.id == last, node.id == result))
    shown = picture(replace(graph, nodes=tuple(nodes)))
    assert shown.where(result) in [node.id for node in shown.graph.nodes]


@pytest.mark.parametrize("blocks", [1, 2, 6, 100])
def test_a_first_picture_is_neither_empty_nor_crowded(graphs, blocks):
    shown = picture(transformer(graphs, blocks))
    assert MIN_NODES <= len(shown.graph.nodes) <= FIRST_NODES


def test_steps_between_layers_are_one_node_when_they_are_many(graphs):
    shown = picture(transformer(graphs))
    inside = [node.name for node in shown.graph.nodes if node.kind is NodeKind.GROUP]
    assert "4 operators" in inside
    assert not {"reshape", "softmax"} & {node.callee for node in shown.graph.nodes}


def test_what_varies_in_a_repeat_is_said(graphs):
    model = Model(graphs)
    start = model.here

    def projections():
        for name in ("query", "key", "value"):
            model.here = start
            model.layer(name, "Linear", lambda: [model.step(f"op{n}", weights=1) for n in range(9)])
        model.step("join")

    model.layer("attn", "Attention", projections)
    for index in range(40):
        model.step(f"tail{index}")
    of = container_tree(model.graph())
    (repeat,) = graphs.repeats(of)
    assert repeat.name == "query | key | value ×3 · Linear"
    assert repeat.kind is RegionKind.REPEAT


def test_equal_layers_with_steps_between_them_have_the_title_of_the_layers(graphs):
    model = Model(graphs)
    for index in range(40):
        model.layer(f"h.{index}", "Block", lambda: (model.linear("up"), model.step("gelu")))
        model.step("scale")
    (repeat,) = graphs.repeats(container_tree(model.graph()))
    assert repeat.name == "h.0–39 ×40 · Block"


def test_a_high_cell_of_a_recurrent_layer_has_its_chains_folded_and_its_branches_drawn(graphs):
    model = Model(graphs)

    def cells():
        model.step("start")
        for _ in range(10):
            state = model.here
            for op in ("reshape", "matmul", "add", "squeeze", "reshape", "add", "split"):
                model.step(op, weights=op == "matmul")
            parts = model.here
            first, second, third = (model.step(op, parts) for op in ("sigmoid", "tanh", "exp"))
            here = model.step("add", first, model.step("multiply", second, third))
            for op in ("relu", "exp", "tanh"):
                here = model.step(op, here, first)
            model.step("add", here, state)

    model.layer("rnn", "RNN", cells)
    shown = picture(model.graph())
    drawn = [node.callee.removeprefix("relax.") or node.name for node in shown.graph.nodes]
    assert "7 operators" in drawn
    assert {"sigmoid", "tanh", "exp"} <= set(drawn)
    assert not {"matmul", "split"} & set(drawn)


@pytest.mark.parametrize(
    ("given", "title"),
    [
        (["layers.0 · L", "layers.1 · L"], "layers.0–1 ×2 · L"),
        (["q · Linear", "k · Linear"], "q | k ×2 · Linear"),
        (["a · A", "b · B"], "a | b ×2"),
        (["act · SiLU"] * 3, "act ×3 · SiLU"),
        ([f"{one} · L" for one in "abcdef"], "a | b | … | f ×6 · L"),
        (["h.0", "h.2"], "h.0 | h.2 ×2"),
    ],
)
def test_repeated_layers_have_one_title(given, title):
    layers = [Container("", RegionKind.LAYER, name, 0, 1, (), layer=name) for name in given]
    assert layer_titles(layers, len(layers))[0] == title


def test_many_layers_that_give_the_same_type_are_one_stage(graphs):
    model = Model(graphs)
    for index in range(10):
        ops = [f"op{index}.{one}" for one in range(8)]  # no two layers are alike
        type_ = f"Tensor[(1, {index // 4}, 4)]"
        make = lambda: [model.step(op, weights=1, type_=type_) for op in ops]  # noqa: E731, B023
        model.layer(f"features.{index}", "Block", make)
    shown = visible_graph(container_tree(model.graph()))
    assert [one.name for one in shown.graph.nodes if one.kind is NodeKind.GROUP] == [
        f"features.{span} · Block" for span in ("0–3", "4–7", "8–9")
    ]


def test_a_group_says_what_is_computed_in_it_and_not_how_its_memory_is_planned(graphs):
    text = graphs.Text()
    here = text.param("x")
    for op in ("take", "relax.memory.alloc_tensor", "relax.memory.kill_tensor"):
        here = text.step(op, here)
    assert dict(group_facts(text.graph(here).nodes[1:]))["holds"] == "take, …"


def test_running_statistics_are_no_parameters(graphs):
    text = graphs.Text()
    for name in ("bn1.weight", "bn1.bias", "bn1.running_mean", "b_bn1_running_var", "running_mean"):
        text.param(name, "Tensor[(8,)]")
    assert [count_elements(one) for one in text.nodes] == [8, 8, 0, 0, 8]


def test_storage_that_a_layer_hands_to_others_is_no_edge_between_collapsed_layers(graphs):
    model = Model(graphs)
    model.layer("plan", "Plan", lambda: model.step("relax.memory.alloc_storage"))
    storage = model.here

    def block(name):
        last = "x" if name == "a" else model.here
        tensor = model.step("relax.memory.alloc_tensor", storage)
        for index in range(7):
            last = model.step(f"{name}{index}", last, tensor)

    for name in "abcdefgh":
        model.layer(name, name, lambda name=name: block(name))
    edges = visible_graph(container_tree(model.graph())).graph.edges
    layers = [f"layer:model.{name}" for name in ("plan", *"abcdefgh")]
    assert [one[:2] for one in edges if one.source != "x"] == [*pairwise(layers[1:])]


def test_a_layer_that_fits_on_the_screen_is_opened_before_a_larger_one_that_does_not(graphs):
    model = Model(graphs)
    model.step("relax.memory.alloc_tensor")
    for name, steps in (("short", 7), ("tall", 12)):
        make = lambda: [model.step(f"{name}{index}", weights=3) for index in range(steps)]  # noqa: E731, B023
        model.layer(name, name, make)
    tree = container_tree(model.graph())
    assert [one.id for one in tree.root.inside] == ["layer:model.short", "layer:model.tall"]
    opened = expanded_containers(tree, Expansion(), minimum=MIN_NODES)
    assert opened & {"layer:model.short", "layer:model.tall"} == {"layer:model.short"}


def test_a_small_model_with_many_weights_is_drawn_by_its_layers(graphs):
    def mlp(layers):
        model = Model(graphs)
        for index in range(layers):
            model.linear(f"fc{index + 1}")
            model.step("relu")
        return container_tree(model.graph())

    assert [one.name for one in mlp(5).root.inside] == [f"fc{n} · Linear" for n in range(1, 6)]
    assert mlp(2).root.inside == []  # its four weights fit beside each other

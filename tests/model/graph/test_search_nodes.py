"""Nodes are found by words of their name, callee, operator and type."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irviz.explorer import viewer
from irviz.model.graph.graph import Graph, LayerPart, Node, NodeId, NodeKind
from irviz.model.graph.search_nodes import other_matches, search_nodes, search_text

PAGE = Path(viewer.__file__).parent

WORDS = st.sampled_from(["add", "Add2", "lv", "LV1", "relax.add", "(1, 8)", "float16", "call", "Ä"])


def node(node_id, callee="", operator="", type_text="Tensor[(2,)]"):
    return Node(NodeId(node_id), NodeKind.OPERATOR, node_id, type_text, callee, operator=operator)


def graph(*nodes):
    return Graph("main", nodes, (), (), ())


@st.composite
def graphs_of_words(draw):
    names = draw(st.lists(WORDS, max_size=8))
    return graph(
        *(
            node(f"{name}#{index}" if names.index(name) < index else name, *draw(facts))
            for index, name in enumerate(names)
        )
    )


facts = st.tuples(WORDS, WORDS, WORDS)


@given(graphs_of_words(), st.lists(WORDS, min_size=1, max_size=3))
def test_what_is_found_has_every_word_and_nothing_else_has(whole, words):
    found = search_nodes(whole.nodes, " ".join(words))
    texts = {one.id: "\n".join(_texts(one)).casefold() for one in whole.nodes}
    split = [word for text in words for word in text.casefold().split()]
    wanted = [word.removeprefix("relax.") for word in split]
    assert set(found) == {i for i, text in texts.items() if all(word in text for word in wanted)}
    assert len(set(found)) == len(found)
    assert found == search_nodes(whole.nodes, " ".join(words).upper().replace("Ä", "ä"))
    order = [
        (
            wanted[0] not in _names(one),
            wanted[0] not in _names(one) and not one.callee,
            not any(name.startswith(wanted[0]) for name in _names(one)),
        )
        for one in map(whole.__getitem__, found)
    ]
    assert order == sorted(order)


def _texts(one):
    short = [name.removeprefix("relax.") for name in (one.callee, one.operator)]
    return [one.id, one.name, *short, one.type_label]


def _names(found):
    return found.name.casefold(), found.callee.casefold().removeprefix("relax.")


CASES = json.loads((PAGE / "tests" / "search_cases.json").read_text("utf-8"))
FOUND, TEXTS = CASES["cases"], [one[-1] for one in (*CASES["groups"], *CASES["nodes"])]


def group(group_id, name, layer):
    facts = (("layer", layer),) if layer else ()
    return Node(NodeId(group_id), NodeKind.GROUP, name, "", attributes=facts)


SEARCHED = [
    *(group(*one[:-1]) for one in CASES["groups"]),
    *(node(*one[:-1]) for one in CASES["nodes"]),
]


@pytest.mark.parametrize(("words", "found"), FOUND)
def test_the_very_name_comes_first_then_groups_and_calls_then_inputs_such_as_weights(words, found):
    """The page finds the same in a saved file: `offline_search.test.ts` reads these cases, too."""
    assert list(search_nodes(SEARCHED, words)) == found


def test_the_page_looks_for_words_in_the_same_text():
    assert list(map(search_text, SEARCHED)) == TEXTS


@pytest.mark.parametrize(("line", "text", "words", "shown"), CASES["lines"])
def test_what_was_found_by_words_that_are_not_shown_shows_them(line, text, words, shown):
    assert other_matches(line, text, words) == shown


def test_a_node_is_found_by_its_layer_and_attributes_and_by_where_it_was_written():
    layer = (LayerPart("layer3", "Sequential"), LayerPart("0", ""), LayerPart("conv1", "Conv2d"))
    conv = node("lv13", "relax.nn.conv2d")._replace(
        layers=(layer,), attributes=(("strides", "(2, 2)"),)
    )
    nodes = (node("lv12", "relax.nn.conv2d"), conv)
    notes = {NodeId("lv13"): "Conv /layer3/Conv"}
    for words in ("layer3.0.conv1", "Layer3 conv2d", "strides=(2,", "strides=2", "/layer3/conv"):
        assert search_nodes(nodes, words, notes) == ("lv13",)
    assert search_nodes(nodes, "rides", notes) == ()


def test_nothing_is_found_where_there_are_no_nodes():
    assert search_nodes((), "a") == ()

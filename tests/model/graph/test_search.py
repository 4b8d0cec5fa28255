"""Nodes are found by words of their name, callee, operator and type."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irviz.explorer import viewer
from irviz.model.graph.graph import Graph, Node, NodeId, NodeKind, search_nodes, search_text

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
    found = search_nodes(whole, " ".join(words))
    texts = {one.id: "\n".join(_texts(one)).casefold() for one in whole.nodes}
    split = [word for text in words for word in text.casefold().split()]
    wanted = [word.removeprefix("relax.") for word in split]
    assert set(found) == {i for i, text in texts.items() if all(word in text for word in wanted)}
    assert len(set(found)) == len(found)
    assert found == search_nodes(whole, " ".join(words).upper().replace("Ä", "ä"))
    exact = [wanted[0] in _names(whole[one]) for one in found]
    begins = [any(name.startswith(wanted[0]) for name in _names(whole[one])) for one in found]
    order = [0 if is_it else 1 if begin else 2 for is_it, begin in zip(exact, begins, strict=True)]
    assert order == sorted(order)


def _texts(one):
    short = [name.removeprefix("relax.") for name in (one.callee, one.operator)]
    return [one.id, one.name, *short, one.type_label]


def _names(found):
    return found.name.casefold(), found.callee.casefold().removeprefix("relax.")


NODES, FOUND = json.loads((PAGE / "tests" / "search_cases.json").read_text("utf-8")).values()


@pytest.mark.parametrize(("words", "found"), FOUND)
def test_the_very_name_comes_first_then_what_begins_with_it_then_the_text_decides(words, found):
    """The page finds the same in a saved file: `search_nodes.test.ts` reads these cases, too."""
    assert list(search_nodes(graph(*(node(*one[:4]) for one in NODES)), words)) == found


def test_the_page_looks_for_words_in_the_same_text():
    assert [search_text(node(*one[:4])) for one in NODES] == [one[4] for one in NODES]


def test_nothing_is_found_where_there_are_no_nodes():
    assert search_nodes(graph(), "a") == ()

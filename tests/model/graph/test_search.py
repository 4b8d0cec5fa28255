"""Nodes are found by words of their name, callee, operator and type."""

from hypothesis import given
from hypothesis import strategies as st

from irviz.model.graph.graph import Graph, Node, NodeId, NodeKind
from irviz.model.graph.search import search_nodes

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
    callee = found.callee.casefold()
    return found.name.casefold(), callee, callee.removeprefix("relax.")


def test_the_very_name_comes_first_then_what_begins_with_it_then_the_text_decides():
    nodes = [node("sublv1"), node("lv10"), node("lv1"), node("lv11"), node("x", "env.lv1")]
    assert search_nodes(graph(*nodes), "LV1") == ("lv1", "lv10", "lv11", "sublv1", "x")


def test_an_operator_is_found_without_the_prefix_that_all_have():
    nodes = [node("a", "relax.add_n"), node("b", "relax.add"), node("add_c", "relax.multiply")]
    assert search_nodes(graph(*nodes), "add") == ("b", "a", "add_c")


def test_a_shape_and_an_operator_together():
    nodes = [node("a", "relax.add", type_text="Tensor[(1, 8)]"), node("b", "relax.add")]
    assert search_nodes(graph(*nodes), "add (1, 8)") == ("a",)
    assert search_nodes(graph(*nodes), "tensor add") == ("a", "b")


def test_no_words_find_nothing():
    assert search_nodes(graph(node("a")), "") == search_nodes(graph(node("a")), "  \t") == ()
    assert search_nodes(graph(), "a") == ()

"""A node's id is its variable's name where possible, and unique."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax

from irviz.ir.module_functions import relax_functions
from irviz.ir.node_ids import identify, unique_id
from irviz.model.graph.graph import OUTPUT

NAMES = st.one_of(
    st.sampled_from(["x", "x#2", "x#2#2", "return", "", "v", "\x01", "\x02", "\ufffd", "\u202e"]),
    st.text(st.characters(codec="utf-8"), max_size=3),
)


def ids_of(mod):
    return list(identify(mod["main"]).values())


def test_a_plain_name_is_its_own_id(modules):
    assert ids_of(modules.chain("x", "lv0", "漢字", "a b", "<&\"'>")) == [
        "x",
        "lv0",
        "漢字",
        "a b",
        "<&\"'>",
    ]


def test_a_repeated_name_is_numbered_past_names_that_look_so(modules):
    assert ids_of(modules.chain("y", "y", "y#2", "y")) == ["y", "y#2", "y#2#2", "y#3"]
    assert ids_of(modules.chain("y#2", "y", "y")) == ["y#2", "y", "y#2#2"]


def test_no_node_has_the_id_of_the_outputs(modules):
    assert OUTPUT not in ids_of(modules.chain("x", "return"))


def test_an_id_can_be_seen(modules):
    ids = ids_of(modules.chain("", "a\nb", "\x00", "\u202e", "\u2028"))
    assert ids == ["v", "a\ufffdb", "\ufffd", "\ufffd#2", "\ufffd#3"]


@settings(max_examples=100)
@given(names=st.lists(NAMES, min_size=1, max_size=8))
def test_ids_are_distinct_printable_and_in_the_order_of_the_text(modules, names):
    mod = modules.chain(*names)
    ids = identify(mod["main"])
    assert len(set(ids.values())) == len(names)
    assert all(node_id and node_id.isprintable() for node_id in ids.values())
    function = mod["main"]
    bound = [binding.var for block in function.body.blocks for binding in block.bindings]
    variables = [*function.params, *bound]
    assert list(ids) == variables


def test_ids_stay_when_a_pass_keeps_the_variables(modules):
    given_ids = ids_of(modules.chain("x", "y", "y"))
    kept = relax.transform.LegalizeOps()(modules.chain("x", "y", "y"))
    assert ids_of(kept) == given_ids


def test_unique_id_numbers_repeated_names():
    seen = {}
    assert [unique_id("a", seen) for _ in range(3)] == ["a", "a#2", "a#3"]


def test_functions_come_in_the_order_of_their_names(modules):
    assert list(relax_functions(modules.TwoFunctions)) == ["first", "second"]
    assert list(relax_functions(modules.EveryKind)) == ["main", "twice"]

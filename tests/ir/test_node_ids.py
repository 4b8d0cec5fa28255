"""A node's id is its variable's name where possible, and unique."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tvm import relax

import irviz
from irviz.ir.module_functions import relax_functions
from irviz.ir.node_ids import identify, unique_id
from irviz.model.graph.graph import OUTPUT, NodeKind

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
    ids = ids_of(modules.chain("x", str(OUTPUT)))
    assert len(ids) == 2
    assert OUTPUT not in ids


def test_an_id_can_be_seen(modules):
    ids = ids_of(modules.chain("", "a\nb", "\x00", "\u202e", "\u2028"))
    assert ids == ["v", "a\ufffdb", "\ufffd", "\ufffd#2", "\ufffd#3"]


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


def test_a_variable_that_is_named_like_a_constants_node_keeps_its_id_in_the_graph():
    """The constant comes first in the text: its id must not be the variable's."""
    table = relax.const(np.zeros((2,), "float32"))
    x = relax.Var("x", relax.TensorType([2], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        first = builder.emit(relax.op.add(x, table), "lv")
        builder.emit_func_output(builder.emit(relax.op.exp(first), "lv[1]"))
    mod = builder.get()
    nodes = {node.id: node for node in irviz.graph(mod, "main").nodes}
    assert nodes["lv[1]"].kind is NodeKind.CONSTANT
    by_name = {str(var.name): node_id for var, node_id in identify(mod["main"]).items()}
    assert nodes[by_name["lv[1]"]].callee == "relax.exp"

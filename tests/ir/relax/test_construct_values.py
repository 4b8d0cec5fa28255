"""Each class of value is read, also those that TVMScript cannot write."""

import pytest

from irviz.model.graph.graph import Literal, NodeKind, Resolution


def test_tuples_have_their_fields_at_longer_positions(read):
    graph = read("tuples")
    assert graph.all() == {
        "flat": "tuple: x 0, x 1",
        "nested": "tuple: x 0, flat 1.0, x 1.1.0",
        "inner": "tuple_get_item: nested 0",
        "second": "tuple_get_item: inner 0",
        "first": "tuple_get_item: second 0",
        "size": "tuple_get_item: t 0",
        "empty": "tuple: ",
        "return[1, 1, 1]": "tuple: ",
    }
    assert Literal((1, 1, 1), "1.0") in graph["nested"].literals
    assert graph.outputs[:3] == ("first", "nested", "size")


def test_a_cast_uses_what_it_casts(read):
    graph = read("casts")
    assert graph.all(NodeKind.TUPLE) == {
        "cast": "match_cast: x 0",
        "shape": "match_cast: s 0",
        "known": "match_cast: ",
        "both": "match_cast: pair 0",
        "thing": "match_cast: o 0",
    }
    assert graph["known"].literals == (Literal((0,), "(n, 4)"),)
    assert str(graph["thing"].type_label) == "Tensor[(n, n)]"


def test_sizes_are_values_with_edges_from_the_numbers_among_the_parameters(read):
    graph = read("sizes")
    assert graph.describe("written") == "value: "
    assert graph.describe("of_n") == "value: n 0.0"
    assert graph.describe("zeros") == "operator `relax.zeros`: n 0.0"
    assert graph.describe("flat") == "operator `relax.reshape`: x 0"
    assert graph.describe("same") == "operator `relax.reshape`: x 0, s 1"
    assert graph["of_n"].literals == (Literal((0,), "(n, n * 2, m)"),)


def test_expressions_of_numbers_are_values(read):
    graph = read("primitives")
    assert graph.all(NodeKind.TUPLE) == {
        "alias": "value: n 0",
        "sum_": "value: n 0.0, m 0.1",
        "three": "value: ",
        "half": "value: ",
        "is_more": "value: n 0.0, m 0.1",
        "size": "value: ",
        "larger": "value: n 0.0, m 0.1",
        "again": "value: sum_ 0.0, alias 0.1",
    }
    assert graph.describe("packed") == "tuple: sum_ 0, n 1.0, n 2.0"


def test_numbers_that_tir_computes_by_calls_are_values_as_others_are(read):
    graph = read("expressions of numbers")
    assert {node.kind for node in graph.nodes} == {NodeKind.PARAM, NodeKind.VALUE}
    assert graph.describe("size4") == "value: n 0.0, m 0.1"
    assert graph.describe("size10") == "value: n 0.0"


def test_a_number_computed_by_a_call_with_an_effect_has_the_effect(read):
    graph = read("calls inside numbers")
    assert graph.describe("total") == "value !: shape_heap 0.0"
    assert "0x" not in graph["total"].literals[0].text


def test_texts_and_dtypes_are_values_and_literals(read):
    graph = read("texts")
    assert graph.describe("text") == "value: "
    assert graph.describe("dtype") == "value: "
    assert graph.describe("used") == "call_packed `env.f` -> unknown !: x 0, text 1"
    assert graph["used"].literals == (Literal((2,), "'direct'"), Literal((3,), "int8"))


def test_what_is_hidden_from_readers_is_kept_as_a_node(read):
    graph = read("opaque expressions")
    assert graph.describe("hidden") == "other `OpaqueExpr`: "
    assert graph.describe("used") == "call_packed `env.f` -> unknown !: x 0"
    assert [literal.position for literal in graph["used"].literals] == [(1,)]


@pytest.mark.parametrize(
    ("name", "type_label"),
    [
        ("float16", "Tensor[(2,), float16]"),
        ("float64", "Tensor[(2, 1), float64]"),
        ("bfloat16", "Tensor[(2,), bfloat16]"),
        ("float8", "Tensor[(2,), float8_e4m3fn]"),
        ("bool", "Tensor[(2,), bool]"),
        ("int4", "Tensor[(4,), int4]"),
        ("float4", "Tensor[(2,), float4_e2m1fn]"),
        ("nothing", "Tensor[(0, 3)]"),
    ],
)
def test_one_constant_is_one_node_whatever_its_dtype(read, name, type_label):
    graph = read("tensor constants")
    node = f"{name}[0]"
    assert graph.describe(name) == f"value: {node} 0"
    assert graph.describe(f"used_{name}") == (
        "call_packed `env.f` by relax.call_pure_packed -> unknown:"
        f" {node} 0, {node} 1.0, {name} 1.1"
    )
    assert graph[node].kind is NodeKind.CONSTANT
    assert str(graph[node].type_label) == type_label
    assert node in graph.outputs


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nan", "nan"),
        ("inf", "-inf"),
        ("half", "0.5"),
        ("bfloat16", "1.5"),
        ("float8", "1.5"),
        ("true", "True"),
        ("int8", "-1"),
        ("uint64", "18446744073709551615"),
    ],
)
def test_a_scalar_is_a_literal_of_what_uses_it(read, name, text):
    graph = read("scalar constants")
    assert graph[name].literals == (Literal((0,), text),)
    assert Literal((0,), text) in graph[f"used_{name}"].literals


def test_a_scalar_is_a_literal_where_it_is_used_and_a_node_where_it_is_returned(read):
    graph = read("a scalar used and returned")
    assert graph["before"].literals == (Literal((0,), "1.0"),)
    assert graph.describe("chosen") == "if: c 0, chosen[1] 1, before 2"
    assert graph.describe("after") == "operator `relax.add`: chosen 0"
    assert graph["after"].literals == (Literal((1,), "1.0"),)
    assert graph.outputs == ("after", "chosen[1]")


def test_a_constant_may_be_all_that_a_function_has(read):
    graph = read("a returned constant")
    (node,) = graph.nodes
    assert node.kind is NodeKind.CONSTANT
    assert graph.outputs == (node.id,)


def test_types_of_which_little_is_known_have_labels(read):
    graph = read("types")
    labels = {str(node.id): str(node.type_label) for node in graph.nodes}
    assert labels["t"] == labels["whole"] == "Tensor"
    assert labels["d"] == "Tensor[float16]"
    assert "" not in labels.values()
    assert graph.describe("called") == (
        "call_packed `env.f` by relax.call_pure_packed -> unknown: o 0, s 1, b 2"
    )


def test_unusual_names_are_kept_and_stay_apart(read):
    graph = read("unusual names")
    ids = [str(node.id) for node in graph.nodes]
    assert ids[:6] == ["x", "x#2", "x#2#2", "v", "v#2", "v#3"]
    assert "return" not in ids
    assert 'a "b" <c> & d' in ids
    assert "täglich 日本" in ids
    assert [node.name for node in graph.nodes][3:5] == ["", ""]
    named = read("unusual function names", "a <b> 日本")
    assert named.describe("y").startswith('call_dps_packed `a "b" <c>` by')
    assert named["z"].resolution is Resolution.UNKNOWN


# --- what only hands can make ------------------------------------------------------------------


def test_an_argument_that_is_no_variable_is_written_with_edges_from_what_it_mentions(read):
    graph = read("nested calls")
    assert graph.describe("deep") == "operator `relax.add`: x 0.0, y 0.1, x 1.0"
    assert graph.describe("field") == "operator `relax.add`: x 0.0, y 0.1, t 1"
    assert graph.describe("chosen") == "operator `relax.add`: c 0.0, x 0.1, y 0.2, t 1"
    assert graph.describe("picked") == "tuple_get_item: x 0.0, y 0.1.0"
    assert [literal.position for literal in graph["deep"].literals] == [(0,), (1,)]
    assert graph["field"].literals == (Literal((0,), "(x, y)[1]"),)
    assert graph.describe(graph.outputs[1]) == "operator `relax.add`: x 0, x 1"


def test_a_call_of_what_irviz_has_no_name_for_keeps_what_it_uses(read):
    inline = read("a function written where it is called")
    assert inline.describe("y").endswith(": x 0")
    assert inline["y"].kind is NodeKind.OTHER
    assert read("a called call").describe("y").endswith(": give 0, x 1")


@pytest.mark.parametrize("name", ["a function written where it is called", "a called call"])
def test_a_text_does_not_change_from_run_to_run(read, name):
    assert dict(read(name)["y"].attributes)["text"] == "ir.Call"


def test_what_only_looks_like_a_call_is_read_all_the_same(read):
    graph = read("strange callees")
    assert graph.describe("lv0") == "call_tir `f` by relax.call_tir: f (), x 0"
    assert graph.describe("lv1") == "call_tir `lost` by relax.call_tir -> unknown: x 0"
    assert graph.describe("lv2") == "call_tir `lost` by relax.call_tir -> unknown: tuple 0"
    assert graph["lv3"].literals == (Literal((1,), "(2,)"),)
    assert graph.describe("lv14") == "operator `relax.invoke_pure_closure`: x 0.0, x 1.0"
    assert graph.describe("lv16") == "operator `relax.call_tir`: "
    assert graph["lv21"].kind is NodeKind.OTHER
    assert graph["lv22"].literals == (Literal((0,), "lost"),)


def test_a_prim_func_as_value_keeps_its_text(read):
    graph = read("a PrimFunc as value")
    assert graph["f"].kind is NodeKind.OTHER
    assert "T.prim_func" in dict(graph["f"].attributes)["text"]


def test_no_use_is_lost_where_tvms_own_walks_refuse_to_go(read):
    graph = read("what visitors refuse")
    assert graph.describe("named") == "value: n 0.0"
    assert graph.describe("called") == "call_packed `env.f` -> unknown !: x 0, x 1.0"


def test_a_variable_that_nothing_binds_is_written_where_it_is_used(read):
    graph = read("unbound variables")
    assert graph["y"].literals == (Literal((1,), "nowhere"),)
    assert graph["z"].literals == (Literal((1,), "later"),)
    assert graph.describe(graph.outputs[1]) == "value: "

"""The pane beside the picture says what a node is, in words and with every name escaped."""

import html
import re

import numpy as np
import pytest

from irviz.ir.function_graph import extract
from irviz.model.folding.expansion import RepeatCopies
from irviz.model.graph.graph import (
    Edge,
    FunctionInfo,
    Graph,
    ModuleContents,
    Node,
    NodeId,
    NodeKind,
    Region,
    RegionKind,
    Resolution,
)
from irviz.view.node_details import (
    RESOLUTION_NAMES,
    code_html,
    constant_facts,
    copies_html,
    function_html,
    module_html,
    node_html,
    source_html,
)
from irviz.view.theme import STYLES


def facts(graph, node_id):
    """Return the facts of a node, as a dict of plain text."""
    return facts_of(node_html(graph, graph[node_id]))


def facts_of(found):
    rows = re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", found, re.DOTALL)
    return {html.unescape(key): html.unescape(re.sub("<[^>]*>", "", value)) for key, value in rows}


def test_a_call_says_how_it_calls_and_where_that_leads(modules):
    assert facts(extract(modules.EveryKind), "named") == {
        "kind": "call_dps_packed",
        "type": "Tensor[(2, 2)]",
        "callee": "double",
        "leads to": "a PrimFunc of this module",
        "arguments": "double tir (2, 2)",
        "used by": "twice relaxed",
        "block": "1 of 2, dataflow block",
    }


def test_a_parameter_has_users_and_no_block(modules):
    found = facts(extract(modules.EveryKind), "x")
    assert found["kind"] == "parameter"
    assert found["used by"] == "double tir\n( , ) packed\nsubtract chosen_else\nreturn"
    assert found["block"] == "none: a parameter"
    assert "callee" not in found
    assert "arguments" not in found


def test_arguments_are_in_the_order_of_the_call(modules):
    graph = extract(modules.EveryKind)
    assert facts(graph, "packed")["arguments"].split("\n") == [
        "permute_dims turned (2, 2)",
        "double tir (2, 2)",
        "x (2, 2)",
    ]
    assert facts(graph, "scaled")["arguments"] == "add table (2, 2)\n2.0"
    assert facts(extract(modules.Impure), "got")["arguments"] == "add y (2,)\n3\n'a'"
    assert facts(extract(modules.Impure), "said")["arguments"] == "'{}'\nadd y (2,)"


def test_an_argument_of_a_copy_that_is_not_drawn_says_so():
    names = [NodeId(name) for name in ("here", "there", "before", "call")]
    nodes = tuple(Node(name, NodeKind.OPERATOR, name, "") for name in names)
    edges = (
        Edge(names[0], names[3], (0,)),
        Edge(names[1], names[3], (0,), is_other=True),
        Edge(names[2], names[3], (0,), is_carried=True),
    )
    found = facts(Graph("main", nodes, edges, (), ()), names[3])["arguments"].splitlines()
    assert [line.strip() for line in found] == [
        *("before in the next copy", "here", "there in another copy")
    ]


def test_what_nothing_uses_says_so(modules):
    assert facts(extract(modules.Impure), "said")["used by"] == "nothing"


def test_blocks_without_dataflow_say_so(modules):
    graph = extract(modules.Impure)
    assert facts(graph, "said")["block"] == "2 of 3, binding block, no dataflow"


def test_a_node_in_an_expanded_layer_tells_the_block_around_it():
    regions = (Region(RegionKind.DATAFLOW_BLOCK), Region(RegionKind.REPEAT, "h.0–3 ×4", 0))
    node = Node(NodeId("lv"), NodeKind.GROUP, "attn", "", region=1)
    graph = Graph("main", (node,), (), regions, ())
    assert facts(graph, "lv")["block"] == "dataflow block"


def test_a_constant_that_is_returned_is_in_no_block(modules):
    found = facts(extract(modules.ReturnedConstants), "return[1]")
    assert found["block"] == "none: returned as it is"
    assert found["used by"] == "return"


def test_attributes_are_facts(modules):
    assert facts(extract(modules.EveryKind), "turned")["axes"] == "(1, 0)"


def test_every_kind_and_every_resolution_has_words():
    for kind in NodeKind:
        graph = Graph("main", (Node(NodeId("x"), kind, "x", "T", "f"),), (), (), ())
        assert facts(graph, "x")["kind"] == STYLES[kind].name
    for resolution in Resolution:
        node = Node(NodeId("x"), NodeKind.CALL_FUNCTION, "x", "T", "f", resolution)
        assert (
            facts(Graph("main", (node,), (), (), ()), "x")["leads to"]
            == RESOLUTION_NAMES[resolution]
        )


def test_names_are_text_and_not_html():
    evil = "<img src=x onerror='alert(1)'>&\""
    node = Node(NodeId(evil), NodeKind.OPERATOR, evil, evil, evil, attributes=((evil, evil),))
    graph = Graph("main", (node,), (), (), ())
    both = node_html(graph, node) + source_html(evil, evil, evil, 3)
    assert "<img" not in both
    assert both.count("&lt;img") >= 6


def test_the_source_is_the_line_with_its_number_and_the_prim_func():
    prim_func = "@T.prim_func\ndef relu0(): ..."
    found = source_html("relu0", prim_func, "x = R.call_tir(cls.relu0)", 7)
    text = html.unescape(re.sub("<[^>]*>", "", found))
    assert "TVMScript, line 7" in text
    assert "x = R.call_tir(cls.relu0)" in text
    assert "PrimFunc relu0" in text
    assert "def relu0(): ..." in text


@pytest.mark.parametrize(("line", "behind", "headings"), [("", "", 0), ("x", "", 1), ("", "x", 1)])
def test_what_has_no_source_shows_none(line, behind, headings):
    assert source_html("x", behind, line, 1).count("<h3>") == headings


def test_a_function_says_what_it_takes_returns_and_computes(modules):
    assert facts_of(function_html(extract(modules.EveryKind)))["takes"] == "x (2, 2)\nc (), bool"
    names = ["x", "fc.weight", "fc.running_mean"]
    sizes = ["Tensor[(1, 4), int64]", "Tensor[(4, 500)]", "Tensor[(500,)]"]
    params = [
        Node(NodeId(name), NodeKind.PARAM, name, size)
        for name, size in zip(names, sizes, strict=True)
    ]
    call = Node(NodeId("y"), NodeKind.OPERATOR, "y", "Tensor[(1, 500)]", work=4000.0)
    graph = Graph("main", (*params, call), (), (), (call.id,), attributes=(("num_input", "1"),))
    assert facts_of(function_html(graph)) == {
        "takes": "x (1, 4), int64",
        "returns": "Tensor[(1, 500)]",
        "weights": "2.0 k numbers in 2 tensors",
        "FLOPs": "4.0 k",
    }


def test_a_module_lists_functions_that_are_alike_in_one_row_and_cuts_a_long_list():
    long = (("a", "&"), ("target", "t" * 500))
    alike = [FunctionInfo(f"f<{i}>", "PrimFunc", True, long) for i in range(6)]
    others = [FunctionInfo(f"g{i}", "Function", False, (("a", str(i)),)) for i in range(20)]
    page = module_html(ModuleContents((*alike, *others), (("device_num", "2"),)))
    names = "f&lt;0&gt;, f&lt;1&gt;, f&lt;2&gt;, f&lt;3&gt; and 2 more"
    assert f"<dt>{names}</dt><dd>PrimFunc, private, a = &amp;, target = ttt" in page
    assert "t" * 40 not in page
    assert "<dt>g18</dt><dd>Function, a = 18</dd><dt>…</dt><dd>1 more</dd>" in page
    assert "<dt>device_num</dt><dd>2</dd>" in page


def test_a_group_says_how_many_it_holds_and_what_it_gives():
    node = Node(
        NodeId("g"), NodeKind.GROUP, "×3", "y: T", attributes=(("each holds", "add"),), size=1200
    )
    page = node_html(Graph("main", (node,), (), (), ()), node)
    assert "<dt>nodes</dt><dd>1,200</dd><dt>gives</dt><dd>y: T</dd>" in page
    assert "<dt>each holds</dt><dd>add</dd>" in page


def test_an_impure_call_says_so(modules):
    graph = extract(modules.Impure)
    assert "<dt>effects</dt>" in node_html(graph, graph["said"])
    assert "<dt>effects</dt>" not in node_html(graph, graph["y"])


def test_a_node_of_a_repeat_says_which_copy_it_is_of_and_what_differs_between_them():
    names = ["x", "c", "w0", "w1", "w2", "y0", "y1", "y2"]
    nodes = tuple(Node(NodeId(name), NodeKind.OPERATOR, name, "T") for name in names)
    edges = tuple(
        Edge(NodeId(source), NodeId(f"y{copy}"), (at,))
        for copy in range(3)
        for at, source in enumerate((["x", "y0", "y1"][copy], "c", f"w{copy}"))
    )
    copies = RepeatCopies("r", 1, (NodeId("y0"), NodeId("y1"), NodeId("y2")))
    assert facts_of(copies_html(copies, Graph("main", nodes, edges, (), ()))) == {
        "copy": "2 of 3",
        "each": "y0, y1, y2",
        "argument 0": "x, y0, y1",
        "argument 2": "w0, w1, w2",
    }


def test_a_node_in_a_branch_says_whose(modules):
    graph = extract(modules.EveryKind)
    facts = node_html(graph, graph["chosen_then"])
    assert "binding block, no dataflow, in then of chosen" in facts


def test_code_keeps_its_text_and_escapes_it():
    text = 'lv = R.add(x, "<script>&")\n'
    shown = code_html(text)
    assert "<script>" not in shown
    assert html.unescape(re.sub("<[^>]*>", "", shown)).strip() == text.strip()
    assert "irviz-line" in shown, "it may wrap"
    assert "irviz-line" not in code_html(text * 2), "indentation stays legible"


def test_a_small_constant_is_written_out():
    assert constant_facts(np.array([[1.0, 2.5]], "float32")) == (("values", "[[1. , 2.5]]"),)
    assert constant_facts(np.zeros((0,), "float32")) == (("values", "[]"),)


def test_a_large_one_has_its_range_mean_and_share_of_zeros():
    facts = dict(constant_facts(np.array([0.0] * 5 + [1.0] * 5, "float32")))
    numbers = {"minimum": "0", "maximum": "1", "mean": "0.5", "std": "0.5"}
    assert facts == {**numbers, "zeros": "50%"}


def test_what_is_no_number_is_counted_and_left_out():
    values = np.ones(10, "float16")
    values[:3] = np.nan, np.inf, -np.inf
    facts = dict(constant_facts(values))
    assert facts["not finite"] == "1 NaN and 2 Inf among 10 numbers"
    assert facts["minimum"] == facts["maximum"] == "1"
    assert dict(constant_facts(np.full(10, np.nan))).keys() == {"not finite"}


def test_integers_and_truths_are_numbers():
    assert dict(constant_facts(np.arange(20)))["maximum"] == "19"
    assert dict(constant_facts(np.ones(20, bool)))["zeros"] == "0%"


def test_a_block_of_a_prim_func_says_which_blocks_are_around_it():
    regions = (
        Region(RegionKind.OUTER_BLOCK, "tile"),
        Region(RegionKind.OUTER_BLOCK, "row", 0),
    )
    blocks = tuple(
        Node(NodeId(name), NodeKind.BLOCK, name, "", region=region)
        for name, region in (("inner", 1), ("alone", None))
    )
    graph = Graph("f", blocks, (), regions, ())
    assert facts(graph, "inner")["block"] == "row, in tile"
    assert facts(graph, "alone")["block"].startswith("none")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("9.999999747378752e-06", "1e-05"),
        ("0.8999999761581421", "0.9"),
        ("1.0000000000000001e-05", "1e-05"),
        ("[0.10000000149011612, 0.5]", "[0.1, 0.5]"),
        ("0.1234567890123", "0.1234567890123"),
    ],
)
def test_numbers_of_attributes_have_the_fewest_digits_that_tell_them(value, shown):
    node = Node(NodeId("lv"), NodeKind.OPERATOR, "lv", "", attributes=(("epsilon", value),))
    assert facts(Graph("main", (node,), (), (), ()), "lv")["epsilon"] == shown

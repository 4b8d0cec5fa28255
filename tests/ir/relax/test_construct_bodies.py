"""Branches, functions inside functions, and blocks are read as regions and nodes."""

from irviz.model.graph.graph import Literal, NodeKind, RegionKind


def test_a_branch_is_a_region_whose_nodes_come_before_the_if(read):
    graph = read("branches")
    assert list(graph.all().items()) == [
        ("a", "operator `relax.add`: x 0, y 1"),
        ("chosen_then", "operator `relax.multiply`: a 0, x 1"),
        ("b", "operator `relax.subtract`: x 0, y 1"),
        ("chosen_else", "operator `relax.subtract`: b 0, b 1"),
        ("chosen", "if: c 0, chosen_then 1, chosen_else 2"),
        ("after", "operator `relax.add`: chosen 0, y 1"),
    ]
    assert [(r.name, r.owner) for r in graph.regions if r.kind is RegionKind.BRANCH] == [
        ("then", "chosen"),
        ("else", "chosen"),
    ]
    assert graph.around("a") == ["binding_block", "then", "binding_block"]
    assert graph.around("b") == ["binding_block", "else", "binding_block"]
    assert graph.around("after") == ["binding_block"]


def test_ifs_stand_in_branches_of_ifs(read):
    graph = read("nested branches")
    assert graph.describe("inner") == "if: d 0, inner_then 1, inner_else 2"
    assert graph.describe("other") == "if: d 0, other_then 1, other_else 2"
    assert graph.describe("chosen") == "if: c 0, chosen_then 1, chosen_else 2"
    assert graph.around("other_else")[1::2] == ["else", "else"]


def test_a_branch_may_give_what_is_outside_of_it(read):
    graph = read("branches that return what is outside")
    assert graph.describe("chosen") == "if: c 0, x 1, y 2"


def test_a_constant_that_a_branch_gives_is_a_node_even_a_scalar(read):
    graph = read("branches that return constants")
    assert graph.describe("chosen") == "if: c 0, chosen[1] 1, sum 2"
    assert graph["sum"].literals == (Literal((1,), "1.0"),)
    scalars = read("branches that return scalars")
    assert scalars.describe("chosen") == "if: c 0, chosen[1] 1, chosen[2] 2"
    assert scalars["chosen[2]"].kind is NodeKind.CONSTANT


def test_a_tuple_that_a_branch_gives_has_longer_positions(read):
    assert read("branches that return tuples").describe("chosen") == (
        "if: c 0, sum 1.0, x 1.1.0, sum 1.1.1, y 2.0, y 2.1.0, x 2.1.1"
    )


def test_a_shape_that_a_branch_gives_is_a_value_of_the_branch(read):
    graph = read("branches that return shapes")
    assert graph.describe("chosen") == "if: c 0, chosen[1] 1, chosen[2] 2"
    assert graph.describe("chosen[2]") == "value: n 0.0"
    assert graph["chosen[2]"].literals == (Literal((0,), "(3, n * n)"),)
    assert graph.around("chosen[2]") == ["binding_block", "else"]


def test_dataflow_blocks_stand_in_branches(read):
    graph = read("dataflow blocks in branches")
    assert graph.around("lv_then") == ["binding_block", "then", "dataflow"]
    assert graph.describe("chosen") == "if: c 0, gv_then 1, gv_else 2"


def test_a_condition_may_be_a_number(read):
    graph = read("a number as condition")
    assert graph.describe("chosen") == "if: flag 0, chosen_then 1, chosen_else 2"


def test_an_inner_function_is_a_node_with_its_body_in_a_region(read):
    graph = read("inner function")
    assert list(graph.all().items()) == [
        ("b", "operator `relax.add`: a 0, a 1"),
        ("inner", "function: b 0"),
        ("y", "call_function `inner`: inner (), x 0"),
        ("z", "call_function `inner`: inner (), y 0"),
    ]
    assert graph["a"].kind is NodeKind.PARAM
    assert graph.regions[graph["a"].region].kind is RegionKind.FUNCTION
    assert graph.regions[graph["a"].region].owner == "inner"


def test_a_captured_variable_is_an_edge_into_the_body(read):
    graph = read("capturing functions")
    assert graph.describe("sum_") == "operator `relax.add`: a 0, b 1"
    assert graph.describe("all_") == "operator `relax.add`: sum_ 0, y 1"
    assert graph.describe("inner") == "function: all_ 0"
    assert graph.describe("outer") == "function: c 0"


def test_a_closure_that_calls_itself_has_an_edge_that_leads_back(read):
    graph = read("recursive closure")
    assert graph.describe("r_then") == "call_function `again`: again (), b 0"
    assert graph.describe("again") == "function: r 0"
    assert graph.index["again"] > graph.index["r_then"]


def test_functions_are_values_too(read):
    graph = read("functions as values")
    assert graph.describe("passed") == "call_function `apply` -> function: inner 0, x 1"
    assert graph.describe("named") == "value: "
    assert graph["named"].literals == (Literal((0,), "apply"),)
    assert graph.outputs == ("inner",)
    assert read("functions as values", "apply").describe("y") == "call_function `f`: f (), x 0"
    lazy = read("lazy parameters")
    assert lazy.describe("w_untyped") == "call_function `fget_param`: fget_param ()"


def test_a_composite_function_is_called_as_others_are(read):
    assert read("composite functions").describe("lv") == (
        "call_function `fused_relax_matmul_relax_add` -> function: x 0, turned 1, b 2"
    )
    annotated = read("annotated composite functions", "fused_relax_matmul_lib")
    assert annotated.describe("local_func") == "function: gv 0"
    assert ("Composite", "lib.matmul") in annotated["local_func"].attributes
    assert ("Codegen", "lib") in annotated.attributes
    assert annotated.describe("output") == (
        "call_function `local_func`: local_func (), active 0, turned 1"
    )


def test_a_function_keeps_its_attributes(read):
    assert dict(read("attributes").attributes) == {
        "global_symbol": "main",
        "num_input": "1",
        "relax.force_pure": "True",
    }
    assert dict(read("attributes", "hidden").attributes) == {"Primitive": "True", "note": "(1, 2)"}


def test_a_function_that_binds_nothing_gives_its_parameters(read):
    assert read("functions that bind nothing").outputs == ("x",)
    assert read("functions that bind nothing", "pair").outputs == ("y", "x", "y")


def test_blocks_tell_what_is_dataflow(read):
    graph = read("blocks")
    kinds = [region.kind.value for region in graph.regions]
    assert kinds == ["dataflow", "binding_block", "dataflow"]
    assert graph.describe("between") == "operator `relax.add`: gv 0, gv1 1"
    assert graph.describe("gv2") == "operator `relax.multiply`: lv#2 0, lv#2 1"


def test_a_sequence_as_value_gives_its_result(read):
    graph = read("a sequence as value")
    assert graph.describe("y") == "operator `relax.add`: x 0, x 1"
    assert graph.describe("z") == "value: y 0"


def test_a_body_without_blocks_is_a_node(read):
    graph = read("a body without blocks")
    (output,) = graph.outputs
    assert graph.describe(output) == "operator `relax.add`: x 0, x 1"


def test_a_variable_bound_again_is_another_node(read):
    graph = read("a variable bound twice")
    assert graph.describe("chosen") == "if: c 0, same 1, same#2 2"
    assert graph.describe("same#3") == "operator `relax.subtract`: chosen 0, x 1"
    assert graph.outputs == ("same#3",)


def test_a_variable_bound_to_its_own_old_value_uses_the_old_one(read):
    graph = read("a parameter twice")
    assert graph.describe("x#3") == "operator `relax.add`: x#2 0, x#2 1"


def test_what_is_nested_too_deep_keeps_its_text(read, constructs):
    graph = read(constructs.deep_branches(200))
    (deepest,) = (node for node in graph.nodes if node.kind is NodeKind.OTHER)
    assert "if c:" in dict(deepest.attributes)["text"]
    assert graph.outputs == ("at199",)

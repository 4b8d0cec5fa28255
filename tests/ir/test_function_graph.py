"""A function is read whole: each binding a node, each use an edge, and nothing else."""

import re

import numpy as np
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import ir, relax
from tvm.relax.expr_functor import PyExprVisitor, visitor

from irviz.course.mlp import MyModule, MyModuleStatic
from irviz.ir.function_graph import extract, read_function
from irviz.ir.module_functions import NoFunctionError
from irviz.ir.relax_calls import CallReader
from irviz.model.graph.graph import Literal, NodeKind, RegionKind, Resolution
from irviz.transforms.bind_params import bind_params
from irviz.transforms.kernels import library  # noqa: F401 - registers env.relu


def uses(graph, target):
    """Return what enters a node: (source, position) in the order of the edges."""
    return [(edge.source, edge.position) for edge in graph.edges if edge.target == target]


# --- kinds -------------------------------------------------------------------------------------


def test_every_kind_of_binding_has_its_kind_of_node(modules):
    graph = extract(modules.EveryKind)
    kinds = {str(node.id): node.kind for node in graph.nodes}
    assert kinds == {
        "x": NodeKind.PARAM,
        "c": NodeKind.PARAM,
        "tir": NodeKind.CALL_TIR,
        "named": NodeKind.CALL_DPS_PACKED,
        "relaxed": NodeKind.CALL_DPS_PACKED,
        "library": NodeKind.CALL_DPS_PACKED,
        "unknown": NodeKind.CALL_DPS_PACKED,
        "table[1]": NodeKind.CONSTANT,
        "table": NodeKind.OPERATOR,
        "scaled": NodeKind.OPERATOR,
        "turned": NodeKind.OPERATOR,
        "packed": NodeKind.TUPLE,
        "inner": NodeKind.TUPLE_GET_ITEM,
        "first": NodeKind.TUPLE_GET_ITEM,
        "called": NodeKind.CALL_FUNCTION,
        "cast": NodeKind.MATCH_CAST,
        "alias": NodeKind.VALUE,
        "chosen_then": NodeKind.OPERATOR,
        "chosen_else": NodeKind.OPERATOR,
        "chosen": NodeKind.IF,
    }


def test_a_called_name_leads_to_the_module_first_then_to_what_is_registered(modules):
    graph = extract(modules.EveryKind)
    led = {str(n.id): (n.callee, n.resolution) for n in graph.nodes if n.resolution}
    assert led == {
        "tir": ("double", Resolution.PRIM_FUNC),
        "named": ("double", Resolution.PRIM_FUNC),
        "relaxed": ("twice", Resolution.FUNCTION),
        "library": ("env.relu", Resolution.LIBRARY),
        "unknown": ("env.nowhere", Resolution.UNKNOWN),
        "called": ("twice", Resolution.FUNCTION),
    }


def test_a_name_of_the_module_hides_a_registered_one(modules):
    renamed = ir.IRModule({ir.GlobalVar("env.relu"): modules.EveryKind["double"]})
    called = relax.ExternFunc("env.relu")
    assert CallReader(renamed).callee(called, "").resolution is Resolution.PRIM_FUNC
    assert CallReader(modules.EveryKind).callee(called, "").resolution is Resolution.LIBRARY


def test_edges_go_from_what_is_used_to_where_at_its_position(modules):
    graph = extract(modules.EveryKind)
    assert [(e.source, e.target, e.position) for e in graph.edges] == [
        ("x", "tir", (0,)),
        ("tir", "named", (0,)),
        ("named", "relaxed", (0,)),
        ("relaxed", "library", (0,)),
        ("library", "unknown", (0,)),
        ("unknown", "table", (0,)),
        ("table[1]", "table", (1,)),
        ("table", "scaled", (0,)),
        ("scaled", "turned", (0,)),
        ("turned", "packed", (0,)),
        ("tir", "packed", (1, 0)),
        ("x", "packed", (1, 1)),
        ("packed", "inner", (0,)),
        ("inner", "first", (0,)),
        ("first", "called", (0,)),
        ("called", "cast", (0,)),
        ("cast", "alias", (0,)),
        ("turned", "chosen_then", (0,)),
        ("turned", "chosen_then", (1,)),
        ("turned", "chosen_else", (0,)),
        ("x", "chosen_else", (1,)),
        ("c", "chosen", (0,)),
        ("chosen_then", "chosen", (1,)),
        ("chosen_else", "chosen", (2,)),
    ]


def test_outputs_are_the_leaves_of_what_is_returned_in_order(modules):
    assert extract(modules.EveryKind).outputs == ("alias", "chosen", "x")
    assert extract(modules.SameTwice).outputs == ("y",)


def test_blocks_say_which_of_them_are_dataflow(modules):
    graph = extract(modules.Impure)
    dataflow, plain = RegionKind.DATAFLOW_BLOCK, RegionKind.BINDING_BLOCK
    assert [region.kind for region in graph.regions] == [dataflow, plain, dataflow]
    assert {str(node.id): node.region for node in graph.nodes} == {
        "x": None,
        "y": 0,
        "said": 1,
        "got": 1,
        "z": 2,
    }


def test_one_value_used_twice_is_two_edges(modules):
    assert uses(extract(modules.SameTwice), "y") == [("x", (0,)), ("x", (1,))]


def test_parameters_come_first_and_have_no_callee(modules):
    graph = extract(modules.EveryKind)
    first, second = graph.nodes[:2]
    assert (first.name, first.type_label, first.callee) == ("x", "Tensor[(2, 2)]", "")
    assert (second.name, second.type_label) == ("c", "Tensor[(), bool]")
    assert graph.function == "main"


def test_nodes_know_the_type_of_their_value(modules):
    graph = extract(modules.EveryKind)
    assert graph["cast"].type_label == "Tensor[(n, 2)]"
    assert graph["inner"].type_label == "Tuple[Tensor[(2, 2)], Tensor[(2, 2)]]"


# --- arguments that are no variables -----------------------------------------------------------


def test_a_tensor_constant_is_a_node_and_a_scalar_one_a_literal(modules):
    graph = extract(modules.EveryKind)
    constant = graph["table[1]"]
    assert (constant.name, constant.type_label, constant.region) == ("", "Tensor[(2, 2)]", 0)
    assert graph["scaled"].literals == (Literal((1,), "2.0"),)


def test_one_constant_object_is_one_node_however_often_it_is_used(modules):
    graph = extract(modules.shared_constant())
    constants = [node.id for node in graph.nodes if node.kind is NodeKind.CONSTANT]
    assert constants == ["y[1]", "w[1]"]
    assert uses(graph, "z") == [("y[1]", (0,)), ("y[1]", (1,))]


def test_a_constant_is_named_by_the_tensor_it_holds():
    w0 = np.zeros((128, 784), "float32")
    bind = bind_params({"w0": w0})
    graph = read_function(bind(MyModuleStatic), constant_names=bind.constant_names).graph
    (constant,) = (node for node in graph.nodes if node.kind is NodeKind.CONSTANT)
    assert constant.name == "w0"
    assert "w0" not in [node.name for node in graph.nodes if node.kind is NodeKind.PARAM]


def test_returned_constants_are_outputs_too(modules):
    graph = extract(modules.ReturnedConstants)
    assert graph.outputs == ("y", "return[1]", "return[2]")
    assert graph["return[1]"].kind is NodeKind.CONSTANT
    assert graph["return[1]"].type_label == "Tensor[(2,)]"
    assert graph["return[2]"].region is None


def test_strings_shapes_numbers_and_dtypes_are_literals(modules):
    impure = extract(modules.Impure)
    assert impure["got"].literals == (Literal((1,), "3"), Literal((2,), "'a'"))
    allocated = extract(modules.AllocatedByDtype)["buffer"]
    assert [literal.text for literal in allocated.literals] == ["(2,)", "float32", "0", "'global'"]


def test_attributes_of_an_operator_are_kept(modules):
    assert extract(modules.EveryKind)["turned"].attributes == (("axes", "(1, 0)"),)
    assert extract(modules.EveryKind)["inner"].attributes == (("index", "1"),)


def test_a_number_used_in_a_size_is_an_edge_beside_the_literal(modules):
    graph = extract(modules.SizeAsArgument)
    assert graph["zeros"].literals == (Literal((0,), "(2, n, n * 2)"),)
    assert uses(graph, "zeros") == [("n", (0, 0))]
    assert graph["more"].literals == (Literal((0,), "n * 2"),)
    assert uses(graph, "more") == [("n", (0, 0))]
    assert uses(graph, "both") == [("more", (0,)), ("n", (1,))]


def test_branches_and_inner_functions_are_regions_with_nodes_of_their_own(modules):
    graph = extract(modules.EveryKind)
    regions = {str(node.id): graph.regions[node.region] for node in graph.nodes[-3:-1]}
    blocks = {name: graph.regions[region.parent] for name, region in regions.items()}
    assert {name: (r.kind, r.name, r.owner) for name, r in blocks.items()} == {
        "chosen_then": (RegionKind.BRANCH, "then", "chosen"),
        "chosen_else": (RegionKind.BRANCH, "else", "chosen"),
    }


def test_a_function_inside_uses_what_it_takes_from_outside(modules):
    graph = extract(modules.Closure)
    assert graph["inner"].kind is NodeKind.FUNCTION
    assert [(e.source, e.target, e.position) for e in graph.edges] == [
        ("a", "b", (0,)),
        ("y", "b", (1,)),
        ("b", "inner", (0,)),
        ("inner", "z", ()),
        ("x", "z", (0,)),
    ]


def test_a_prim_func_that_writes_two_tensors_gives_a_tuple(modules):
    graph = extract(modules.TwoOutputs)
    assert graph["both"].type_label == "Tuple[Tensor[(4,)], Tensor[(4,), int32]]"
    assert graph.outputs == ("a", "b")


# --- functions and names -----------------------------------------------------------------------


def test_each_function_of_a_module_is_its_own_graph(modules):
    first = extract(modules.TwoFunctions, "first")
    second = extract(modules.TwoFunctions, "second")
    assert [n.callee for n in first.nodes] == ["", "relax.add", "relax.print", "relax.multiply"]
    assert [n.callee for n in second.nodes] == ["", "relax.subtract", "env.f"]
    assert second["z"].kind is NodeKind.CALL_PACKED
    assert second["z"].operator == "relax.call_pure_packed"


def test_a_name_that_comes_again_gets_a_number(modules):
    graph = extract(modules.chain("x", "y", "y", "x", "y"))
    assert [str(node.id) for node in graph.nodes] == ["x", "y", "y#2", "x#2", "y#3"]
    assert [str(node.name) for node in graph.nodes] == ["x", "y", "y", "x", "y"]


def test_the_sizes_of_a_symbolic_function_have_their_names(modules):
    graph = extract(modules.Symbolic)
    labels = {str(node.id): node.type_label for node in graph.nodes}
    assert labels == {
        "x": "Tensor[(n, m), float16]",
        "s": "Shape[(n,)]",
        "flat": "Tensor[(n * m,), float16]",
        "wide": "Tensor[(n * m * 2,), float16]",
    }


@pytest.mark.parametrize(
    ("mod", "name", "words"),
    [
        (MyModule, "nowhere", "no function 'nowhere'; its Relax functions are 'main': give one"),
        (
            tvm.IRModule({tvm.ir.GlobalVar("relu0"): MyModule["relu0"]}),
            "main",
            "it has only the PrimFuncs 'relu0': look at one of these, as by session.select_",
        ),
        (
            tvm.IRModule({tvm.ir.GlobalVar("f"): relax.ExternFunc("f")}),
            "f",
            "'f' is an ExternFunc, not a Relax function; the module has none: give an IRModule",
        ),
        (tvm.IRModule(), "main", "it is empty: give an IRModule with an @R.function"),
    ],
)
def test_a_function_that_is_not_there_is_named_with_those_that_are(mod, name, words):
    with pytest.raises(NoFunctionError, match=re.escape(words)):
        extract(mod, name)


# --- nothing dropped ---------------------------------------------------------------------------


@visitor
class Leaves(PyExprVisitor):
    """TVM's own walk over an expression: every variable and constant, at each of its uses."""

    def __init__(self):
        super().__init__()
        self.found = []

    def visit_var_(self, op):
        self.found.append(op)

    def visit_dataflow_var_(self, op):
        self.found.append(op)

    def visit_generic_const_(self, op):
        self.found.append(op)


def leaves(value):
    walk = Leaves()
    walk.visit_expr(value)
    return walk.found


@given(data=st.data())
def test_every_use_is_an_edge_in_the_order_of_the_call_and_there_is_no_other(modules, data):
    mod = data.draw(modules.programs())
    graph = extract(mod)
    function = mod["main"]
    bound = [b for block in function.body.blocks for b in block.bindings]
    nodes = [node for node in graph.nodes if node.kind is not NodeKind.CONSTANT]
    assert len(nodes) == len(function.params) + len(bound)
    assert len({node.id for node in graph.nodes}) == len(graph.nodes)
    id_of = dict(zip([*function.params, *(b.var for b in bound)], nodes, strict=True))
    assert [node.name for node in nodes] == [var.name for var in id_of]
    constants = {}
    for binding in bound:
        node = id_of[binding.var]
        entering = uses(graph, node.id)
        found = leaves(binding.value)
        tensors = [x for x in found if isinstance(x, ir.Var) or x.value.shape != ()]
        scalars = [x for x in found if not isinstance(x, ir.Var) and x.value.shape == ()]
        assert len(entering) == len(tensors)
        for (source, _), leaf in zip(entering, tensors, strict=True):
            if isinstance(leaf, ir.Var):
                assert source == id_of[leaf].id
            else:
                assert graph[source].kind is NodeKind.CONSTANT
                assert constants.setdefault(leaf, source) == source
        assert [lit.text for lit in node.literals].count("3.0") == len(scalars)
        free = {id_of[var].id for var in relax.analysis.free_vars(binding.value)}
        assert {s for s, _ in entering if graph[s].kind is not NodeKind.CONSTANT} == free
        positions = [position for _, position in entering]
        assert positions == sorted(set(positions))
    returned = leaves(function.body.body)
    assert len(graph.outputs) == len(returned)
    for output, leaf in zip(graph.outputs, returned, strict=True):
        is_same = isinstance(leaf, ir.Var) and output == id_of[leaf].id
        assert is_same or graph[output].kind is NodeKind.CONSTANT


@settings(max_examples=30)
@given(data=st.data())
def test_reading_twice_gives_the_same(modules, data):
    mod = data.draw(modules.programs())
    assert extract(mod) == extract(mod)

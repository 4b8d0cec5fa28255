"""The line of a node is the line that binds it."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm.script import from_source

from irviz.course.mlp import MODULES, MyModuleStatic
from irviz.ir.function_graph import extract
from irviz.ir.module_functions import relax_functions
from irviz.ir.tvmscript import block_lines, prim_func_script, script
from irviz.model.graph.graph import NodeKind


@pytest.mark.parametrize("name", MODULES)
def test_a_line_begins_with_the_name_it_binds(name):
    printed = script(MODULES[name])
    for node in extract(MODULES[name]).nodes:
        line = printed.line(printed.lines["main", node.id])
        if node.kind is NodeKind.PARAM:
            assert line.startswith("def main(")
        else:
            assert line.startswith((f"{node.name} = ", f"{node.name}: "))


def test_every_kind_of_binding_has_its_line(modules):
    printed = script(modules.EveryKind)
    found = {
        node_id: printed.line(number)
        for (function, node_id), number in printed.lines.items()
        if function == "main"
    }
    starts = {
        "x": "def main(x",
        "c": "def main(x",
        "tir": "tir = R.call_tir(cls.double",
        "named": 'named = R.call_dps_packed("double"',
        "scaled": "scaled: R.Tensor((2, 2), dtype=",
        "packed": "packed: R.Tuple(",
        "first": "first: R.Tensor((2, 2), dtype=",
        "called": "called: R.Tensor((2, 2), dtype=",
        "cast": "cast: R.Tensor((n, 2), dtype=",
        "alias": "alias: R.Tensor((n, 2), dtype=",
        "chosen": "if c:",
    }
    for node_id, start in starts.items():
        assert found[node_id].startswith(start), node_id


def test_two_functions_have_lines_of_their_own(modules):
    printed = script(modules.TwoFunctions)
    of_first, of_second = (printed.lines[name, "y"] for name in ("first", "second"))
    assert "R.add(x, x)" in printed.line(of_first)
    assert "R.subtract(x, x)" in printed.line(of_second)
    assert printed.lines["first", "x"] == printed.functions["first"]
    assert "def second(" in printed.line(printed.lines["second", "x"])


def test_text_that_looks_like_a_mark_is_left_alone(modules):
    printed = script(modules.TwoFunctions)
    assert 'format=R.str("{}  # irviz:0")' in printed.line(printed.lines["first", "said"])
    assert 'R.str("  # irviz:1")' in printed.line(printed.lines["second", "z"])


def test_repeated_names_have_lines_of_their_own(modules):
    printed = script(modules.chain("x", "y", "y", "y"))
    numbers = [printed.lines["main", node_id] for node_id in ("y", "y#2", "y#3")]
    assert numbers == list(range(numbers[0], numbers[0] + 3))
    assert [printed.line(n).partition(" = ")[2] for n in numbers] == [
        "R.add(x, x)",
        "R.add(y, y)",
        "R.add(y_1, y_1)",
    ]


@pytest.mark.parametrize("name", ["a.b", "a b", "漢字", "if", "main-2", ""])
def test_parameters_have_a_line_whatever_the_function_is_called(modules, name):
    printed = script(modules.chain("x", "y", function=name))
    assert printed.lines[name, "x"] == printed.functions[name]
    assert printed.lines[name, "y"] > printed.lines[name, "x"]


def test_a_function_inside_of_another_has_no_line_and_does_no_harm(modules, capfd):
    printed = script(modules.Closure)
    assert ("main", "inner") not in printed.lines
    assert "inner(x)" in printed.line(printed.lines["main", "z"])
    assert capfd.readouterr().err == ""  # TVM warns when it is asked to mark one


@settings(max_examples=30)
@given(data=st.data())
def test_the_text_is_tvms_own_and_its_lines_are_in_the_order_of_the_bindings(modules, data):
    mod = data.draw(modules.programs())
    printed = script(mod)
    assert printed.text.rstrip("\n") == mod.script().rstrip("\n")
    graph = extract(mod)
    bound = [n for n in graph.nodes if n.kind not in (NodeKind.PARAM, NodeKind.CONSTANT)]
    numbers = [printed.lines["main", node.id] for node in bound]
    assert numbers == sorted(set(numbers))
    signs = {
        NodeKind.CALL_TIR: "R.call_tir(",
        NodeKind.CALL_DPS_PACKED: "R.call_dps_packed(",
        NodeKind.MATCH_CAST: "R.match_cast(",
    }
    for node, number in zip(bound, numbers, strict=True):
        value = printed.line(number).partition(" = ")[2]
        operator = f"R.{node.callee.removeprefix('relax.')}("
        sign = operator if node.kind is NodeKind.OPERATOR else signs.get(node.kind, "")
        assert value.startswith(sign)


@pytest.mark.parametrize("name", ["EveryKind", "Closure", "TwoFunctions", "SizeAsArgument"])
def test_the_text_is_tvms_own_where_statements_have_more_lines_than_one(modules, name):
    mod = getattr(modules, name)
    assert script(mod).text.rstrip("\n") == mod.script().rstrip("\n")


def test_every_function_of_the_module_has_a_line(modules):
    printed = script(modules.EveryKind)
    assert set(printed.functions) == {"double", "main", "twice"}
    assert set(relax_functions(modules.EveryKind)) <= set(printed.functions)
    for name, number in printed.functions.items():
        assert printed.line(number).startswith(f"def {name}(")


def test_a_prim_func_is_printed_by_itself():
    text = prim_func_script(MyModuleStatic, "relu0")
    assert text.startswith("@T.prim_func(")
    assert "def relu0(" in text
    assert "import" not in text


@pytest.mark.parametrize("name", ["main", "nowhere", ""])
def test_what_is_no_prim_func_has_no_text(name):
    assert prim_func_script(MyModuleStatic, name) == ""


@pytest.mark.parametrize("name", ["linear0", "relu0"])
def test_a_block_of_a_prim_func_has_the_line_that_opens_it(name):
    printed = script(MyModuleStatic)
    graph = extract(MyModuleStatic, name)
    lines = block_lines(printed, graph)
    assert lines.keys() == {node.id for node in graph.nodes}
    for node in graph.nodes:
        start = f"def {name}(" if node.kind is NodeKind.PARAM else f'with T.sblock("{node.id}"):'
        assert printed.line(lines[node.id]).startswith(start)


def test_only_innermost_blocks_are_nodes_and_have_lines():
    outer = """
        for i in range(4):
            with T.sblock("outer"):
                vi = T.axis.spatial(4, i)
                T.reads(A[vi])
                T.writes(B[vi])
                for j in range(2):
                    with T.sblock("inner"):
                        vj = T.axis.spatial(2, j)
                        T.reads(A[vi])
                        T.writes(B[vi])
                        B[vi] = A[vi]
        for i in range(4):
            with T.sblock("inner"):
                vi = T.axis.spatial(4, i)
                T.reads(B[vi])
                T.writes(C[vi])
                C[vi] = B[vi]
"""
    mod = from_source(
        "@I.ir_module\nclass Module:\n    @T.prim_func(s_tir=True)\n"
        '    def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), '
        f'C: T.Buffer((4,), "float32")):{outer}'
    )
    printed, graph = script(mod), extract(mod, "f")
    lines = block_lines(printed, graph)
    opened = [printed.line(lines[node.id]) for node in graph.nodes if node.kind is NodeKind.BLOCK]
    assert opened == ['with T.sblock("inner"):'] * 2
    assert lines["inner"] < lines["inner#2"]


def test_a_relax_function_and_an_unknown_one_have_no_blocks():
    printed = script(MyModuleStatic)
    assert block_lines(printed, extract(MyModuleStatic)) == {}
    graph = extract(MyModuleStatic, "relu0")
    assert block_lines(printed, replace(graph, function="gone")) == {}

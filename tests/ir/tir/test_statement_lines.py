# ruff: noqa: N803, N806, N812
"""A statement that is neither loop nor block is a line of TVMScript; PrimFuncs of every form."""

import pytest
from tvm import ir, s_tir, tirx
from tvm.script import tirx as T

from irviz.ir.loop_nest_reader import MAX_NESTING, loop_nest
from irviz.model.loop_nest import AxisKind, Block, Buffer, BufferRegion, Loop, Scalar
from irviz.model.loop_nest import Statement as Line


def every(nodes, kind=object):
    """Return all nodes of a kind, in the order of the text."""
    found = []
    for node in nodes:
        found += [node] if isinstance(node, kind) else []
        found += every(node.children, kind)
    return found


@T.prim_func(s_tir=True)
def mixed(h: T.handle, k: T.int32, Y: T.Buffer((16,), "float32")):
    m = T.int64()
    X = T.match_buffer(h, (m,), "float32")
    for i in T.serial(2, 6):
        with T.sblock("outer"):
            v = T.axis.opaque(16, i)
            t = T.sblock_alloc_buffer((4,), "int8", scope="local")
            view = T.match_buffer(Y[v : v + 1], (1,), offset_factor=1)
            view[0] = X[v] + T.cast(t[0], "float32")
    while Y[0] < T.float32(2):
        Y[0] = Y[0] + T.float32(1)
    if k < 2:
        for i in range(0, 16, 4):
            Y[i] = T.float32(0)
    else:
        while k > 3:
            T.evaluate(T.call_extern("int32", "<f>", k))
    with T.attr(0, "pragma_x", 1):
        Y[1] = T.float32(4)
    assert k > 0, "k is too small"


def test_what_is_neither_loop_nor_block_is_a_line_of_tvmscript():
    nest = loop_nest(mixed, "mixed")
    assert nest.parameters[1] == Scalar("k", "int32")
    lines = [line.text for line in every(nest.body, Line)]
    assert lines == [
        *('view[0] = X[v] + T.Cast("float32", t[0])', "while Y[0] < T.float32(2.0):"),
        *("Y[0] = Y[0] + T.float32(1.0)", "if k < 2:", "Y[i] = T.float32(0.0)", "else:"),
        *("while k > 3:", 'T.call_extern("int32", "<f>", k)', 'with T.attr({"pragma_x": 1}):'),
        *("Y[1] = T.float32(4.0)", 'assert k > 0, ("RuntimeError", ["k is too small"])'),
    ]
    first, second = every(nest.body, Loop)
    assert (first.start, first.extent, first.axes) == ("2", "4", (AxisKind.OPAQUE,))
    assert (second.extent, second.step) == ("16", "4")
    (block,) = every(nest.body, Block)
    assert block.temporaries == nest.temporaries == (Buffer("t", "(4,)", "int8", "local"),)
    assert (block.matches[0].buffer.name, block.matches[0].source) == (
        "view",
        BufferRegion("Y", "v"),
    )


@T.prim_func
def device(X: T.Buffer((16,), "float32"), Y: T.Buffer((16,), "float32")):
    T.device_entry()
    _bx = T.cta_id([4])
    tx = T.thread_id([32])
    staged = T.alloc_buffer((16,), "float32", scope="shared")
    T.tile.copy(staged[0:16], X[0:16])
    Y[tx] = staged[tx]


def test_a_function_that_is_not_made_for_schedules_has_lines_and_temporaries():
    nest = loop_nest(device, "device")
    lines = [line.text for line in every(nest.body, Line)]
    assert lines[1:3] == ["_bx = T.cta_id([4])", "tx = T.thread_id([32])"]
    assert lines[-2:] == ["T.tile.copy(staged[0:16], X[0:16])", "Y[tx] = staged[tx]"]
    assert list(map(str, nest.temporaries)) == ["staged: (16,) float32 shared"]


def nested(levels):
    buffer = tirx.decl_buffer((4,), name="Y")
    stmt = tirx.BufferStore(buffer, 1.0, [0])
    for _ in range(levels):
        stmt = tirx.For(tirx.Var("i", "int32"), 0, 2, tirx.ForKind.SERIAL, stmt)
    return tirx.PrimFunc([buffer], stmt)


@pytest.mark.parametrize("levels", [MAX_NESTING - 1, MAX_NESTING, MAX_NESTING + 1, 400, 2500])
def test_what_nests_too_deeply_is_counted(levels):
    nodes = every(loop_nest(nested(levels), "f").body)
    assert len(nodes) == min(levels, MAX_NESTING) + 1
    (line,) = every(nodes[:1], Line)
    if levels <= MAX_NESTING:
        assert line.text == "Y[0] = T.float32(1.0)"
    else:
        assert f"({levels - MAX_NESTING} more inside" in line.text
        # TVM's printer would end the process on the deepest
        assert line.text.startswith("for i_64 in range(2):" if levels < 500 else "For")


def test_a_block_alone_and_a_statement_in_two_places():
    buffer, i = tirx.decl_buffer((16,), name="Y"), tirx.Var("i", "int32")
    store = tirx.BufferStore(buffer, 1.0, [i])
    axes = [tirx.IterVar(ir.Range(2, 8), "v", kind) for kind in (0, 2, 3, 4)]
    alone = s_tir.SBlock(axes, [], [], "alone", store)
    loop = tirx.For(i, 0, 4, tirx.ForKind.SERIAL, store)
    nest = loop_nest(tirx.PrimFunc([buffer], tirx.SeqStmt([loop, store, alone])), "f")
    assert [line.text for line in every(nest.body, Line)] == ["Y[i] = T.float32(1.0)"] * 3
    kinds = [(axis.name, axis.kind.value, axis.start, axis.binding) for axis in nest.body[2].axes]
    assert kinds == [
        *(("v", "spatial", "2", ""), ("v_1", "reduction", "2", "")),
        *(("v_2", "ordered", "2", ""), ("v_3", "opaque", "2", "")),
    ]


def test_text_that_tvm_keeps_apart_leaves_an_expression_whole():
    call = tirx.call_extern("int32", "two\nlines")
    axis = tirx.IterVar(ir.Range(0, 8), "v", tirx.IterVar.DataPar)
    block = s_tir.SBlock([axis], [], [], "b", tirx.Evaluate(0))
    nest = loop_nest(tirx.PrimFunc([], s_tir.SBlockRealize([call], True, block)), "f")
    assert nest.body[0].axes[0].binding.startswith('T.call_extern("int32", ')

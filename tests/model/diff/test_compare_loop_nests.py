"""What became of the blocks of a loop nest, in time in proportion to its size."""

from irviz.model.diff.canonical_names import Renaming
from irviz.model.diff.compare_loop_nests import diff_loop_nests
from irviz.model.diff.diff_result import Aspect, ChangeKind
from irviz.model.loop_nest import Block, Buffer, BufferRegion, LoopNest, Statement

BODY = (Statement("x"),)


def nest(count):
    buffers = tuple(Buffer(f"B{index}", "(8,)", "float32") for index in range(count))
    blocks = tuple(
        Block(f"b{index}", (), (), (BufferRegion(one.name, "0"),), BODY, id=f"b{index}")
        for index, one in enumerate(buffers)
    )
    return LoopNest("f", buffers, (), blocks)


def test_twice_the_blocks_take_twice_the_comparisons(monkeypatch):
    counts = []
    compare = Renaming.is_equal

    def counted(self, before, after):
        counts[-1] += 1
        return compare(self, before, after)

    monkeypatch.setattr(Renaming, "is_equal", counted)
    for count in (20, 40):
        counts.append(0)
        diff = diff_loop_nests(nest(count), nest(count))
        assert [one.change for one in diff.blocks] == [ChangeKind.SAME] * count
    assert counts[1] == 2 * counts[0]


def test_a_reduction_that_is_gone_was_not_inlined():
    writes = (BufferRegion("B0", "0"),)
    for init, change in (((), ChangeKind.INLINED), (BODY, ChangeKind.REMOVED)):
        block = Block("gone", (), (), writes, BODY, init, id="gone")
        other = Block("other", (), (), (BufferRegion("C", "0"),), BODY, id="other")
        diff = diff_loop_nests(
            LoopNest("f", (), (), (block, other)), LoopNest("f", (), (), (other,))
        )
        assert {one.name: one.change for one in diff.blocks}["gone"] is change


def test_of_many_statements_that_are_written_alike_only_the_new_ones_differ():
    def statements(texts):
        body = tuple(Statement(text, (), f"seq[{at}]") for at, text in enumerate(texts))
        return LoopNest("f", (), (), body)

    alike = ["A[0] = 0"] * 150
    found = diff_loop_nests(statements(alike * 2), statements([*alike, "B[0] = 1", *alike]))
    assert list(map(str, found.statements)) == ["statement: none → B[0] = 1"]
    moved = diff_loop_nests(statements([*alike, "B[0] = 1"]), statements(["B[0] = 1", *alike]))
    assert [one.aspect for one in moved.statements] == [Aspect.ORDER]


def test_another_order_of_the_parameters_is_counted_with_what_differs():
    params = Buffer("A", "(4,)", "float32"), Buffer("B", "(4,)", "float32")
    body = (Statement("A[0] = B[0]"),)
    found = diff_loop_nests(LoopNest("f", params, (), body), LoopNest("f", params[::-1], (), body))
    assert found.differs
    assert found.summary == "1 parameter reordered"

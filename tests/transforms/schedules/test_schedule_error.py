"""An illegal step is told in TVM's words, with the loops and blocks that it means."""

import cloudpickle
import pytest
from tvm import s_tir

from irviz.course.mm_relu import MyModule
from irviz.errors import TransformError
from irviz.ir.loop_nest_reader import loop_nest
from irviz.model.loop_nest import (
    Block,
    BlockAddress,
    Loop,
    LoopAddress,
    innermost_node,
    schedule_addresses,
    walk,
)
from irviz.transforms.apply_transform import apply_transform
from irviz.transforms.schedules.schedule_step import (
    IllegalStepError,
    access_paths,
    explanation,
    illegal_step,
    schedule_step,
)
from irviz.transforms.stage import Stage

GIVEN = Stage("0", MyModule)
NEST = loop_nest(MyModule["mm_relu"], "mm_relu")
Y, C = LoopAddress("Y", 0), LoopAddress("C", 0)


def refusal(name, *arguments, function="mm_relu", **named):
    """Return the error of a step that TVM refuses."""
    with pytest.raises(IllegalStepError) as refused:
        apply_transform(
            GIVEN, schedule_step(function, name, *arguments, **named), "1", isolate=False
        )
    return refused.value


def meant(error):
    """Return the names of the nodes that an error means."""
    by_id = {node.id: node for node in walk(NEST)}
    found = [by_id[innermost_node(NEST, path)] for path in error.paths]
    return [one.variable if isinstance(one, Loop) else one.name for one in found]


def test_tvms_sentence_comes_first_and_names_loops_and_blocks_as_the_reader_knows_them():
    error = refusal("fuse", Y, LoopAddress("Y", 2))
    assert str(error) == (
        'sch.fuse(sch.get_loops("Y")[0], sch.get_loops("Y")[2]) is not legal here: The loops '
        "can't be fused because the outer loop 'i' is not the parent of the inner loop 'k'"
    )
    assert meant(error) == ["k", "i"]


def test_all_that_tvm_said_is_kept_with_the_place_underlined():
    error = refusal("parallel", LoopAddress("Y", 2))
    assert "^^^^" in error.details
    assert 'Error message: The "parallel" cannot be fulfilled' in error.details
    assert "'Y'" in error.words
    assert "SBlock#0" not in error.words


@pytest.mark.parametrize(
    ("error", "names"),
    [
        (lambda: refusal("parallel", LoopAddress("Y", 2)), ["Y"]),
        (lambda: refusal("compute_at", BlockAddress("Y"), LoopAddress("Y", 2)), ["Y", "k"]),
        (lambda: refusal("compute_inline", BlockAddress("C")), ["C"]),
        (lambda: refusal("reorder", Y, C), []),
    ],
)
def test_the_ways_that_tvm_tells_lead_to_the_nodes_it_means(error, names):
    assert meant(error()) == names


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            lambda: refusal("unroll", LoopAddress("Y", 3)),
            "block 'Y' has 3 loops around it and no loop 3",
        ),
        (lambda: refusal("unroll", LoopAddress("Y", -1)), "and no loop -1: give 0 to 2"),
        (lambda: refusal("unroll", LoopAddress("root", 0)), "has 0 loops around it and no loop 0"),
        (lambda: refusal("compute_inline", "Z"), "no block 'Z'; there are 'root', 'Y', 'C'"),
        (lambda: refusal("unroll", Y, function="f"), "no PrimFunc 'f' to schedule; there are"),
        (lambda: refusal("split", Y, "ab"), '"factors" has wrong type. Expected "list"'),
        (lambda: refusal("bind", Y, "nothing"), "Unknown threadscope nothing"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(error, words):
    assert words in str(error())
    assert error().paths == ()


def test_an_illegal_step_is_a_refusal_that_can_be_sent():
    error = cloudpickle.loads(cloudpickle.dumps(refusal("parallel", LoopAddress("Y", 2))))
    assert isinstance(error, TransformError)
    assert error.paths == ("body.block.body.seq[0].body.body.body.block",)
    assert str(error).startswith("sch.parallel(")


def test_marks_are_told_apart_up_to_the_last_digit():
    said = (
        "# tirx.For#1\n  for i in range(4):\n# tirx.For#10\n  for j in T.parallel(4):\n"
        '# s_tir.SBlock#2\n  with T.sblock("a\\"b"):\n'
        "Error message: tirx.For#10 in tirx.For#1 of s_tir.SBlock#2, not tirx.For#3"
    )
    assert explanation(said) == "'j' in 'i' of 'a\"b', not tirx.For#3"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('<root>.functions[I.GlobalVar("f")].body.block.body.seq[1]', ("body.block.body.seq[1]",)),
        ('<root>.functions[I.GlobalVar("f")].body.__class__.seq[1]', ("body",)),
        ('<root>.functions[I.GlobalVar("f")].body[__import__("os")]', ("body",)),
        ('<root>.functions[I.GlobalVar("g")].body', ()),
        ('<root>.functions[I.GlobalVar("f")]', ()),
        ("<root>.functions[I.GlobalVar(f())].body", ()),
        ("<root>.attrs", ()),
        ("body", ()),
    ],
)
def test_a_way_is_read_as_far_as_it_is_one(line, found):
    assert access_paths(f"said\nAccess path: {line}\n", "f") == found


def test_what_a_module_prints_is_no_way():
    said = 'x\n@I.ir_module\nAccess path: <root>.functions[I.GlobalVar("f")].body\n'
    assert access_paths(said, "f") == ()


def test_a_failure_without_words_has_its_name():
    assert str(illegal_step("sch.x()", "f", KeyError())) == "sch.x() is not legal here: KeyError"


def statement_at(function, way):
    """Follow a way from a PrimFunc, step by step."""
    here = function
    for step in way.replace("[", ".[").split("."):
        here = here[int(step[1:-1])] if step.startswith("[") else getattr(here, step)
    return here


def test_ids_are_the_ways_that_tvm_knows():
    sch = s_tir.Schedule(MyModule)
    sch.work_on("mm_relu")
    sch.blockize(sch.get_loops("Y")[1])
    sch.cache_read("C", 0, "local")
    function = sch.mod["mm_relu"]
    nest = loop_nest(function, "mm_relu")
    seen = set()
    for node in walk(nest):
        stmt = statement_at(function, node.id)
        if isinstance(node, Loop):
            assert node.variable.startswith(stmt.loop_var.name)
        elif isinstance(node, Block):
            assert stmt.block.name_hint == node.name
        seen.add(node.id)
    assert len(seen) == sum(1 for _ in walk(nest)) > 10


def test_a_loop_is_addressed_by_a_block_right_under_it():
    sch = s_tir.Schedule(MyModule)
    sch.work_on("mm_relu")
    sch.blockize(sch.get_loops("Y")[1])
    function = sch.mod["mm_relu"]
    nest = loop_nest(function, "mm_relu")
    for node_id, address in schedule_addresses(nest).items():
        stmt = statement_at(function, node_id)
        if isinstance(address, LoopAddress):
            found = sch.get(sch.get_loops(address.block)[address.depth])
            assert found.same_as(stmt)
        else:
            assert sch.get(sch.get_sblock(address.name)).same_as(stmt.block)
    in_reach = {node.id for node in walk(nest) if not isinstance(node, Loop | Block)}
    assert not in_reach & schedule_addresses(nest).keys()

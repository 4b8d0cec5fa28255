"""The exercises of notebooks/tensor_program.ipynb."""

from __future__ import annotations

from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any, NamedTuple

import numpy as np
from tvm import ir, s_tir, tirx

from irviz.course.check.answers import (
    WrongAnswerError,
    call_answer,
    exercise,
    expect_close,
    random_arrays,
)
from irviz.course.te_functions import batch_matmul_relu
from irviz.ir.statements import used_vars, walk_statements
from irviz.session.session import Session


@exercise(
    "Whole rows",
    "A schedule of mm_relu with three loops around block Y, from outside to inside i, k, j.",
)
def loop_order(answer: Callable[..., Any]) -> str:
    """Check a schedule of mm_relu that reorders the loops of block Y."""
    sums = _sums(
        _schedule(answer, resolve_name("irviz.course.mm_relu:MyModule")["mm_relu"], (128, 128))
    )
    order = [axis for loop in sums.loops for axis in loop.axes]
    if order != ["vi", "vk", "vj"]:
        raise WrongAnswerError(
            f"From outside to inside, the loops of Y run over {', '.join(order)}.",
            "get_loops(block) has the loops i, j and k; reorder takes them as they are to be.",
        )
    return "The loops are i, k, j: B and Y are walked through row by row. The result is equal."


@exercise(
    "A batch",
    "A schedule in which the loop over batches is parallel and has the ReLU inside, the innermost "
    "loop of matmul is vectorized, and the sums are set to 0 in a block of their own.",
)
def batch_schedule(answer: Callable[..., Any]) -> str:
    """Check a schedule of a batch of matrix products with a ReLU."""
    scheduled = _schedule(answer, batch_matmul_relu(), (4, 32, 32))
    sums = _sums(scheduled)
    outer, inner = sums.loops[0], sums.loops[-1]
    kinds = ", ".join(
        f"{loop.statement.loop_var.name} {tirx.ForKind(loop.statement.kind).name.lower()}"
        for loop in sums.loops
    )
    for is_done, given, hint in (
        (
            outer.statement.kind == tirx.ForKind.PARALLEL and "v_n" in outer.axes,
            f"The loops of matmul are {kinds}.",
            "parallel takes the outermost loop, before decompose_reduction.",
        ),
        (
            inner.statement.kind == tirx.ForKind.VECTORIZED,
            f"The loops of matmul are {kinds}.",
            "The innermost loop must not be the sum: reorder first, then vectorize.",
        ),
        (
            sums.block.init is None,
            "The sums are still set to 0 within the loop that adds to them.",
            "decompose_reduction(block, loop) puts that before a loop.",
        ),
        (
            _loops(scheduled, "relu")[:1] == [outer.statement],
            "The ReLU is not inside of the loop over the batches.",
            "reverse_compute_at(block, loop) moves a block to where its input is made.",
        ),
    ):
        if not is_done:
            raise WrongAnswerError(given, hint)
    return f"The loops of matmul are {kinds}, with the ReLU inside. The result is equal."


class _Loop(NamedTuple):
    """A loop, and the names of the block's axes that it runs over."""

    statement: tirx.For
    axes: tuple[str, ...]


class _Sums(NamedTuple):
    """The block with a reduction axis, and the loops around it, from outside."""

    block: s_tir.SBlock
    loops: tuple[_Loop, ...]


def _schedule(
    answer: Callable[..., Any], prim_func: tirx.PrimFunc, shape: tuple[int, ...]
) -> tirx.PrimFunc:
    """Return the function as the answer schedules it; it has to compute max(A @ B, 0)."""
    arrays = random_arrays(0, A=shape, B=shape)
    session = Session(ir.IRModule({"program": prim_func}), inputs=arrays)
    session = call_answer(session.schedule, "program", answer)
    if len(session.stages) == 1:
        raise WrongAnswerError(
            "The program is as it was: no primitive was called.",
            "A schedule calls primitives of sch, such as sch.reorder(…); it returns nothing.",
        )
    expect_close(
        session.run().outputs[0][0],
        np.maximum(arrays["A"] @ arrays["B"], 0),
        "The scheduled program",
        "Take out the primitives one by one: which of them changes the result?",
    )
    scheduled: tirx.PrimFunc = session.current.module["program"]
    return scheduled


def _sums(prim_func: tirx.PrimFunc) -> _Sums:
    found = [
        stmt
        for stmt, _ in walk_statements(prim_func.body)
        if isinstance(stmt, s_tir.SBlockRealize)
        and any(axis.iter_type == tirx.IterVar.CommReduce for axis in stmt.block.iter_vars)
    ]
    if len(found) != 1:
        raise WrongAnswerError(
            f"There are {len(found)} blocks that add to a sum.",
            "Leave the sums in one block: rfactor is not needed here.",
        )
    (realize,) = found
    loops = []
    for loop in _loops(prim_func, realize.block.name_hint):
        axes = zip(realize.block.iter_vars, realize.iter_values, strict=True)
        over = (axis.var.name for axis, value in axes if loop.loop_var in used_vars(value))
        loops.append(_Loop(loop, tuple(over)))
    return _Sums(realize.block, tuple(loops))


def _loops(prim_func: tirx.PrimFunc, block: str) -> list[tirx.For]:
    schedule = s_tir.Schedule(prim_func)
    return [schedule.get(loop) for loop in schedule.get_loops(schedule.get_sblock(block))]

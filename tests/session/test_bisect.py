"""A bisection finds the pass that first makes a module compute something else, or worse."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import IRModule, relax
from tvm.relax.dpl import is_op, rewrite_call, wildcard

import irviz
from irviz.course.mlp import MyModuleHighLevel
from irviz.errors import CancelledRunError, InputError, StageError

pytestmark = [pytest.mark.worker, pytest.mark.build]

NEUTRAL = ["Normalize", "CanonicalizeBindings", "LegalizeOps", "EliminateCommonSubexpr"]


def with_main(mod: IRModule, main: relax.Function) -> IRModule:
    mod.update_func(mod.get_global_var("main"), main)
    return mod


def wrong_rewrite(mod: IRModule) -> IRModule:
    operand = wildcard()
    pattern = is_op("relax.nn.relu")(operand)
    return with_main(
        mod, rewrite_call(pattern, lambda _, found: relax.op.abs(found[operand]), mod["main"])
    )


def swapped_operands(mod: IRModule) -> IRModule:
    left, right = wildcard(), wildcard()
    pattern = is_op("relax.add")(left, right)
    return with_main(
        mod,
        rewrite_call(
            pattern, lambda _, found: relax.op.subtract(found[right], found[left]), mod["main"]
        ),
    )


def wrong_constant(mod: IRModule) -> IRModule:
    operand, half = wildcard(), relax.const(0.5, "float32")
    pattern = is_op("relax.nn.relu")(operand)
    return with_main(
        mod,
        rewrite_call(
            pattern,
            lambda _, found: relax.op.maximum(found[operand], half),
            mod["main"],
        ),
    )


def crashes(_: IRModule) -> IRModule:
    os._exit(3)


def hangs(_: IRModule) -> IRModule:
    while True:
        time.sleep(1)


def raises(_: IRModule) -> IRModule:
    raise ValueError("no such layout")


def ill_formed(mod: IRModule) -> IRModule:
    main = mod["main"]
    body = relax.SeqExpr(main.body.blocks, relax.Var("stray", main.ret_ty))
    return with_main(mod, relax.Function(main.params, body, main.ret_ty))


@pytest.mark.parametrize(
    ("planted", "words"),
    [
        (wrong_rewrite, "different"),
        (swapped_operands, "different"),
        (wrong_constant, "different"),
        (crashes, "exit code 3"),
        (hangs, "longer than"),
        (raises, "no such layout"),
        (ill_formed, "stray"),
    ],
)
def test_the_pass_that_is_to_blame_is_found_wherever_it_stands(
    planted: Callable[[IRModule], IRModule], words: str
) -> None:
    place = len(planted.__name__) % 2  # before LegalizeOps: the rewrites look for its operators
    passes = [*NEUTRAL[:2], *NEUTRAL[:place], planted, *NEUTRAL]
    seconds = 3 if planted is hangs else 30
    found = irviz.bisect(MyModuleHighLevel, passes, seconds=seconds)
    assert found.stage is not None
    assert (found.stage.label, found.stage.id) == (planted.__name__, str(passes.index(planted) + 1))
    assert words in found.words


def test_what_a_later_pass_hides_is_found_as_well() -> None:
    def undo(_: IRModule) -> IRModule:
        return MyModuleHighLevel

    found = irviz.bisect(MyModuleHighLevel, ["Normalize", wrong_rewrite, undo])
    assert found.stage is not None
    assert found.stage.label == "wrong_rewrite"
    assert found.is_exhaustive


def test_where_all_holds_there_is_no_pass_and_every_stage_that_changed_was_checked() -> None:
    found = irviz.bisect(MyModuleHighLevel, ["LegalizeOps", "Normalize", "ToNonDataflow"])
    assert found.stage is None
    assert [one.id for one in found.checked] == ["0", "1", "3"]
    with pytest.raises(StageError, match="no pass makes the check fail"):
        found.diff()


def test_few_of_many_stages_are_run() -> None:
    changing = ["ToNonDataflow", "ConvertToDataflow"] * 4
    found = irviz.bisect(MyModuleHighLevel, [*changing, wrong_rewrite, *changing])
    assert found.stage is not None
    assert found.stage.id == "9"
    assert len(found.checked) <= 6
    assert not found.is_exhaustive


def test_memory_and_a_check_of_ones_own() -> None:
    def needs_more(mod: IRModule) -> IRModule:
        operand = wildcard()
        pattern = is_op("relax.nn.relu")(operand)

        def twice(_: relax.Expr, found: dict) -> relax.Expr:
            large = relax.op.tile(found[operand], (1000, 1))
            most = relax.op.max(large, axis=0, keepdims=True)
            return relax.op.maximum(most, relax.const(0.0, "float32"))

        return with_main(mod, rewrite_call(pattern, twice, mod["main"]))

    passes = ["Normalize", needs_more, "LegalizeOps"]
    assert irviz.bisect(MyModuleHighLevel, passes).stage is None
    found = irviz.bisect(MyModuleHighLevel, passes, "memory")
    assert found.stage is not None
    assert found.stage.label == "needs_more"

    def is_first(result: irviz.RunResult, reference: irviz.RunResult) -> bool:
        return result.outputs[0].shape == reference.outputs[0].shape

    assert irviz.bisect(MyModuleHighLevel, passes, is_first).stage is None


def test_a_module_that_fails_itself_and_a_check_that_is_unknown_are_refused() -> None:
    with pytest.raises(StageError, match="stage 0 itself fails the check"):
        irviz.bisect(MyModuleHighLevel, ["Normalize"], lambda *_: False)
    with pytest.raises(InputError, match="'value' is unknown: give 'values'"):
        irviz.bisect(MyModuleHighLevel, ["Normalize"], "value")


def test_it_tells_how_far_it_is_and_what_runs_is_stopped_when_it_is_cancelled() -> None:
    told: list[tuple[int, int, str]] = []

    def progress(*step: Any) -> None:
        told.append(step)
        if step[2] == "applying hangs":
            cancel.set()

    cancel = threading.Event()
    irviz.bisect(MyModuleHighLevel, ["Normalize", wrong_rewrite, "LegalizeOps"], progress=progress)
    assert [done for done, _, _ in told] == list(range(len(told)))
    assert all(done < total <= told[-1][1] for done, total, _ in told)
    assert told[0][2] == "applying Normalize"
    assert "checking stage 3, LegalizeOps" in [words for _, _, words in told]
    with pytest.raises(CancelledRunError, match="cancelled"):
        irviz.bisect(MyModuleHighLevel, ["Normalize", hangs], progress=progress, cancel=cancel)


def test_no_pass_is_blamed_where_the_module_gives_other_results_each_time() -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((2,), "float32"))
    with builder.function("main", [x]):
        call = relax.call_dps_packed("test.counts", x, [x.ty])
        builder.emit_func_output(builder.emit(call))
    calls = 0

    @tvm.register_global_func("test.counts", override=True)
    def counts(_: object, out: tvm.runtime.Tensor) -> None:
        nonlocal calls
        calls += 1
        np.from_dlpack(out)[:] = calls

    with pytest.raises(StageError, match="gives other results each time"):
        irviz.bisect(builder.get(), ["ToNonDataflow"], isolate=False)

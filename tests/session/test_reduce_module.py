"""A module that shows a bug becomes as small as it can be while it shows the same bug."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import Any, TypeAlias

import numpy as np
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import IRModule, ir, relax, tirx
from tvm.relax.dpl import is_op, rewrite_call, wildcard

import irviz
from irviz.course.mlp import MyModule, MyModuleHighLevel
from irviz.errors import CancelledRunError, InputError
from irviz.session import reduce_module
from irviz.session.reduce_module import Reduction
from irviz.transforms.kernels.swap import map_function_bindings
from irviz.transforms.simpler_modules import count_bindings, keep_bindings
from tests.constructs.drawing import random_modules

pytestmark = pytest.mark.worker


def operators(mod: IRModule) -> list[str]:
    """Return the operators of main, in the order of the text."""
    return [
        binding.value.op.name for block in mod["main"].body.blocks for binding in block.bindings
    ]


def calls(*names: str) -> Callable[[IRModule], bool]:
    """Return a check that fails for modules that call all of these operators."""

    def check(mod: IRModule) -> bool:
        found = set()
        relax.analysis.post_order_visit(
            mod["main"], lambda one: found.add(getattr(getattr(one, "op", None), "name", ""))
        )
        return found >= {f"relax.{name}" for name in names}

    return check


def test_only_what_the_check_needs_is_left(modules: Any) -> None:
    stack = modules.stack(22)
    assert count_bindings(stack, "main") > 130
    found = irviz.reduce(stack, calls("exp"))
    assert (operators(found.module), found.bindings[1]) == (["relax.exp"], 1)
    assert found.is_least
    two = irviz.reduce(MyModuleHighLevel, calls("add", "nn.relu"))
    assert operators(two.module) == ["relax.add", "relax.nn.relu"]
    assert "7 bindings became 2" in repr(two)


def wrong_relu(mod: IRModule) -> IRModule:
    operand = wildcard()
    pattern = is_op("relax.nn.relu")(is_op("relax.add")(operand, wildcard()))
    mod.update_func(
        mod.get_global_var("main"),
        rewrite_call(pattern, lambda _, found: relax.op.abs(found[operand]), mod["main"]),
    )
    return mod


@pytest.mark.build
def test_the_pass_that_a_bisection_found_is_wrong_for_the_smaller_module_too() -> None:
    bisection = irviz.bisect(MyModuleHighLevel, ["Normalize", wrong_relu, "LegalizeOps"])
    found = irviz.reduce(bisection)
    assert operators(found.module) == ["relax.add", "relax.nn.relu"]
    assert irviz.bisect(found.module, wrong_relu).words.startswith("different")


@pytest.mark.build
def test_a_crash_stays_a_crash_and_does_not_become_another_failure() -> None:
    def crashes_or_raises(mod: IRModule) -> IRModule:
        names = operators(mod)
        if "relax.nn.relu" in names:
            os._exit(3)
        raise ValueError("another failure")

    found = irviz.reduce(irviz.bisect(MyModuleHighLevel, [crashes_or_raises]))
    assert operators(found.module) == ["relax.nn.relu"]


def test_a_check_that_ends_its_process_is_a_failure() -> None:
    def crashes(mod: IRModule) -> bool:
        if "relax.nn.relu" in operators(mod):
            os._exit(3)
        return False

    assert operators(irviz.reduce(MyModuleHighLevel, crashes).module) == ["relax.nn.relu"]


def test_what_is_left_calls_its_functions_also_those_called_by_name() -> None:
    kept = keep_bindings(MyModule, "main", {1})
    assert {gvar.name_hint for gvar in kept.functions} == {"main", "relu0"}
    assert relax.analysis.check_well_formed(kept)


@given(random_modules(), st.data())
@settings(max_examples=25)
def test_any_bindings_make_a_module_that_is_well_formed(mod: IRModule, data: st.DataObject) -> None:
    count = count_bindings(mod, "main")
    kept = data.draw(st.sets(st.integers(0, max(count - 1, 0)), min_size=1))
    made = keep_bindings(mod, "main", kept)
    assert count_bindings(made, "main") == len([one for one in kept if one < count])
    assert relax.analysis.check_well_formed(made)


def test_what_does_not_fail_or_has_no_check_is_refused() -> None:
    with pytest.raises(InputError, match="the module does not fail"):
        irviz.reduce(MyModuleHighLevel, calls("exp"))
    with pytest.raises(InputError, match="give a function that returns whether"):
        irviz.reduce(MyModuleHighLevel)


BRANCHING = """
@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def steps(a: T.Buffer((8,), "float32"), c: T.Buffer((8,), "float32")):
        b = T.sblock_alloc_buffer((8,))
        d = T.sblock_alloc_buffer((8,))
        for i in range(8):
            with T.sblock("b"):
                v = T.axis.spatial(8, i)
                b[v] = a[v] * T.float32(2)
        for i in range(8):
            with T.sblock("d"):
                v = T.axis.spatial(8, i)
                d[v] = b[v] + T.float32(3)
        for i in range(8):
            with T.sblock("c"):
                v = T.axis.spatial(8, i)
                c[v] = T.sqrt(d[v])

    @R.function(private=True)
    def inner(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
        with R.dataflow():
            y = R.negative(x)
            z = R.exp(y)
            R.output(z)
        return z

    @R.function
    def main(
        x: R.Tensor((8,), "float32"), is_left: R.Tensor((), "bool")
    ) -> R.Tensor((8,), "float32"):
        cls = Module
        if is_left:
            y = cls.inner(x)
        else:
            y = R.call_tir(cls.steps, (x,), R.Tensor((8,), "float32"))
        return y
"""


def prints(*words: str) -> Callable[[IRModule], bool]:
    """Return a check that fails for modules whose TVMScript has all of these words."""
    return lambda mod: all(word in mod.script() for word in words)


def test_branches_called_functions_and_blocks_that_the_check_does_not_need_are_left_out() -> None:
    branching = tvm.script.from_source(BRANCHING)
    found = irviz.reduce(branching, prints("R.exp"))
    assert operators(found.module) == ["relax.exp"]
    assert [gvar.name_hint for gvar in found.module.functions] == ["main"]
    assert tuple(found.module["main"].params[0].ty.shape) == (1,)

    kernel = irviz.reduce(branching, prints("T.float32(3.0)")).module["steps"].script()
    assert "T.float32(2.0)" not in kernel
    assert "b[v] = T.float32(0.0)" in kernel


def test_sizes_become_smaller_together_where_they_must() -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((64, 256), "float32"))
    with builder.function("main", [x]):
        split = builder.emit(relax.op.reshape(x, (64, 8, 32)))
        builder.emit_func_output(builder.emit(relax.op.permute_dims(split, [1, 0, 2])))
    found = irviz.reduce(builder.get(), calls("reshape", "permute_dims"))
    assert tuple(found.module["main"].params[0].ty.shape) == (1, 1)


def test_sizes_of_prim_funcs_become_smaller_with_those_of_their_calls() -> None:
    lowered = relax.transform.LegalizeOps()(MyModuleHighLevel)
    found = irviz.reduce(lowered, prints("R.call_tir(cls.relu"))
    assert tuple(found.module["main"].params[0].ty.shape) == (1, 1)
    (relu,) = (one for one in found.module.functions.values() if isinstance(one, tirx.PrimFunc))
    assert [tuple(buffer.shape) for buffer in relu.params] == [(1, 1), (1, 1)]
    irviz.Session(found.module).run()


def test_no_size_becomes_so_small_that_an_index_is_outside() -> None:
    fourth = BRANCHING.replace("a[v] * T.float32(2)", "a[T.min(v, 0) + 3]")
    found = irviz.reduce(tvm.script.from_source(fourth), prints("= a[T.min(v, 0) + 3]"))
    steps = found.module["steps"]
    assert tuple(steps.params[0].shape) == (8,)


def ends_the_process(mod: IRModule) -> IRModule:
    if "relu" in mod.script():
        os._exit(3)
    return mod


def makes_no_module(mod: IRModule) -> IRModule:
    main = mod["main"]
    if "relu" in mod.script():
        body = relax.SeqExpr(main.body.blocks, relax.Var("stray", main.ret_ty))
        mod.update_func(mod.get_global_var("main"), relax.Function(main.params, body, main.ret_ty))
    return mod


def chain(*names: str) -> IRModule:
    """Return a module of these operators, each of the result before, and of w if it takes two."""
    builder = relax.BlockBuilder()
    x, w = (relax.Var(name, relax.TensorType((8, 8), "float32")) for name in "xw")
    with builder.function("main", [x, w]):
        value = x
        for name in names:
            operator = ir.Op.get(f"relax.{name}")
            value = builder.emit(ir.Call(operator, [value, w][: len(operator.arguments)]))
        builder.emit_func_output(value)
    return builder.get()


@pytest.mark.build
def test_a_script_of_tvm_alone_shows_what_the_pass_does_wrong(ended: Ended) -> None:
    planted = {wrong_relu: "Not equal", ends_the_process: "", makes_no_module: "AssertionError"}
    for wrong, words in planted.items():
        text = irviz.reduce(irviz.bisect(chain("add", "nn.relu"), [wrong])).to_python()
        code, said = ended(text)
        assert code == (1 if words else 3)
        assert words in said


def test_a_script_of_tvm_alone_has_the_check_and_the_smaller_module(tmp_path: Path) -> None:
    text = irviz.reduce(MyModuleHighLevel, has_relu).to_python()
    with pytest.raises(AssertionError, match="the module fails"):
        exec(compile(text, tmp_path / "bug.py", "exec"), {})


def has_relu(mod: IRModule) -> bool:
    return "R.nn.relu" in mod.script()


def test_a_step_that_ends_its_process_is_no_step(monkeypatch: Any) -> None:
    ends: Any = lambda mod: os._exit(7)  # noqa: ARG005, E731
    monkeypatch.setattr(reduce_module, "with_smaller_sizes", lambda mod: [ends])  # noqa: ARG005
    found = irviz.reduce(MyModuleHighLevel, calls("nn.relu"))
    assert operators(found.module) == ["relax.nn.relu"]


def test_one_sees_how_far_a_reduction_is_and_can_end_it(modules: Any) -> None:
    cancel, seen = threading.Event(), []

    def progress(done: int, total: int, words: str) -> None:
        seen.append((done, total, words))
        if done:
            cancel.set()

    found = irviz.reduce(modules.stack(4), calls("exp"), progress=progress, cancel=cancel)
    assert seen[0] == (0, 26, "try 1")
    assert seen[-1] == (26 - found.bindings[1], 26, f"try {found.tries}")
    assert found.bindings[1] < 26
    assert not found.is_least
    with pytest.raises(CancelledRunError, match="before anything was removed"):
        irviz.reduce(modules.stack(4), calls("exp"), cancel=cancel)


def test_when_time_is_up_what_was_found_is_returned(modules: Any) -> None:
    found: Reduction = irviz.reduce(modules.stack(4), calls("exp"), seconds=0)
    assert found.bindings[0] == found.bindings[1]
    assert not found.is_least
    assert "stopped early" in repr(found)


def above_six(mod: IRModule) -> IRModule:
    """Cut ReLU off above six, which small inputs do not show."""

    def changed(_: ir.Var, value: ir.Expr) -> ir.Expr:
        is_relu = isinstance(value, ir.Call) and value.op == ir.Op.get("relax.nn.relu")
        return relax.op.clip(value.args[0], 0, 6) if is_relu else value

    return map_function_bindings(mod, "main", changed)


def deep() -> IRModule:
    """Return a module whose ReLU gets 7 if x is 49 in all places, and 0 elsewhere."""
    builder = relax.BlockBuilder()
    x, w = (relax.Var(name, relax.TensorType((8, 8), "float32")) for name in "xw")
    with builder.function("main", [x, w]):
        with builder.dataflow():
            root = builder.emit(relax.op.sqrt(x))
            scaled = builder.emit(relax.op.multiply(root, w))
            cut = builder.emit(relax.op.nn.relu(scaled))
            result = builder.emit_output(relax.op.negative(cut))
        builder.emit_func_output(result)
    return builder.get()


SEVENS = {"x": np.full((8, 8), 49, "float32"), "w": np.ones((8, 8), "float32")}
ONES = np.ones((8, 8), "float32")


@pytest.mark.build
@pytest.mark.parametrize(
    "options",
    [
        {"inputs": SEVENS},
        {"inputs": SEVENS["x"], "params": {"w": SEVENS["w"]}},
        {"inputs": {"x": np.stack([ONES, SEVENS["x"]]), "w": SEVENS["w"]}},
        {"params": SEVENS},
    ],
    ids=["by name", "an array", "several cases", "params"],
)
def test_given_inputs_follow_their_parameters_and_become_those_of_removed_nodes(
    options: dict[str, Any], exit_code: Any
) -> None:
    bisection = irviz.bisect(deep(), [above_six, "LegalizeOps"], **options)
    assert bisection.stage is not None
    assert bisection.arguments is not None
    assert float(np.asarray(bisection.arguments["x"]).min()) == 49
    found = irviz.reduce(bisection)
    assert operators(found.module) == ["relax.nn.relu"]
    assert tuple(found.module["main"].params[0].ty.shape) == (1, 1)
    assert [float(np.asarray(value).item()) for value in found.inputs.values()] == [7.0]
    if isinstance(options.get("inputs"), dict):  # the values are the same in each case
        assert exit_code(found.to_python()) == 1


RUNNER = """
import os, runpy, sys, traceback
sys.modules["irviz"] = None
import numpy, tvm
for file in sys.stdin:
    fork = os.fork()
    if not fork:
        os.dup2(os.open(file.rstrip() + ".said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        try:
            runpy.run_path(file.rstrip())
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1]), flush=True)
"""
"""Runs scripts, each in a fork: TVM takes longer to load than most scripts take."""


Ended: TypeAlias = Callable[[str], tuple[int, str]]


@pytest.fixture(scope="module")
def ended(tmp_path_factory: Any) -> Iterator[Ended]:
    """Return the exit code and words of a script in a Python that has TVM, and no irviz."""
    file = tmp_path_factory.mktemp("scripts") / "bug.py"
    command = [sys.executable, "-I", "-c", RUNNER]
    with Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, text=True) as runner:
        assert runner.stdin is not None
        assert runner.stdout is not None

        def run_it(script: str) -> tuple[int, str]:
            file.write_text(script)
            print(file, file=runner.stdin, flush=True)
            return int(runner.stdout.readline()), Path(f"{file}.said").read_text()

        assert run_it("import irviz")[0] == 1
        assert run_it("import tvm") == (0, "")
        yield run_it


@pytest.fixture
def exit_code(ended: Ended) -> Callable[[str], int]:
    """Return the exit code alone."""
    return lambda script: ended(script)[0]


def test_a_script_ends_as_it_would_in_a_python_of_its_own(exit_code: Any) -> None:
    ends = {"": 0, "assert not 1": 1, "import os; os._exit(3)": 3, "import os; os.abort()": -6}
    assert {script: exit_code(script) for script in ends} == ends


@pytest.mark.build
def test_given_sizes_are_those_of_the_smaller_module_too() -> None:
    n = tirx.Var("n", "int64")
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((n, 4), "float32"))
    with builder.function("main", [x]):
        doubled = builder.emit(relax.op.add(x, x))
        builder.emit_func_output(builder.emit(relax.op.sum(doubled, axis=0)))

    def above_100(mod: IRModule) -> IRModule:
        def changed(_: ir.Var, value: ir.Expr) -> ir.Expr:
            if not isinstance(value, ir.Call) or value.op != ir.Op.get("relax.sum"):
                return value
            return relax.op.sum(relax.op.strided_slice(value.args[0], [0], [0], [100]), axis=0)

        return map_function_bindings(mod, "main", changed)

    assert irviz.bisect(builder.get(), above_100).stage is None
    bisection = irviz.bisect(builder.get(), above_100, sizes={"n": 120})
    assert bisection.tried.startswith("values to 1e4")
    found = irviz.reduce(bisection)
    assert operators(found.module) == ["relax.sum"]
    assert [np.shape(value) for value in found.inputs.values()] == [(120, 1)]


@pytest.mark.build
def test_a_value_that_only_large_or_special_inputs_show_is_reduced_with_them(
    exit_code: Any,
) -> None:
    def no_nan(mod: IRModule) -> IRModule:
        def changed(_: ir.Var, value: ir.Expr) -> ir.Expr:
            if not isinstance(value, ir.Call) or value.op != ir.Op.get("relax.negative"):
                return value
            zero = relax.const(0.0, "float32")
            return relax.op.where(
                relax.op.isnan(value.args[0]), zero, relax.op.negative(value.args[0])
            )

        return map_function_bindings(mod, "main", changed)

    planted = {
        above_six: (deep(), "relax.nn.relu"),
        no_nan: (chain("add", "negative"), "relax.negative"),
    }
    for wrong, (mod, name) in planted.items():
        found = irviz.reduce(irviz.bisect(mod, [wrong]))
        assert operators(found.module) == [name]
        assert exit_code(found.to_python()) == 1


@pytest.mark.build
def test_the_script_of_a_read_of_unset_memory_ends_in_the_same_way_each_time(
    exit_code: Any,
) -> None:
    def forgets(mod: IRModule) -> IRModule:
        builder = relax.BlockBuilder()
        x = relax.Var("x", mod["main"].params[0].ty)
        with builder.function("main", [x]):
            size = relax.ShapeExpr(list(x.ty.shape))
            made = builder.emit(relax.op.builtin.alloc_tensor(size, "float32", 0))
            builder.emit_func_output(builder.emit(relax.op.add(x, made)))
        return builder.get()

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((64, 64), "float32"))
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.add(x, relax.const(0.0, "float32"))))
    script = irviz.reduce(irviz.bisect(builder.get(), [forgets])).to_python()
    assert "mallopt" in script
    assert [exit_code(script) for _ in range(4)] == [1] * 4


@pytest.mark.build
def test_the_script_of_another_interface_shows_it(exit_code: Any) -> None:
    def renamed(mod: IRModule) -> IRModule:
        return IRModule({"forward": mod["main"].with_attr("global_symbol", "forward")})

    def exchanged(mod: IRModule) -> IRModule:
        main = mod["main"]
        new = relax.Function(list(main.params)[::-1], main.body, main.ret_ty, attrs=main.attrs)
        mod.update_func(mod.get_global_var("main"), new)
        return mod

    def wider(mod: IRModule) -> IRModule:
        def changed(_: ir.Var, value: ir.Expr) -> ir.Expr:
            is_last = isinstance(value, ir.Call) and value.op == ir.Op.get("relax.negative")
            return relax.op.astype(value, "float64") if is_last else value

        return map_function_bindings(mod, "main", changed)

    def declared(mod: IRModule) -> IRModule:
        main = mod["main"]
        wide = relax.SeqExpr(main.body.blocks, relax.op.astype(main.body.body, "float64"))
        body = relax.BlockBuilder(mod).normalize(wide)
        new = relax.Function(main.params, body, None, attrs=main.attrs)
        mod.update_func(mod.get_global_var("main"), new)
        return mod

    for wrong in (renamed, exchanged, wider, declared):
        found = irviz.reduce(irviz.bisect(chain("exp", "multiply", "negative"), [wrong]))
        assert found.bindings[1] <= 2
        assert exit_code(found.to_python()) == 1

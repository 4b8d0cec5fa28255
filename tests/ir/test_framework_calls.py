"""Calls name only operators of ATen and ONNX, and their arguments are data that nothing runs."""

import math

import pytest

from irviz.ir.framework_calls import (
    called_operator,
    computed_by,
    operator_name,
    read_arguments,
    written_arguments,
)

CONSTANTS = {"torch.float32": "the dtype"}


def read(text):
    return read_arguments(text, lambda letter, number: f"{letter} {number}", CONSTANTS)


def test_arguments_are_read_as_they_were_written():
    args = ("x", [1, None, 2.5], math.inf, -math.inf, 1 + 2j, True, "mean")
    text = written_arguments(args, {"largest": False}, lambda one: "x0" if one == "x" else "")
    assert text == "x0, [1, None, 2.5], inf, -inf, (1+2j), True, 'mean', largest=False"
    assert read(text) == (["x 0", *args[1:]], {"largest": False})
    assert math.isnan(read(repr(math.nan))[0][0])
    assert read("z3, dtype=torch.float32") == (["z 3"], {"dtype": "the dtype"})


def test_an_argument_that_is_no_data_is_not_written():
    with pytest.raises(ValueError, match="an argument is a type"):
        written_arguments((int,), {}, lambda _: "")


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "torch.load('file')",
        "torch.compile",
        "x0.data",
        "x0 + x1",
        "1) or f(2",
        "*x0",
        "**{'out': x0}",
        "lambda: 0",
        "x",
        "[y for y in x0]",
    ],
)
def test_anything_but_operands_and_data_is_refused(text):
    with pytest.raises((ValueError, SyntaxError)):
        read(text)


@pytest.mark.parametrize(
    "name",
    [
        "torch.aten.load.default",
        "torch.aten.from_file.default",
        "torch.aten._print.default",
        "torch.aten._dir",
        "torch.aten.__class__.default",
        "torch.aten.topk",
        "torch.aten.topk.default.__call__",
        "torch.prims.sin.default",
        "aten.topk.default",
    ],
)
def test_only_operators_of_aten_that_neither_read_nor_print_are_called(name):
    assert called_operator(name) is None
    assert called_operator("torch.aten.topk.default") == operator_name("aten.topk.default")


@pytest.mark.parametrize(
    "name",
    [
        "onnx.Loop",
        "onnx.If",
        "onnx.ai.onnx.ml.Scaler",
        "onnx.load",
        "onnx.Celu.run",
        "Celu",
        "onnx.",
    ],
)
def test_only_operators_of_onnx_that_take_no_graph_are_computed(name):
    assert computed_by(name) == ""
    assert computed_by("onnx.LoopFree") == computed_by("onnx.Celu") == "ONNX's reference evaluator"
    assert computed_by("torch.aten.topk.default") == "torch"

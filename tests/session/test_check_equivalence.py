"""A bisection looks where bugs are: at odd sizes and values, in the interface, and for drift."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import IRModule, ir, relax, tirx
from tvm.relax import op

import irviz
from irviz.course.mlp import MyModuleHighLevel
from irviz.errors import StageError
from irviz.transforms.kernels.swap import map_function_bindings

pytestmark = [pytest.mark.worker, pytest.mark.build]

Body = Callable[..., ir.Expr]


def module(body: Body, *types: Any) -> IRModule:
    """Return a module whose main computes a body of parameters x, y, z of types."""
    builder = relax.BlockBuilder()
    params = [
        relax.Var(name, relax.TensorType(*type_)) for name, type_ in zip("xyz", types, strict=False)
    ]
    with builder.function("main", params):
        with builder.dataflow():
            result = builder.emit_output(builder.normalize(body(*params)))
        builder.emit_func_output(result)
    return builder.get()


def becomes(name: str, change: Callable[..., ir.Expr]) -> Callable[[IRModule], IRModule]:
    """Return a pass that replaces the calls of an operator."""

    def planted(mod: IRModule) -> IRModule:
        def changed(_: ir.Var, value: ir.Expr) -> ir.Expr:
            is_call = isinstance(value, ir.Call) and isinstance(value.op, ir.Op)
            return change(*value.args) if is_call and value.op.name == name else value

        return map_function_bindings(mod, "main", changed)

    return planted


def blamed(mod: IRModule, planted: Callable[[IRModule], IRModule], **options: Any) -> Any:
    """Return the bisection of a pipeline with a pass in it; it found that pass."""
    found = irviz.bisect(mod, ["Normalize", planted, "LegalizeOps"], seconds=20, **options)
    assert found.stage is not None, found
    assert found.stage.id == "2", found
    return found


ROW = ((4, 8), "float32")
ZERO = relax.const(0.0, "float32")


@pytest.mark.parametrize("special", ["NaN", "±inf", "-0.0 and denormals"])
def test_an_error_with_values_that_are_no_ordinary_numbers_is_said_to_be_on_these_alone(
    special: str,
) -> None:
    wrong = {
        "NaN": lambda x: op.where(op.isnan(x), ZERO, op.exp(x)),
        "±inf": lambda x: op.where(op.isinf(x), ZERO, op.exp(x)),
        "-0.0 and denormals": lambda x: op.where(
            op.less(op.abs(x), relax.const(1e-38, "float32")),
            relax.const(2.0, "float32"),
            op.exp(x),
        ),
    }[special]
    found = blamed(module(op.exp, ROW), becomes("relax.exp", wrong))
    assert found.only_on == f"{special} in x"
    assert f"different on {special} in x alone" in repr(found)


def test_an_error_with_ordinary_values_as_well_is_not_said_to_be_on_special_ones() -> None:
    found = blamed(module(op.exp, ROW), becomes("relax.exp", op.sqrt))
    assert found.only_on == ""


def test_an_error_for_large_sizes_alone_is_found_and_the_sizes_are_said() -> None:
    n = tirx.Var("n", "int64")
    many = module(lambda x: op.nn.relu(x), ((n, 4), "float32"))

    def planted(mod: IRModule) -> IRModule:
        x = mod["main"].params[0]
        builder = relax.BlockBuilder()
        new = relax.Var("x", x.ty)
        with builder.function("main", [new]):
            row = op.arange(0, x.ty.shape[0], 1, "int64")
            is_late = op.greater_equal(builder.emit(row), relax.const(20, "int64"))
            picked = op.where(op.expand_dims(is_late, 1), op.abs(new), op.nn.relu(new))
            builder.emit_func_output(builder.emit(picked))
        return builder.get()

    found = blamed(many, planted)
    assert "with n = 32" in found.words
    assert "n = 32; n = 3" in repr(found)


def test_an_error_for_large_values_alone_is_found() -> None:
    six = relax.const(6.0, "float32")
    found = blamed(
        module(op.nn.relu, ROW),
        becomes("relax.nn.relu", lambda x: op.minimum(op.nn.relu(x), six)),
    )
    assert found.words.endswith("with values to 1e4")


def test_a_division_that_truncates_is_found() -> None:
    def truncated(x: ir.Expr, y: ir.Expr) -> ir.Expr:
        quotient = op.trunc(op.divide(op.astype(x, "float64"), op.astype(y, "float64")))
        return op.astype(quotient, "int32")

    whole = ((4, 8), "int32")
    mod = module(op.floor_divide, whole, whole)
    blamed(mod, becomes("relax.floor_divide", truncated))
    assert irviz.bisect(mod, ["LegalizeOps", "FuseTIR"]).stage is None


def test_a_drift_of_a_ten_thousandth_is_blamed_on_the_pass_that_makes_it() -> None:
    drift = relax.const(1 + 1e-4, "float32")
    found = blamed(
        MyModuleHighLevel, becomes("relax.nn.relu", lambda x: op.multiply(op.nn.relu(x), drift))
    )
    before, after = (one for one in found.checked if one.id in ("0", "2"))
    assert before.share == 0.0
    assert after.share > 1
    lines = str(found.errors()).splitlines()
    assert lines[0].split() == ["stage", "made", "by", "max", "|Δ|", "the", "tolerance", "results"]
    assert lines[2].startswith("2      planted")


def test_another_dtype_of_the_result_is_found() -> None:
    found = blamed(
        module(op.exp, ROW), becomes("relax.exp", lambda x: op.astype(op.exp(x), "float64"))
    )
    assert "another interface: output 0 is of float64, and was of float32" in found.words


def test_another_form_of_one_field_of_the_result_is_found() -> None:
    nested = module(lambda x: relax.Tuple([x, relax.Tuple([x])]), ROW)
    flat = module(lambda x: relax.Tuple([x, x]), ROW)
    found = blamed(nested, lambda _: flat)
    assert "another interface: it returns" in found.words


def test_parameters_of_one_shape_that_are_exchanged_are_found() -> None:
    def exchanged(mod: IRModule) -> IRModule:
        main = mod["main"]
        x, y = main.params
        new = relax.Function([y, x], main.body, main.ret_ty, attrs=main.attrs)
        mod.update_func(mod.get_global_var("main"), new)
        return mod

    found = blamed(module(op.subtract, ROW, ROW), exchanged)
    assert "its parameters are y: Tensor" in found.words


def test_a_function_of_another_name_is_found() -> None:
    def renames(mod: IRModule) -> IRModule:
        main = mod["main"].with_attr("global_symbol", "forward")
        return IRModule({"forward": main})

    found = blamed(module(op.exp, ROW), renames)
    assert "there is no function 'main', but 'forward'" in found.words


def test_an_index_stays_inside_also_after_arithmetic() -> None:
    def body(x: ir.Expr, y: ir.Expr, z: ir.Expr) -> ir.Expr:
        rows = op.take(x, op.astype(op.reshape(y, (6,)), "int32"), axis=0)
        return op.add(rows, op.take(x, op.subtract(z, relax.const(1, "int32")), axis=0))

    mod = module(body, ((5, 8), "float32"), ((2, 3), "int64"), ((6,), "int32"))
    found = irviz.bisect(mod, ["Normalize", "LegalizeOps", "FuseOps", "FuseTIR"])
    assert found.stage is None, found
    lowered = tvm.relax.transform.LegalizeOps()(mod)
    assert irviz.bisect(lowered, ["FuseOps", "FuseTIR"]).stage is None


def test_passes_that_change_the_parameters_on_purpose_are_not_blamed() -> None:
    n = tirx.Var("n", "int64")
    mod = module(op.add, ((n, 8), "float32"), ((8,), "float32"))
    mod.update_func(mod.get_global_var("main"), mod["main"].with_attr("num_input", 1))
    weights = {"y": np.ones(8, "float32")}
    passes = [relax.transform.BindSymbolicVars({"n": 6}), "LegalizeOps"]
    assert irviz.bisect(mod, passes).stage is None
    session = irviz.Session(mod, params=weights).bind()
    assert irviz.bisect(session, ["LegalizeOps"]).stage is None
    bundled = [relax.transform.BundleModelParams(), "LegalizeOps"]
    assert irviz.bisect(mod, bundled).stage is None


def test_a_sum_in_another_order_is_no_bug() -> None:
    def split(parts: int) -> Callable[[IRModule], IRModule]:
        def sums(x: ir.Expr, y: ir.Expr) -> ir.Expr:
            count, axes = int(x.ty.shape[-1]), [len(one.ty.shape) - 1 for one in (x, y)]
            pieces = [
                op.matmul(
                    op.strided_slice(x, [axes[0]], [at], [at + count // parts]),
                    op.strided_slice(y, [axes[1] - 1], [at], [at + count // parts]),
                )
                for at in range(0, count, count // parts)
            ]
            return functools.reduce(op.add, pieces)

        return becomes("relax.matmul", sums)

    for parts in (2, 16):
        found = irviz.bisect(MyModuleHighLevel, [split(parts), "LegalizeOps"])
        assert found.stage is None, found
        assert 0 < max(one.share or 0.0 for one in found.checked) < 0.5


def test_what_rounding_makes_of_an_ill_conditioned_function_is_no_bug() -> None:
    factor, root = (relax.const(number, "float32") for number in (1e4, 1e2))
    mod = module(lambda x: op.sin(op.multiply(x, factor)), ROW)
    in_two_steps = becomes("relax.multiply", lambda x, _: op.multiply(op.multiply(x, root), root))
    assert irviz.bisect(mod, in_two_steps).stage is None
    strict = irviz.bisect(mod, in_two_steps, tolerance=irviz.Tolerance(1e-5, 1e-5))
    assert strict.stage is not None


def test_fewer_bits_in_between_are_no_bug() -> None:
    assert irviz.bisect(MyModuleHighLevel, ["ToMixedPrecision", "LegalizeOps"]).stage is None
    strict = irviz.bisect(
        MyModuleHighLevel, ["ToMixedPrecision"], tolerance=irviz.Tolerance(1e-5, 1e-5)
    )
    assert strict.stage is not None


def test_given_inputs_are_the_only_ones() -> None:
    six = relax.const(6.0, "float32")
    bug = becomes("relax.nn.relu", lambda x: op.minimum(op.nn.relu(x), six))
    mod = module(op.nn.relu, ROW)
    small, large = (np.full((4, 8), number, "float32") for number in (1, 7))
    assert irviz.bisect(mod, bug, inputs=small).stage is None
    assert irviz.bisect(mod, bug, inputs=large).stage is not None
    assert irviz.bisect(mod, bug, inputs={"x": large}).stage is not None


def test_memory_that_nothing_wrote_is_not_a_result() -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((64,), "float32"))
    with builder.function("main", [x]):
        made = builder.emit(op.builtin.alloc_tensor(relax.ShapeExpr([64]), "float32", 0))
        builder.emit_func_output(builder.emit(op.add(x, made)))
    with pytest.raises(StageError, match="other results each time"):
        irviz.bisect(builder.get(), ["LegalizeOps"])

"""The values of a parameter that leads to an index are known, also through arithmetic."""

from __future__ import annotations

import math

import pytest
import tvm
from tvm import IRModule, relax

from irviz.ir.argument_ranges import argument_ranges

MODULE = """
@I.ir_module
class Module:
    @R.function
    def main(
        x: R.Tensor((5, 4), "float32"),
        casts: R.Tensor((3,), "int64"),
        rows: R.Tensor((3, 4), "int64"),
        divisor: R.Tensor((3,), "int32"),
        shifted: R.Tensor((2, 2), "int32"),
        float: R.Tensor((3,), "float32"),
        doubled: R.Tensor((3,), "int32"),
        wrapped: R.Tensor((3,), "int32"),
        plain: R.Tensor((5, 4), "int32"),
    ):
        with R.dataflow():
            a = R.take(x, R.astype(R.reshape(casts, (3,)), "int32"), axis=0)
            b = R.gather_elements(x, rows, axis=0)
            c = R.floor_divide(R.const(7, "int32"), R.reshape(divisor, (3,)))
            d = R.take(x, R.add(shifted, R.const(-1, "int32")), axis=1)
            e = R.take(x, R.astype(float, "int32"), axis=1)
            f = R.take(x, R.multiply(doubled, R.const(2, "int32")), axis=1)
            g = R.take(x, R.floor_mod(wrapped, R.const(4, "int32")), axis=1)
            h = R.add(plain, plain)
            R.output(a, b, c, d, e, f, g, h)
        return (a, b, c, d, e, f, g, h)
"""
FUSION = [relax.transform.AnnotateTIROpPattern(), relax.transform.FuseOps(2)]
LOWERED = [relax.transform.LegalizeOps(), *FUSION, relax.transform.FuseTIR()]


def ranges(mod: IRModule) -> dict[str, tuple[float, float, bool]]:
    return {name: tuple(one) for name, one in argument_ranges(mod, "main", {}).items()}


@pytest.mark.parametrize("count", range(len(LOWERED) + 1))
def test_each_index_is_inside_of_its_tensor_before_and_after_it_is_lowered(count: int) -> None:
    mod = tvm.transform.Sequential(LOWERED[:count])(tvm.script.from_source(MODULE))
    assert ranges(mod) == {
        "casts": (0, 4, False),
        "rows": (0, 4, False),
        "divisor": (-math.inf, math.inf, True),
        "shifted": (1, 4, False),
        "float": (0, 3, False),
        "doubled": (0, 1, False),
    }


def test_what_is_not_followed_is_zero_and_what_is_unknown_small() -> None:
    text = """
@I.ir_module
class Module:
    @R.function
    def main(
        x: R.Tensor((5,), "float32"), y: R.Tensor((3,), "int64"), z: R.Tensor((3,), "int64")
    ):
        with R.dataflow():
            a = R.take(x, R.multiply(y, y), axis=0)
            b = R.call_dps_packed("unknown", (z,), R.Tensor((3,), "int64"))
            R.output(a, b)
        return (a, b)
"""
    assert ranges(tvm.script.from_source(text)) == {"y": (0, 0, False), "z": (0, 9, False)}


PACKED = """
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def pick(
        first: T.Buffer((3,), "int32"), second: T.Buffer((3,), "int32"),
        table: T.Buffer((8,), "float32"), out: T.Buffer((3,), "float32"),
    ):
        T.func_attr({"global_symbol": "pick"})
        for i in range(3):
            with T.sblock("pick"):
                v = T.axis.spatial(3, i)
                out[v] = table[first[v]] * T.Cast("float32", second[v])

    @R.function
    def main(
        i: R.Tensor((3,), "int32"), j: R.Tensor((3,), "int32"), t: R.Tensor((8,), "float32"),
    ):
        with R.dataflow():
            out = R.call_pure_packed(
                "pick", i, j, t, ty_args=R.Tensor((3,), dtype="float32")
            )
            R.output(out)
        return out
"""


def test_arguments_that_are_given_one_by_one_have_the_ranges_of_their_own_parameters() -> None:
    assert ranges(tvm.script.from_source(PACKED)) == {"i": (0, 7, False)}

"""Definitions in TE become PrimFuncs that compute what the kernels of the same name do."""

import re
from functools import partial

import numpy as np
import pytest
import tvm
from tvm import ir, relax, te, tirx, topi
from tvm_ffi import structural_equal

import irviz
from irviz.course.mlp import MyModuleWithExternCall
from irviz.runtime.run import CallInputs, run
from irviz.transforms.kernels import library
from irviz.transforms.kernels.candidates import Equivalence, compare_on_samples, iter_candidates
from irviz.transforms.kernels.library import (
    OPERATORS,
    NoPrimFuncError,
    create_prim_func,
    definitions,
    kernels,
    prim_func_for_call,
    run_on_torch,
)
from irviz.transforms.kernels.signature import SampleSpec, fits, parse_signature
from irviz.transforms.kernels.swap import Swap

pytestmark = [pytest.mark.worker, pytest.mark.usefixtures("forgets_registrations")]


def candidates(mod, function, node):
    """Return the replacements of a node's callee after all of them have been tried."""
    return [(), *iter_candidates(mod, function, node)][-1]


SIZES = {"k": 7, "n": 5, "m": 3, "b": 2, "...": "2,4"}


def sized(signature, dtype="float32"):
    """Return a signature with numbers for its names."""
    return parse_signature(
        re.sub(r"\.\.\.|\b[a-z]\b", lambda name: str(SIZES[name[0]]), str(signature)), dtype
    )


def types_of(signature):
    return [relax.TensorType([*map(int, t.dims)], t.dtype) for t in signature.inputs]


def call_of(*shapes, out, dtype="float32"):
    """Return a call whose arguments have these shapes."""
    args = [relax.Var(f"x{i}", relax.TensorType(s, dtype)) for i, s in enumerate(shapes)]
    return relax.call_dps_packed("env.any", relax.Tuple(args), relax.TensorType(out, dtype))


# --- the definitions that are there --------------------------------------------------------------


@pytest.mark.parametrize("name", [op.name for op in OPERATORS if op.numpy])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numpys_kernel_computes_what_its_definition_does(name, dtype):
    kernel = kernels()[f"numpy.{name}"]
    signature = sized(kernel.signature, dtype)
    prim_func = create_prim_func(definitions()[kernel.definition], types_of(signature), signature)
    found = compare_on_samples(SampleSpec(signature), kernel.function, {"it": prim_func}, {})["it"]
    assert found.verdict in (Equivalence.EQUAL, Equivalence.CLOSE), found.reason


@pytest.mark.torch
@pytest.mark.parametrize("op", [op for op in OPERATORS if op.torch], ids=lambda op: op.name)
def test_pytorchs_kernel_computes_what_its_definition_does(op):
    signature = sized(op.torch_signature or op.signature)
    prim_func = create_prim_func(definitions()[f"topi.{op.name}"], types_of(signature), signature)
    found = compare_on_samples(
        SampleSpec(signature), prim_func, {}, {"it": partial(run_on_torch, op.torch)}
    )["it"]
    assert found.verdict in (Equivalence.EQUAL, Equivalence.CLOSE), found.reason


def test_definitions_of_different_names_compute_different_things():
    by_signature = {}
    for op in OPERATORS:
        by_signature.setdefault(op.signature, []).append(f"topi.{op.name}")
    for text, names in by_signature.items():
        signature = sized(text)
        made = {
            name: create_prim_func(definitions()[name], types_of(signature), signature)
            for name in names
        }
        for name in names:
            others = {other: one for other, one in made.items() if other != name}
            found = compare_on_samples(SampleSpec(signature), made[name], others, {})
            assert {other: each.verdict for other, each in found.items()} == dict.fromkeys(
                others, Equivalence.DIFFERENT
            ), name


def test_each_says_what_it_computes():
    for op in OPERATORS:
        assert definitions()[f"topi.{op.name}"].summary.endswith(".")


# --- a PrimFunc for a call -----------------------------------------------------------------------


def test_the_prim_func_has_the_sizes_of_the_call_and_the_names_of_the_parameters():
    call = call_of((1, 784), (128, 784), (128,), out=(1, 128))
    made = prim_func_for_call(definitions()["topi.linear"], call)
    assert [param.name for param in made.params[:3]] == ["x", "w", "b"]
    assert [list(map(int, param.ty.shape)) for param in made.params] == [
        [1, 784],
        [128, 784],
        [128],
        [1, 128],
    ]
    assert "T.int64" not in made.script()
    assert made.attrs["s_tir"]


def test_symbolic_sizes_keep_their_names_and_are_the_prim_funcs_own():
    first = MyModuleWithExternCall["main"].body.blocks[0].bindings[0].value
    made = prim_func_for_call(definitions()["topi.linear"], first)
    names = [[str(getattr(d, "name", d)) for d in param.ty.shape] for param in made.params]
    assert names == [["T.int64(1)", "m"], ["n", "m"], ["n"], ["T.int64(1)", "n"]]
    theirs = first.args[1].fields[0].ty.shape.values[1]
    assert not made.params[0].ty.shape[1].same_as(theirs)


def test_a_size_that_is_an_expression_becomes_a_size_of_its_own():
    n = tirx.Var("n", "int64")
    call = call_of((n * 2, n), out=(n * 2, n))
    made = prim_func_for_call(definitions()["topi.relu"], call)
    rows, columns = made.params[0].ty.shape
    assert isinstance(rows, ir.Var)
    assert not rows.same_as(columns)
    tvm.compile(ir.IRModule({"main": made.with_attr("global_symbol", "main")}), target="llvm")


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_dtypes_stay_as_they_are(dtype):
    made = prim_func_for_call(definitions()["topi.exp"], call_of((3,), out=(3,), dtype=dtype))
    assert {str(param.ty.dtype) for param in made.params} == {dtype}


def test_shapes_that_te_makes_something_else_of_are_refused():
    library.define("mine.turned", "(m,n)->(m,n)")(topi.transpose)
    with pytest.raises(
        NoPrimFuncError,
        match=re.escape("for these shapes it is (2,3)->(3,2), and the call has (2,3)->(2,3)"),
    ):
        prim_func_for_call(definitions()["mine.turned"], call_of((2, 3), out=(2, 3)))
    with pytest.raises(
        NoPrimFuncError, match=re.escape("its signature is (...,k),(k,n)->(...,n), an")
    ):
        prim_func_for_call(definitions()["topi.matmul"], call_of((2, 3), (4, 5), out=(2, 5)))


# --- one's own -----------------------------------------------------------------------------------


def test_a_definition_of_ones_own_is_matched_and_swapped_in():
    @irviz.library.define("mine.relu", "(...)->(...)")
    def mine(x):
        """Compute max(x, 0), by a compute of one's own."""
        return te.compute(x.shape, lambda *i: tirx.max(x(*i), 0.0), name="y")

    assert definitions()["mine.relu"].summary == "Compute max(x, 0), by a compute of one's own."
    assert mine.__name__ == "mine"
    found = {c.name: c for c in candidates(MyModuleWithExternCall, "main", "lv1")}
    assert found["mine.relu"].verdict is Equivalence.EQUAL
    swapped = Swap("env.relu", "mine.relu")(MyModuleWithExternCall)
    assert "relu" in {gvar.name_hint for gvar in swapped.functions}


def test_a_definition_may_give_two_tensors():
    @library.define("mine.both", "(n)->(n),(n)")
    def both(x):
        return topi.exp(x), topi.negative(x)

    x = relax.Var("x", relax.TensorType([3], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        call = relax.call_dps_packed("env.both", x, [x.ty, x.ty])
        builder.emit_func_output(builder.emit(call))
    mod = Swap("env.both", "mine.both")(builder.get())
    given = np.array([0, 1, 2], "float32")
    first, second = run(mod, inputs=CallInputs(inputs={"x": given})).outputs
    np.testing.assert_allclose(first[0], np.exp(given), rtol=1e-6)
    assert second[0].tolist() == [0, -1, -2]


def test_a_definition_that_raises_is_a_reason():
    @library.define("mine.broken", "(...)->(...)")
    def broken(x):
        raise ZeroDivisionError(f"not for {len(x.shape)} dimensions")

    found = {c.name: c for c in candidates(MyModuleWithExternCall, "main", "lv1")}
    assert found["mine.broken"].reason == (
        "TE makes no PrimFunc of these shapes: ZeroDivisionError: not for 2 dimensions"
    )


def test_a_definition_with_too_few_parameters_is_refused():
    wrong = "the definition 'mine.few' takes (), and its signature (n)->(n) has 1 tensors: give it"
    with pytest.raises(ValueError, match=re.escape(wrong)):

        @library.define("mine.few", "(n)->(n)")
        def few():
            return None

    assert "mine.few" not in definitions()


def test_a_kernels_own_definition_stands_first_among_those_that_compute_the_same():
    @library.define("mine.linear", "(b,m),(n,m),(n)->(b,n)")
    def mine(x, w, b):
        return topi.add(topi.matmul(x, w, transp_b=True), b)

    found = [c.name for c in candidates(MyModuleWithExternCall, "main", "lv0")]
    assert found.index("topi.linear") < found.index("mine.linear")
    library.register("env.test_mine", "(b,m),(n,m),(n)->(b,n)", definition="mine.linear")(
        kernels()["env.linear"].function
    )
    other = Swap("env.linear", "env.test_mine")(MyModuleWithExternCall)
    found = [c.name for c in candidates(other, "main", "lv0")]
    assert found.index("mine.linear") < found.index("topi.linear")


def test_what_is_made_twice_is_the_same():
    call = call_of((2, 3), out=(2, 3))
    one, other = (prim_func_for_call(definitions()["topi.softmax"], call) for _ in range(2))
    assert structural_equal(one, other)
    assert fits(definitions()["topi.softmax"].signature, parse_signature("(2,3)->(2,3)"))

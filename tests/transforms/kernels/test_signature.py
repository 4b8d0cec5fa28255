"""Signatures are read strictly, and a call fits one or does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irviz.course.mlp import MyModule, MyModuleStatic
from irviz.transforms.kernels.signature import (
    Signature,
    TensorSignature,
    fits,
    parse_signature,
    signature_of_call,
    signature_of_prim_func,
)


def call_of(mod, name):
    """Return the value bound to a variable of main."""
    blocks = mod["main"].body.blocks
    return next(b.value for block in blocks for b in block.bindings if b.var.name == name)


# --- reading -----------------------------------------------------------------------------------


def test_numpys_notation_is_read():
    signature = parse_signature("(b,m),(n,m),(n)->(b,n)", "float16")
    assert signature == Signature(
        (
            TensorSignature(("b", "m"), "float16"),
            TensorSignature(("n", "m"), "float16"),
            TensorSignature(("n",), "float16"),
        ),
        (TensorSignature(("b", "n"), "float16"),),
    )
    assert parse_signature("(n)->(n)").inputs[0].dtype == "float32"


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        (" ( b , m ) -> ( b ) ", "(b,m)->(b)"),
        ("()->()", "()->()"),
        ("(...)->(...)", "(...)->(...)"),
        ("(...,n),(1,n)->(...)", "(...,n),(1,n)->(...)"),
        ("(n)->(n),(1)", "(n)->(n),(1)"),
        ("(size_1)->(128)", "(size_1)->(128)"),
    ],
)
def test_spaces_sizes_and_ellipses_are_read(text, meaning):
    assert str(parse_signature(text)) == meaning


@pytest.mark.parametrize(
    "text",
    [
        "",
        "(n)",
        "->",
        "(n)->",
        "->(n)",
        "n->n",
        "(n)->(n)->(n)",
        "(n),->(n)",
        "(n,)->(n)",
        "(n,,m)->(n)",
        "(n m)->(n)",
        "(n;m)->(n)",
        "(1n)->(n)",
        "(-1)->(n)",
        "(n*2)->(n)",
        "(...,...)->(n)",
        "((n))->(n)",
        "(n)=>(n)",
        "(n)->(n) # more",
    ],
)
def test_what_is_no_signature_is_refused_with_one_that_is(text):
    with pytest.raises(
        ValueError, match="is not a signature; write one as in NumPy's ufuncs"
    ) as no:
        parse_signature(text)
    assert repr(text) in str(no.value)


DIMS = st.one_of(st.sampled_from(["n", "m", "batch_1", "é"]), st.integers(0, 99).map(str))
TENSORS = st.builds(
    lambda dims, at: TensorSignature(
        tuple(dims if at is None else [*dims[:at], "...", *dims[at:]]), "int8"
    ),
    st.lists(DIMS, max_size=3),
    st.sampled_from([None, 0, 1]),
)
SIGNATURES = st.builds(
    Signature,
    st.lists(TENSORS, min_size=1, max_size=3).map(tuple),
    st.lists(TENSORS, min_size=1, max_size=2).map(tuple),
)


@given(signature=SIGNATURES)
def test_what_is_written_is_read_back(signature):
    assert parse_signature(str(signature), "int8") == signature


@given(text=st.text(alphabet="()nm1,.-> ", max_size=20))
def test_any_text_is_read_or_refused(text):
    try:
        signature = parse_signature(text)
    except ValueError:
        return
    assert str(signature) == text.replace(" ", "")


# --- fitting -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "call"),
    [
        ("(b,m),(n,m),(n)->(b,n)", "(1,784),(128,784),(128)->(1,128)"),
        ("(b,m),(n,m),(n)->(b,n)", "(1,m),(n,m),(n)->(1,n)"),
        ("(b,m)->(b,m)", "(4,4)->(4,4)"),
        ("(...)->(...)", "(1,2,3)->(1,2,3)"),
        ("(...)->(...)", "()->()"),
        ("(...,n)->(...)", "(5,6,n)->(5,6)"),
        ("(a,...,b)->(b,...,a)", "(1,2,3,4)->(4,2,3,1)"),
        ("(1,128)->(1,128)", "(1,128)->(1,128)"),
        ("()->()", "()->()"),
        ("(n)->(n),(n)", "(4)->(4),(4)"),
    ],
)
def test_a_call_fits(pattern, call):
    assert fits(parse_signature(pattern), parse_signature(call))


@pytest.mark.parametrize(
    ("pattern", "call"),
    [
        ("(n)->(n)", "(4)->(5)"),
        ("(n)->(n)", "(4,4)->(4,4)"),
        ("(n)->(n)", "(4),(4)->(4)"),
        ("(n),(n)->(n)", "(4)->(4)"),
        ("(n)->(n)", "(4)->(4),(4)"),
        ("(n)->(n),(n)", "(4)->(4)"),
        ("(n)->(n)", "(n)->(m)"),
        ("(128)->(128)", "(n)->(n)"),
        ("(128)->(128)", "(64)->(64)"),
        ("(...)->(...)", "(1,2)->(2,1)"),
        ("(...)->(...)", "(1,2)->(1)"),
        ("(...,n)->(...,n)", "()->()"),
        ("(a,...,a)->(a)", "(1,2,3)->(1)"),
        ("(b,m),(n,m),(n)->(b,n)", "(1,784),(128,700),(128)->(1,128)"),
    ],
)
def test_a_call_does_not_fit(pattern, call):
    assert not fits(parse_signature(pattern), parse_signature(call))


@pytest.mark.parametrize(("out", "does_fit"), [("4 * 2", True), ("n * 2", False), ("9", False)])
def test_a_size_made_of_others_is_no_free_name(out, does_fit):
    pattern = Signature(
        (TensorSignature(("n",), "float32"),), (TensorSignature(("n * 2",), "float32"),)
    )
    call = Signature((TensorSignature(("4",), "float32"),), (TensorSignature((out,), "float32"),))
    assert fits(pattern, call) is does_fit


def test_dtypes_must_be_the_same():
    assert not fits(parse_signature("(n)->(n)", "float32"), parse_signature("(n)->(n)", "float16"))


@given(signature=SIGNATURES)
def test_a_signature_fits_itself_when_its_sizes_are_known(signature):
    sizes = {"n": "3", "m": "4", "batch_1": "5", "é": "6"}

    def sized(tensor):
        dims = (["7", "8"] if d == "..." else [sizes.get(d, d)] for d in tensor.dims)
        return TensorSignature(tuple(d for group in dims for d in group), tensor.dtype)

    call = Signature(tuple(map(sized, signature.inputs)), tuple(map(sized, signature.outputs)))
    assert fits(signature, call)
    more = Signature((*call.inputs, TensorSignature((), "int8")), call.outputs)
    assert not fits(signature, more)
    first, *rest = call.inputs
    other = Signature((TensorSignature(first.dims, "bool"), *rest), call.outputs)
    assert not fits(signature, other)


# --- taking from a module ----------------------------------------------------------------------


def test_a_prim_func_writes_its_last_parameters(modules):
    assert (
        str(signature_of_prim_func(MyModuleStatic["linear0"], 1))
        == "(1,784),(128,784),(128)->(1,128)"
    )
    assert str(signature_of_prim_func(MyModule["linear0"], 1)) == "(1,m),(n,m),(n)->(1,n)"
    assert str(signature_of_prim_func(modules.TwoOutputs["split"], 2)) == "(4)->(4),(4)"
    assert [t.dtype for t in signature_of_prim_func(modules.TwoOutputs["split"], 2).outputs] == [
        "float32",
        "int32",
    ]
    assert str(signature_of_prim_func(modules.TwoOutputs["split"], 0)) == "(4),(4),(4)->"


def test_a_prim_func_with_a_number_among_its_parameters_has_no_signature(modules):
    assert signature_of_prim_func(modules.Half["times"], 1) is None


def test_a_call_has_the_signature_of_its_arguments(modules):
    assert str(signature_of_call(call_of(MyModuleStatic, "out"))) == "(1,128),(10,128),(10)->(1,10)"
    assert str(signature_of_call(call_of(MyModule, "lv1"))) == "(1,n)->(1,n)"
    assert str(signature_of_call(call_of(modules.TwoOutputs, "both"))) == "(4)->(4),(4)"
    assert signature_of_call(call_of(modules.Half, "doubled")).inputs[0].dtype == "float16"


def test_a_call_with_what_is_no_tensor_of_known_shape_has_no_signature(modules):
    assert signature_of_call(call_of(modules.Half, "scaled")) is None

# ruff: noqa: N803, N805, N806, N812
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""A function of TVM, written as NumPy, does what TVM's own build of it does."""

import re
from typing import Any

import numpy as np
import pytest
import tvm
from numpy.typing import NDArray
from tvm import ir, relax, s_tir, tirx
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

import irviz
from irviz.course import mlp_static, mlp_symbolic, mm_relu, te_functions
from tests.ir.numpy_code.topi_operators import OPERATORS, prim_func

_SIZE = 5
"""What symbolic sizes are."""


def _arrays(function: tirx.PrimFunc) -> list[NDArray[Any]]:
    random = np.random.default_rng(0)
    found = []
    for param in function.params:
        shape = [int(size) if isinstance(size, tirx.IntImm) else _SIZE for size in param.ty.shape]
        dtype = str(param.ty.dtype)
        values = (
            random.integers(0, 2, shape) if "int" in dtype else 0.1 + 0.8 * random.random(shape)
        )
        found.append(values.astype(dtype))
    return found


def _assert_alike(functions: dict[str, tirx.PrimFunc]) -> None:
    """Run all functions as NumPy and as TVM builds them, and compare what they write."""
    symbols = {f"f{number}": one for number, one in enumerate(functions.values())}
    mod = {symbol: one.with_attr("global_symbol", symbol) for symbol, one in symbols.items()}
    built = tvm.compile(ir.IRModule(mod), target="llvm")
    for name, (symbol, function) in zip(functions, symbols.items(), strict=True):
        arrays = _arrays(function)
        tensors = [tvm.runtime.tensor(one) for one in arrays]
        built[symbol](*tensors)
        program = irviz.to_numpy(function)
        with np.errstate(all="ignore"):
            program.compile()(*arrays)
        for ours, tvms in zip(arrays, tensors, strict=True):
            np.testing.assert_allclose(
                ours, tvms.numpy(), rtol=1e-5, atol=1e-6, err_msg=f"{name}\n{program}"
            )


def _prim_funcs(mod: ir.IRModule) -> dict[str, tirx.PrimFunc]:
    return {
        gvar.name_hint: one for gvar, one in mod.functions.items() if isinstance(one, tirx.PrimFunc)
    }


def test_the_lecture_reads_its_linear_layer_as_it_wrote_it_by_hand() -> None:
    program = irviz.to_numpy(mlp_static.MyModuleStatic, "linear0")

    assert str(program) == (
        "import numpy as np\n"
        "\n"
        "\n"
        "def lnumpy_linear0(X: np.ndarray, W: np.ndarray, B: np.ndarray, Z: np.ndarray):\n"
        "    Y = np.empty((1, 128), dtype='float32')\n"
        "    for i in range(1):\n"
        "        for j in range(128):\n"
        "            for k in range(784):\n"
        "                if k == 0:\n"
        "                    Y[i, j] = 0.0\n"
        "                Y[i, j] = Y[i, j] + X[i, k] * W[j, k]\n"
        "    for i in range(1):\n"
        "        for j in range(128):\n"
        "            Z[i, j] = Y[i, j] + B[j]\n"
    )


@pytest.mark.build
def test_every_primfunc_of_the_course_does_the_same_in_numpy() -> None:
    small = te_functions.matmul(8), te_functions.matmul_relu(8)
    functions = {f"{number}": one for number, one in enumerate(small)}
    for module in (mlp_static.MyModuleStatic, mlp_symbolic.PrimFuncs):
        functions |= _prim_funcs(module)

    _assert_alike(functions)


@pytest.mark.build
def test_the_operators_of_topi_do_the_same_in_numpy() -> None:
    assert len(OPERATORS) >= 60
    _assert_alike({name: prim_func(operator()) for name, operator in OPERATORS.items()})


def _model() -> ir.IRModule:
    """Return operators that a model's layers are made of, legalised to PrimFuncs."""
    builder = relax.BlockBuilder()
    image = relax.Var("image", R.Tensor((1, 4, 6, 6), "float32"))
    kernel = relax.Var("kernel", R.Tensor((4, 4, 3, 3), "float32"))
    weight = relax.Var("weight", R.Tensor((9, 4), "float32"))
    tokens = relax.Var("tokens", R.Tensor((1, 3), "int32"))
    scale = relax.Var("scale", R.Tensor((4,), "float32"))
    op = relax.op
    with builder.function("main", [image, kernel, weight, tokens, scale]):
        with builder.dataflow():
            x = builder.emit(op.nn.conv2d(image, kernel, padding=1))
            x = builder.emit(op.nn.group_norm(x, scale, scale, 2, 1, [2, 3]))
            x = builder.emit(op.nn.silu(x))
            x = builder.emit(op.nn.max_pool2d(x, [2, 2], [2, 2]))
            flat = builder.emit(op.permute_dims(op.reshape(x, (1, 4, 9)), [0, 2, 1]))
            q = builder.emit(op.nn.layer_norm(flat, scale, scale, axes=[-1]))
            s = builder.emit(op.nn.softmax(op.matmul(q, op.permute_dims(q, [0, 2, 1]))))
            y = builder.emit(op.nn.gelu(op.matmul(s, q)))
            words = builder.emit(op.take(weight, tokens, axis=0, mode="clip"))
            y = builder.emit(op.add(op.mean(y, [1], keepdims=True), op.cumsum(words, axis=1)))
            y = builder.emit(op.concat([y, op.tril(op.strided_slice(y, [1], [0], [2]))], axis=1))
            found = builder.emit_output(op.argmax(y, axis=1))
        builder.emit_func_output(found)
    return relax.transform.LegalizeOps()(builder.get())


@pytest.mark.build
def test_what_legalisation_makes_of_a_model_does_the_same_in_numpy() -> None:
    _assert_alike(_prim_funcs(_model()))


@pytest.mark.build
def test_a_schedule_changes_the_loops_and_not_the_result() -> None:
    schedule = s_tir.Schedule(te_functions.matmul_relu(8))
    block = schedule.get_sblock("matmul")
    i, j, k = schedule.get_loops(block)
    j0, j1 = schedule.split(j, factors=[None, 3])  # which needs a predicate
    schedule.reorder(j0, k, j1)
    schedule.fuse(i, j0)
    schedule.vectorize(j1)
    schedule.cache_read(block, 0, "global")
    states = {"split": schedule.mod["main"]}
    schedule.decompose_reduction(block, k)
    states["decomposed"] = schedule.mod["main"]
    schedule = s_tir.Schedule(te_functions.matmul_relu(8))
    block = schedule.get_sblock("matmul")
    *_, k = schedule.get_loops(block)
    schedule.rfactor(schedule.split(k, factors=[2, None])[0], 0)
    states["rfactor"] = schedule.mod["main"]
    passes = "LowerInitBlock", "ConvertBlocksToOpaque", "LowerOpaqueBlock"
    lowering = [getattr(s_tir.transform, name)() for name in passes]
    lowering += [tirx.transform.FlattenBuffer()]
    flattened = tvm.transform.Sequential(lowering)(schedule.mod)
    states["flattened"] = flattened["main"]
    assert ".reshape(" in str(irviz.to_numpy(states["flattened"]))

    _assert_alike(states)


def test_a_relax_function_allocates_the_outputs_of_its_calls() -> None:
    program = irviz.to_numpy(mlp_symbolic.MyModule)
    x, w0, b0, w1, b1 = (
        np.random.default_rng(0).random(shape).astype("float32")
        for shape in ((1, 6), (4, 6), (4,), (3, 4), (3,))
    )

    found = program.compile()(x, w0, b0, w1, b1)

    np.testing.assert_allclose(found, np.maximum(x @ w0.T + b0, 0) @ w1.T + b1, rtol=1e-6)
    lines = [line.strip() for line in str(program).splitlines()]
    at = lines.index("lv1 = np.empty((1, n), dtype='float32')")
    assert lines[at + 1] == "lnumpy_relu0(lv0, lv1)"


def test_each_output_of_a_call_gets_its_array() -> None:
    @I.ir_module
    class Module:
        @T.prim_func(private=True, s_tir=True)
        def both(x: T.handle, low: T.handle, high: T.handle):
            m = T.int64()
            X = T.match_buffer(x, (m,), "float32")
            L = T.match_buffer(low, (m,), "float32")
            H = T.match_buffer(high, (m,), "float32")
            for i in range(m):
                with T.sblock("both"):
                    v = T.axis.spatial(m, i)
                    L[v] = X[v] - T.float32(1)
                    H[v] = X[v] + T.float32(1)

        @R.function
        def main(x: R.Tensor(("m",), "float32")) -> R.Tensor(("m",), "float32"):
            m = T.int64()
            with R.dataflow():
                pair = R.call_tir(
                    Module.both, (x,), [R.Tensor((m,), "float32"), R.Tensor((m,), "float32")]
                )
                high = pair[1]
                R.output(high)
            return high

    found = irviz.to_numpy(Module).compile()(np.float32([1, 2, 3]))

    assert found.tolist() == [2, 3, 4]


def test_bound_parameters_are_the_programs_constants() -> None:
    weights = {
        "w0": np.ones((2, 3), "float32"),
        "b0": np.full(2, 0.5, "float32"),
        "w1": np.ones((1, 2), "float32"),
        "b1": np.zeros(1, "float32"),
    }
    bound = relax.transform.BindParams("main", weights)(mlp_symbolic.MyModule)

    program = irviz.to_numpy(bound)

    assert program.compile()(np.ones((1, 3), "float32")).tolist() == [[7.0]]
    assert len(program.constants) == len(weights)


@T.prim_func(s_tir=True)
def _calling_c(A: T.Buffer((4,), "float32")):
    T.func_attr({"global_symbol": "calling_c"})
    for i in range(4):
        A[i] = T.float32(1)
        T.evaluate(T.call_extern("int32", "puts", A.data))


def test_what_cannot_be_written_says_which_construct_and_line() -> None:
    with pytest.raises(irviz.NumPyError, match="call_extern") as caught:
        irviz.to_numpy(_calling_c)

    number = int(re.findall(r"line (\d+) ", str(caught.value))[0])
    assert "call_extern" in _calling_c.script().splitlines()[number - 1]


def test_more_loops_than_python_can_indent_are_told_in_words() -> None:
    function = mm_relu.MyModule["mm_relu"]
    body = function.body
    for number in range(120):
        loop = tirx.Var(f"n{number}", "int32")
        body = tirx.For(loop, 0, 1, tirx.ForKind.SERIAL, body)
    with pytest.raises(irviz.NumPyError, match="too many levels of indentation"):
        irviz.to_numpy(function.with_body(body))


def test_an_operator_says_that_it_is_to_be_legalised_first() -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((4,), "float32"))
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.nn.relu(x)))

    with pytest.raises(irviz.NumPyError, match=r"relax\.nn\.relu.*LegalizeOps"):
        irviz.to_numpy(builder.get())


def test_a_library_function_says_that_its_code_is_not_there() -> None:
    with pytest.raises(irviz.NumPyError, match=r"'lv0'.*library function 'env\.linear'"):
        irviz.to_numpy(mlp_symbolic.MyModuleWithExternCall)


def test_a_function_that_is_not_there_is_said() -> None:
    with pytest.raises(irviz.NotFoundError, match="no function 'other'"):
        irviz.to_numpy(mm_relu.MyModule, "other")

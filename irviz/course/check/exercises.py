"""The exercises of the notebooks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from pkgutil import resolve_name
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

import numpy as np
import tvm_ffi
from numpy.typing import NDArray
from tvm import ir, relax, s_tir, te, tirx

from irviz.course.check.check_answers import (
    WrongAnswerError,
    block_of_sums,
    blocks_with_loops,
    call_answer,
    exercise,
    expect_callable,
    expect_close,
    expect_module,
    expressions,
    named,
    operator,
    operators,
    random_arrays,
    run,
    transform,
)
from irviz.course.digits import digits, mlp_params
from irviz.course.graph_rewrites import main_of
from irviz.course.mlp import MyModuleHighLevel
from irviz.course.te_functions import batch_matmul_relu, vector_add
from irviz.ir.module_functions import prim_funcs, relax_functions
from irviz.ir.symbolic_shapes import evaluate_dim
from irviz.ir.tir_statements import used_vars, walk_statements
from irviz.model.graph.graph import Resolution
from irviz.model.loop_nest import AxisKind, Loop, LoopKind
from irviz.session.session import Session

_SIZES = (1, 7, 128, 1000)


@exercise(
    "Another activation",
    "A PrimFunc of X and Y, of the shape (1, n) for any n, that writes max(x, 0.1x).",
)
def leaky_relu(answer: tirx.PrimFunc) -> str:
    """Check a PrimFunc that computes a leaky ReLU."""
    if not isinstance(answer, tirx.PrimFunc):
        raise WrongAnswerError(
            f"The answer is {named(answer)}.",
            "relu0 of MyModule is a PrimFunc to begin with: MyModule['relu0'].",
        )
    if len(answer.params) != 2:
        raise WrongAnswerError(
            f"The PrimFunc has {len(answer.params)} parameters.",
            "Like relu0 it takes two: it reads X, and writes Y.",
        )
    module = ir.IRModule({"leaky_relu": answer})
    for size in _SIZES:
        (x,) = random_arrays(size, x=(1, size)).values()
        expect_close(
            run(module, {answer.params[0].name: x}, "leaky_relu"),
            np.maximum(x, np.float32(0.1) * x),
            f"Y, for n = {size},",
            "Negative numbers are not 0 now, but a tenth of what they were.",
        )
    return f"It computes max(x, 0.1x), for n = {', '.join(map(str, _SIZES))}."


_RESOLUTIONS = {Resolution.PRIM_FUNC: "PrimFunc"}


@exercise(
    "The other mixture",
    "A module whose main calls the library's env.linear for the first layer, and PrimFuncs of the "
    "module for the ReLU and the last layer.",
)
def other_mixture(answer: ir.IRModule) -> str:
    """Check a module that leaves the first layer of the MLP to the library."""
    images = digits().images[:8]
    session = Session(expect_module(answer), params=mlp_params(), inputs=images)
    calls = [node for node in session.graph().nodes if node.callee]
    found = [node.resolution for node in calls]
    mixed = [Resolution.LIBRARY, Resolution.PRIM_FUNC, Resolution.PRIM_FUNC]
    if found != mixed or calls[0].callee != "env.linear":
        words = ", ".join(
            f"{node.callee} ({_RESOLUTIONS.get(node.resolution, node.resolution.value)})"
            for node in calls
            if node.resolution
        )
        raise WrongAnswerError(
            f"main calls {words or 'nothing'}.",
            "MyModuleMixture has it the other way round: exchange the names of its callees.",
        )
    w0, b0, w1, b1 = mlp_params().values()
    expect_close(
        session.run().outputs[0][:, 0],
        np.maximum(images @ w0.T + b0, 0) @ w1.T + b1,
        "main",
        "Do all three calls get the parameters that they got before?",
    )
    return "main calls env.linear and two PrimFuncs, and computes what the MLP computes."


_LAYERS = ((1, 3, 4), (2, 5, 3))
_SLOPES = (0.1, 0.5)


@exercise(
    "A linear layer",
    "A function of tensors x (n, k), w (m, k) and b (m,) that returns the tensor expression "
    "x @ w.T + b.",
)
def te_linear(answer: Callable[..., Any]) -> str:
    """Check a tensor expression of a linear layer."""
    for n, k, m in _LAYERS:
        arrays = random_arrays(0, x=(n, k), w=(m, k), b=(m,))
        inputs = [te.placeholder(one.shape, "float32", name) for name, one in arrays.items()]
        made = call_answer(answer, *inputs)
        if not isinstance(made, te.Tensor):
            raise WrongAnswerError(
                f"The answer returned {named(made)}.",
                "te.compute(shape, lambda i, j: …) makes a tensor; return it.",
            )
        if made in inputs:
            raise WrongAnswerError(
                f"The answer returned its argument {made.op.name}.", "Return what is computed."
            )
        prim_func = call_answer(te.create_prim_func, [*inputs, made])
        expect_close(
            run(ir.IRModule({"linear": prim_func}), arrays, "linear"),
            arrays["x"] @ arrays["w"].T + arrays["b"],
            f"The layer of {k} inputs and {m} outputs",
            "w is (m, k): which of its axes is summed over? b is added to each sum once.",
        )
    return "It computes x @ w.T + b for layers of any size."


@exercise(
    "A rule for LeakyReLU",
    "A rule(builder, operands, module) that emits max(x, slope · x), with the slope of the module.",
)
def leaky_relu_rule(answer: Callable[..., Any]) -> str:
    """Check a rule of the importer for torch.nn.LeakyReLU."""
    arrays = random_arrays(0, x=(2, 3))
    x = arrays["x"]

    def emitted(slope: float, operand: relax.Var) -> relax.Var:
        layer = SimpleNamespace(negative_slope=slope)
        value = call_answer(answer, relax.BlockBuilder.current(), [operand], layer)
        if not isinstance(value, relax.Var):
            raise WrongAnswerError(
                f"The rule returned {named(value)}.",
                "builder.emit(…) and builder.emit_te(…) return a variable; return it.",
            )
        return value

    for slope in _SLOPES:
        made = call_answer(_module, partial(emitted, slope), arrays)  # a rule can end blocks
        expect_close(
            run(made, arrays),
            np.maximum(x, np.float32(slope) * x),
            f"With a slope of {slope}, the result",
            "module.negative_slope is what negative numbers are multiplied by.",
        )
    return f"It computes max(x, slope · x), for slopes of {' and '.join(map(str, _SLOPES))}."


_CALL_TIR = "relax.call_tir"


@exercise(
    "The last pure program",
    "The module of the MLP in which all seven operators are call_tir of PrimFuncs, and nothing "
    "has been allocated yet.",
)
def pure_calls(answer: ir.IRModule) -> str:
    """Check a module of the recording, or any other that says the same."""
    found = operators(expect_module(answer), "main")
    if found != Counter({_CALL_TIR: 7}):
        raise WrongAnswerError(
            f"main has {_named(found)}.",
            "Which pass turns operators into call_tir, and which takes call_tir away?",
        )
    _expect_scores(answer)
    return "main has seven call_tir, each of a PrimFunc, and computes what the MLP computes."


@exercise(
    "A pipeline of your own",
    "A pass that lowers the MLP to at most four call_tir of PrimFuncs, and leaves no operator.",
)
def fused_pipeline(answer: Callable[..., Any]) -> str:
    """Check a pass that lowers the MLP and fuses its layers."""
    made = transform(answer, MyModuleHighLevel)
    _expect_few_calls(made)
    _expect_scores(made)
    arrays = random_arrays(0, x=(1, 6), w0=(5, 6), b0=(5,), w1=(3, 5), b1=(3,))
    small = _module(_small_mlp, arrays)
    made_of_small = transform(answer, small)
    _expect_few_calls(made_of_small)
    types, made_types = (
        [each.ty for each in module["main"].params] for module in (small, made_of_small)
    )
    hint = "A pass makes its module from the one that it gets: is there a ready one in the answer?"
    if not tvm_ffi.structural_equal(types, made_types):
        raise WrongAnswerError("Given another network, the answer gave other parameters.", hint)
    expect_close(run(made_of_small, arrays), run(small, arrays), "Another network", hint)
    return f"main has {_named(operators(made, 'main'))}, and computes what the MLP computes."


def _expect_few_calls(module: ir.IRModule) -> None:
    found = operators(module, "main")
    if set(found) != {_CALL_TIR}:
        raise WrongAnswerError(
            f"main has {_named(found)}.",
            "LegalizeOps makes call_tir; FuseTIR makes one PrimFunc of a fused function.",
        )
    if found[_CALL_TIR] > 4:
        raise WrongAnswerError(
            f"main has {_named(found)}.",
            "FuseOps fuses only what AnnotateTIROpPattern has looked at before.",
        )


def _small_mlp(
    x: relax.Var, w0: relax.Var, b0: relax.Var, w1: relax.Var, b1: relax.Var
) -> relax.Expr:
    hidden = _OPS.nn.relu(_OPS.add(_OPS.matmul(x, _OPS.permute_dims(w0)), b0))
    return _OPS.add(_OPS.matmul(hidden, _OPS.permute_dims(w1)), b1)


def _expect_scores(module: ir.IRModule) -> None:
    if not prim_funcs(module):
        raise WrongAnswerError(
            "The module has no PrimFunc.", "A call of a PrimFunc needs it in the same module."
        )
    arrays = {"x": digits().images[:1], **mlp_params()}
    expect_close(
        run(module, arrays),
        run(MyModuleHighLevel, arrays),
        "main",
        "Compare stages in a session: first_difference names the node.",
    )


def _named(found: Counter[str]) -> str:
    """Return operators with their counts, for a sentence."""
    counts = (f"{count} {name or 'calls of the runtime'}" for name, count in found.items())
    return ", ".join(counts).replace("GlobalVar", "calls of functions") or "no call at all"


_CLASSES = 10
"""The digits, so many are the results of the last layer."""

_ROUNDING = 5e-3
"""The largest error that float16 explains, in units of the largest score."""


@exercise(
    "Half the memory only",
    "A pass after which the MLP has four constants of float16, all operators still compute in "
    "float32, and the scores are those of before but for rounding.",
)
def half_weights(answer: Callable[..., Any]) -> str:
    """Check a pass that stores the weights of the MLP in float16."""
    return f"The weights take half the memory. {_expect_of_mlps(answer, _expect_half_constants)}"


def _expect_half_constants(made: ir.IRModule) -> None:
    kept = [one.ty.dtype for one in expressions(made, ir.GenericConst)]
    if len(kept) != len(mlp_params()) or {*map(str, kept)} != {"float16"}:
        raise WrongAnswerError(
            f"The constants are {', '.join(map(str, kept)) or 'gone'}.",
            "visit_generic_const_ gets each constant; constant.value.numpy() is its array.",
        )
    for call in expressions(made, ir.Call):
        if isinstance(call.op, ir.Op) and call.op.name != "relax.astype":
            for verb, one in (("computes in", call), *(("takes", each) for each in call.args)):
                if str(getattr(one.ty, "dtype", "")) == "float16":
                    raise WrongAnswerError(
                        f"{call.op.name} {verb} float16.",
                        "What takes the place of a constant has to be float32: cast it back.",
                    )


@exercise(
    "Exact sums",
    "A pass after which the matmul of the first layer takes float16 and gives float32, the one of "
    "the last layer takes float32, and the scores are those of before but for rounding.",
)
def exact_sums(answer: Callable[..., Any]) -> str:
    """Check a pass that casts the operands of one product, but not its result."""
    rounded = _expect_of_mlps(answer, _expect_exact_products)
    return f"The first product takes float16 and adds up in float32. {rounded}"


def _expect_exact_products(made: ir.IRModule) -> None:
    products = [call for call in expressions(made, ir.Call) if operator(call) == "relax.matmul"]
    if len(products) != 2:
        raise WrongAnswerError(
            f"The module has {len(products)} matmul.", "Leave the products in, and cast operands."
        )
    for call in products:
        given = [str(each.ty.dtype) for each in call.args]
        sizes = getattr(call.ty.shape, "values", None) or [None]
        is_last = getattr(sizes[-1], "value", None) == _CLASSES
        layer, wanted = ("last", "float32") if is_last else ("first", "float16")
        if given != [wanted, wanted] or str(call.ty.dtype) != "float32":
            raise WrongAnswerError(
                f"The matmul of the {layer} layer takes {' and '.join(given)}, and gives "
                f"{call.ty.dtype}.",
                "ToMixedPrecision treats all alike; a mutator can look at the shape of each call. "
                "matmul has an out_dtype.",
            )


def _expect_of_mlps(answer: Callable[..., Any], expect: Callable[[ir.IRModule], None]) -> str:
    """Check what a pass makes of the MLP with its weights and with others.

    Returns:
        How far the scores of a digit are from those in float32.
    """
    image = {"x": digits().images[:1]}
    errors = []
    weights = mlp_params()
    others = {name: np.ascontiguousarray(array[::-1]) for name, array in weights.items()}
    for given, params, hint in (
        ("", weights, f"Rounding to float16 explains {_ROUNDING:.1%}: are all weights in place?"),
        ("Given other weights: ", others, "A pass makes its module from the one that it gets."),
    ):
        bound = relax.transform.BindParams("main", params)(MyModuleHighLevel)
        made = transform(answer, bound)
        expect(made)
        scores = run(bound, image)
        error = float(np.abs(run(made, image) - scores).max() / np.abs(scores).max())
        if not error <= _ROUNDING:
            raise WrongAnswerError(
                f"{given}The scores of a digit differ by {error:.1%} of the largest.", hint
            )
        errors.append(error)
    return f"The scores of a digit differ by {errors[0]:.2%} of the largest."


_OPS: Final = relax.op


class _Sum(NamedTuple):
    """An expression, written once for Relax's operators and for NumPy's functions.

    It is to become as many ewise_fma as `fused` says, and as many `products` are to stay.
    """

    build: Callable[..., Any]
    fused: int
    products: int


_SUMS: Final = {
    "x * y + z": _Sum(lambda op, x, y, z: op.add(op.multiply(x, y), z), 1, 0),
    "z + x * y": _Sum(lambda op, x, y, z: op.add(z, op.multiply(x, y)), 1, 0),
    "x * y + y * z": _Sum(lambda op, x, y, z: op.add(op.multiply(x, y), op.multiply(y, z)), 1, 1),
    "(x + y) * z": _Sum(lambda op, x, y, z: op.multiply(op.add(x, y), z), 0, 1),
    "x + y + z": _Sum(lambda op, x, y, z: op.add(op.add(x, y), z), 0, 0),
    "x * y - z": _Sum(lambda op, x, y, z: op.subtract(op.multiply(x, y), z), 0, 1),
}


@exercise(
    "Either operand",
    "A pass that makes one ewise_fma of a multiplication and an addition, whichever operand of "
    "the addition the product is, and leaves everything else as it is.",
)
def multiply_add(answer: Callable[..., Any]) -> str:
    """Check a pass that fuses x * y + z and z + x * y."""
    arrays = random_arrays(0, x=(3, 4), y=(3, 4), z=(3, 4))
    for text, (build, fused, products) in _SUMS.items():
        made = transform(answer, _module(lambda *inputs, build=build: build(_OPS, *inputs), arrays))
        lowered = relax.transform.LegalizeOps({"relax.ewise_fma": _lower_fma})(made)
        expect_close(
            run(lowered, arrays),
            build(np, *arrays.values()),
            f"After the pass, {text}",
            "ewise_fma(a, b, c) is a * b + c: which variable belongs in which place?",
        )
        found = operators(made, "main")
        if found["relax.ewise_fma"] != fused:
            raise WrongAnswerError(
                f"{text} became {found['relax.ewise_fma']} ewise_fma and has "
                f"{found['relax.add']} add.",
                "Look up the value of each operand: the product can be args[0] or args[1]."
                if fused
                else "Only an addition of a product may be rewritten.",
            )
        if found["relax.multiply"] != products:
            raise WrongAnswerError(
                f"{text} has {found['relax.multiply']} multiply after the pass, not {products}.",
                "Nobody needs a product any more that went into ewise_fma: "
                "relax.analysis.remove_all_unused takes it out.",
            )
    return "All sums of a product are one ewise_fma, and all results are as before."


@exercise(
    "Only where nobody else needs it",
    "A pass that fuses a linear layer with its ReLU, but computes no product twice where the "
    "product is used outside too.",
)
def fuse_unless_shared(answer: Callable[..., Any]) -> str:
    """Check a pass that fuses linear layers with ReLU, unless a value inside has other users."""
    arrays = {"x": digits().images[:1], **mlp_params()}
    for name, module in {
        "the MLP": MyModuleHighLevel,
        "the network with a shared product": _module(_shared_product, arrays),
    }.items():
        made = transform(answer, module)
        expect_close(
            run(made, arrays), run(module, arrays), f"After the pass, {name}",
            "Compare stages in a session: first_difference names the node.",
        )  # fmt: skip
        before, after = (operators(each)["relax.matmul"] for each in (module, made))
        if after > before:
            raise WrongAnswerError(
                f"{name} has {after} matmul, and had {before}.",
                "relax.analysis.udchain(block) has the users of each variable: are all inside?",
            )
        layer = {"relax.permute_dims", "relax.matmul", "relax.add", "relax.nn.relu"}
        found = [operators(made, each) for each in relax_functions(made) if each != "main"]
        if name == "the MLP" and Counter(layer) not in found:
            inside = "; ".join(", ".join(sorted(each.elements())) for each in found)
            raise WrongAnswerError(
                f"In {name}, the functions beside main have: {inside or 'nothing'}.",
                "Its first layer is to be one function: nothing in it is used outside.",
            )
    return "The MLP's first layer is one call, and the shared product is computed once."


def _module(build: Callable[..., relax.Expr], arrays: dict[str, Any]) -> ir.IRModule:
    """Return a module with a `main` of parameters like these arrays, which are in float32."""
    return main_of(build, **{name: array.shape for name, array in arrays.items()})


def _shared_product(
    x: relax.Var, w0: relax.Var, b0: relax.Var, w1: relax.Var, b1: relax.Var
) -> relax.Expr:
    """Return the MLP with x @ w0.T added once more after the ReLU."""
    product = _OPS.matmul(x, _OPS.permute_dims(w0))
    hidden = _OPS.add(_OPS.nn.relu(_OPS.add(product, b0)), product)
    return _OPS.add(_OPS.matmul(hidden, _OPS.permute_dims(w1)), b1)


def _lower_fma(builder: relax.BlockBuilder, call: ir.Call) -> relax.Expr:
    def fma(a: te.Tensor, b: te.Tensor, c: te.Tensor) -> te.Tensor:
        return te.compute(a.shape, lambda *place: a(*place) * b(*place) + c(*place))

    return builder.call_te(fma, *call.args)


@exercise(
    "Whole rows",
    "A schedule of mm_relu with three loops around block Y, from outside to inside i, k, j.",
)
def loop_order(answer: Callable[..., Any]) -> str:
    """Check a schedule of mm_relu that reorders the loops of block Y."""
    prim_func = resolve_name("irviz.course.mm_relu:MyModule")["mm_relu"]
    sums = block_of_sums(_schedule_product(answer, prim_func, (128, 128)))
    order = [" and ".join(sums.axes(loop)) or "nothing" for loop in sums.loops]
    if order != ["vi", "vk", "vj"]:
        raise WrongAnswerError(
            f"From outside to inside, the {len(order)} loops of Y run over {', '.join(order)}.",
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
    scheduled = _schedule_product(answer, batch_matmul_relu(), (4, 32, 32))
    sums = block_of_sums(scheduled)
    outer, inner = sums.loops[0], sums.loops[-1]
    kinds = _kinds(sums.loops)
    if outer.kind is not LoopKind.PARALLEL or "v_n" not in sums.axes(outer):
        raise WrongAnswerError(
            f"The loops of matmul are {kinds}.",
            "parallel takes the outermost loop, before decompose_reduction.",
        )
    if inner.kind is not LoopKind.VECTORIZED:
        raise WrongAnswerError(
            f"The loops of matmul are {kinds}.",
            "The innermost loop must not be the sum: reorder first, then vectorize.",
        )
    for word, loop in (("parallel", outer), ("vectorized", inner)):
        if loop.extent == "1":
            raise WrongAnswerError(
                f"The {word} loop {loop.variable} has one step only.",
                "There is nothing to share out: give the loop more steps when you split.",
            )
    if sums.block.init:
        raise WrongAnswerError(
            "The sums are still set to 0 within the loop that adds to them.",
            "decompose_reduction(block, loop) puts that before a loop.",
        )
    nests = blocks_with_loops(scheduled)
    around_relu = [nest.loops[0].id for nest in nests if nest.loops and nest.block.name == "relu"]
    if outer.id not in around_relu:
        raise WrongAnswerError(
            "The ReLU is not inside of the loop over the batches.",
            "reverse_compute_at(block, loop) moves a block to where its input is made.",
        )
    return f"The loops of matmul are {kinds}, with the ReLU inside. The result is equal."


def _kinds(loops: tuple[Loop, ...]) -> str:
    return ", ".join(f"{loop.variable} {loop.kind.value}" for loop in loops)


def _schedule_product(
    answer: Callable[..., Any], prim_func: tirx.PrimFunc, shape: tuple[int, ...]
) -> tirx.PrimFunc:
    """Return a function of max(A @ B, 0) as the answer schedules it."""
    arrays = random_arrays(0, A=shape, B=shape)
    return _schedule(answer, prim_func, arrays, np.maximum(arrays["A"] @ arrays["B"], 0))


def _schedule(
    answer: Callable[..., Any],
    prim_func: tirx.PrimFunc,
    arrays: dict[str, NDArray[np.float32]],
    expected: NDArray[np.float32],
) -> tirx.PrimFunc:
    """Return the function as the answer schedules it; it has to compute what is expected."""
    expect_callable(answer)
    session = Session(ir.IRModule({"program": prim_func}), inputs=arrays)
    session = call_answer(session.schedule, "program", answer)
    if len(session.stages) == 1:
        raise WrongAnswerError(
            "The program is as it was: no primitive was called.",
            "A schedule calls primitives of sch, such as sch.reorder(…); it returns nothing.",
        )
    expect_close(
        session.run().outputs[0][0],
        expected,
        "The scheduled program",
        "Take out the primitives one by one: which of them changes the result?",
    )
    scheduled: tirx.PrimFunc = session.current.module["program"]
    return scheduled


_AXES = {kind: kind.value for kind in (AxisKind.SPATIAL, AxisKind.REDUCTION)}


@exercise(
    "A row for all",
    "A PrimFunc of A (16, 32), B (32,) and C (16, 32) that writes A[i, j] + B[j], in a block whose "
    "axes say that all its iterations are independent.",
)
def add_row(answer: tirx.PrimFunc) -> str:
    """Check a PrimFunc that adds a vector to each row of a matrix."""
    if not isinstance(answer, tirx.PrimFunc):
        raise WrongAnswerError(
            f"The answer is {named(answer)}.", "@T.prim_func(s_tir=True) makes a PrimFunc."
        )
    if len(answer.params) != 3:
        raise WrongAnswerError(
            f"The PrimFunc has {len(answer.params)} parameters.",
            "It takes three: it reads A and B, and writes C.",
        )
    a, b = random_arrays(0, A=(16, 32), B=(32,)).values()
    names = [each.name for each in answer.params]
    expect_close(
        run(ir.IRModule({"add_row": answer}), {names[0]: a, names[1]: b}, "add_row"),
        a + b,
        "C",
        "Each of the 16 rows gets the same B: which of the two axes does B have?",
    )
    nests = blocks_with_loops(answer)
    if not nests:
        raise WrongAnswerError(
            "The PrimFunc has no block with axes.",
            "with T.sblock(…) and T.axis.remap(…) say what the loops alone do not.",
        )
    for nest in nests:
        for number, loop in enumerate(nest.loops):
            schedule = s_tir.Schedule(answer)
            block = schedule.get_sblock(nest.block.name)
            try:
                schedule.parallel(schedule.get_loops(block)[number])
            except s_tir.ScheduleError as refused:
                axes = ", ".join(
                    f"{axis.name} {_AXES.get(axis.kind, 'opaque')}" for axis in nest.block.axes
                )
                hint = 'No element of C needs another one, so each axis is spatial: "S" in remap.'
                if {axis.kind for axis in nest.block.axes} == {AxisKind.SPATIAL}:
                    hint = "The block reads C, which it writes: A and B are enough."
                raise WrongAnswerError(
                    f"TVM will not run the loop {loop.variable} in parallel. The axes of the block "
                    f"are {axes}.",
                    hint,
                ) from refused
    return "It adds B to each row of A, and TVM may run its loops in any order, or in parallel."


@exercise(
    "Three loops",
    "A schedule of the vector addition with three loops: the outermost of 4 steps and parallel, "
    "the innermost of 16 neighbours and vectorized.",
)
def three_loops(answer: Callable[..., Any]) -> str:
    """Check a schedule that cuts the loop of a vector addition into three."""
    arrays = random_arrays(0, A=(1024,), B=(1024,))
    scheduled = _schedule(answer, vector_add(), arrays, arrays["A"] + arrays["B"])
    nests = blocks_with_loops(scheduled)
    if len(nests) != 1 or len(nests[0].loops) != 3:
        found = " and ".join(str(len(nest.loops)) for nest in nests)
        raise WrongAnswerError(
            f"Loops around the block: {found or 'none'}.",
            "split(loop, factors=[4, None, 16]) makes three of one.",
        )
    loops = nests[0].loops
    if (loops[0].kind, loops[-1].kind) != (LoopKind.PARALLEL, LoopKind.VECTORIZED):
        raise WrongAnswerError(
            f"The loops are {_kinds(loops)}.",
            "parallel takes the first of the three, vectorize the last.",
        )
    steps = [loop.extent for loop in loops]
    if steps != ["4", "16", "16"]:
        raise WrongAnswerError(
            f"The loops have {', '.join(steps)} steps.",
            "The factors of split are the steps, from outside; one of them may be None.",
        )
    if _step(scheduled, loops[-1]) != 1:
        raise WrongAnswerError(
            f"The steps of {loops[-1].variable} are {_step(scheduled, loops[-1])} apart.",
            "The last loop of a split visits neighbours: do not reorder it.",
        )
    return f"The loops are {_kinds(loops)}. The result is equal."


def _step(prim_func: tirx.PrimFunc, loop: Loop) -> int:
    """Return how far apart two steps of a loop are on the only axis of the only block."""
    (realize,) = (
        each
        for each, _ in walk_statements(prim_func.body)
        if isinstance(each, s_tir.SBlockRealize) and each.block.iter_vars
    )
    (value,) = realize.iter_values
    start = {var.name: 0 for var in used_vars(value)}
    first, second = (evaluate_dim(value, {**start, loop.variable: step}) or 0 for step in (0, 1))
    return second - first

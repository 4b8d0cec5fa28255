# ruff: noqa: N805, N812, RET504
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""Modules as passes leave them: fused, composite, with planned memory, lifted or lowered."""

from collections.abc import Callable

import tvm
from tvm import IRModule, relax
from tvm.relax import transform
from tvm.relax.dpl import is_op, wildcard
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T


@I.ir_module
class Network:
    """A small network of operators, with what the passes below look for."""

    @R.function
    def main(
        x: R.Tensor((1, 4), "float32"),
        w: R.Tensor((4, 4), "float32"),
        b: R.Tensor((4,), "float32"),
    ):
        with R.dataflow():
            turned = R.permute_dims(w)
            product = R.matmul(x, turned)
            sum_ = R.add(product, b)
            active = R.nn.relu(sum_)
            again = R.matmul(active, turned)
            flat = R.reshape(again, R.shape([4]))
            R.output(flat)
        return flat


@I.ir_module
class SymbolicNetwork:
    """The same with a size that is not known, and a shape that is computed."""

    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 4), "float32")):
        n = T.int64()
        with R.dataflow():
            product = R.matmul(x, w)
            active = R.nn.relu(product)
            flat = R.reshape(active, R.shape([n * 4]))
            R.output(flat)
        cast = R.match_cast(flat, R.Tensor((n * 4,), "float32"))
        return (cast, R.shape([n, n + 1]))


def fused(mod: IRModule) -> IRModule:
    """Return the module with its operators fused into functions of PrimFunc calls."""
    passes = [transform.LegalizeOps(), transform.AnnotateTIROpPattern(), transform.FuseOps()]
    return tvm.ir.transform.Sequential(passes)(mod)


def fused_tir(mod: IRModule) -> IRModule:
    """Return the module with each fused function become one PrimFunc."""
    return transform.FuseTIR()(fused(mod))


def _patterns() -> list[tuple[str, relax.dpl.DFPattern]]:
    product = is_op("relax.matmul")(wildcard(), wildcard())
    sum_ = is_op("relax.add")(product, wildcard())
    return [("lib.matmul_add", sum_), ("lib.matmul", product)]


def composite(mod: IRModule) -> IRModule:
    """Return the module with patterns of operators become composite functions of its own."""
    if any(isinstance(function, relax.ExternFunc) for function in mod.functions.values()):
        raise ValueError("FuseOpsByPattern ends the process at a module that has an ExternFunc")
    return transform.FuseOpsByPattern(_patterns(), bind_constants=False)(mod)


def merged(mod: IRModule) -> IRModule:
    """Return the module with composite functions inside of functions for a library."""
    return transform.MergeCompositeFunctions()(composite(mod))


def annotated(mod: IRModule) -> IRModule:
    """Return the module with each composite inside of one more function, for a library."""
    by_pattern = transform.FuseOpsByPattern(
        _patterns(), bind_constants=False, annotate_codegen=True
    )
    return by_pattern(mod)


def _before_the_vm() -> list[tvm.ir.transform.Pass]:
    return [
        transform.LegalizeOps(),
        transform.RewriteDataflowReshape(),
        transform.ToNonDataflow(),
        transform.RemovePurityChecking(),
        transform.CallTIRRewrite(),
        transform.StaticPlanBlockMemory(),
    ]


def planned(mod: IRModule) -> IRModule:
    """Return the module with its memory planned."""
    return tvm.ir.transform.Sequential(_before_the_vm())(mod)


def lowered(mod: IRModule) -> IRModule:
    """Return the module as the VM's code generator gets it."""
    passes = [
        transform.LambdaLift(),
        *_before_the_vm(),
        transform.LowerAllocTensor(),
        transform.KillAfterLastUse(),
        transform.LowerRuntimeBuiltin(),
        transform.ComputePrimValue(),
        transform.VMShapeLower(),
        transform.AttachGlobalSymbol(),
    ]
    return tvm.ir.transform.Sequential(passes)(mod)


def lifted(mod: IRModule) -> IRModule:
    """Return the module with its inner functions lifted out."""
    return transform.LambdaLift()(mod)


def prepared(mod: IRModule) -> IRModule:
    """Return the module with what needs parameters only moved into a function of its own."""
    marked = mod.clone()
    for gvar, function in mod.functions.items():
        if isinstance(function, relax.Function):
            if not function.params:
                raise ValueError("LiftTransformParams ends the process where inputs are missing")
            marked[gvar] = function.with_attr("num_input", 1)
    return transform.LiftTransformParams()(marked)


def trained() -> IRModule:
    """Return a module with the gradient of a function beside it."""

    @I.ir_module
    class Loss:
        @R.function
        def main(x: R.Tensor((2, 2), "float32"), w: R.Tensor((2, 2), "float32")):
            with R.dataflow():
                product = R.matmul(x, w)
                loss = R.sum(product)
                R.output(loss)
            return loss

    return transform.Gradient("main")(Loss)


def in_place() -> IRModule:
    """Return a module with operators that became calls which write over their arguments."""

    @I.ir_module
    class Chain:
        @R.function
        def main(x: R.Tensor((2, 2), "float32")):
            with R.dataflow():
                a = R.add(x, x)
                b = R.multiply(a, a)
                c = R.nn.relu(b)
                R.output(c)
            return c

    return transform.DataflowUseInplaceCalls()(Chain)


def typed_parameters() -> IRModule:
    """Return a module that takes all parameters in one tuple."""
    marked = Network.clone()
    marked["main"] = Network["main"].with_attr("num_input", 1)
    return transform.BundleModelParams()(marked)


def lazy_parameters() -> IRModule:
    """Return a module that asks for each parameter when it needs it."""
    marked = Network.clone()
    marked["main"] = Network["main"].with_attr("num_input", 1)
    return transform.LazyGetInput()(marked)


def calls_inside_numbers() -> IRModule:
    """Return a module with calls of the VM's builtins inside of expressions of numbers."""

    @I.ir_module
    class Sum:
        @R.function
        def main(n: T.int64, m: T.int64):
            total = n + m * 2
            return total

    return transform.VMShapeLower()(Sum)


LOWERED = {
    "calls inside numbers": calls_inside_numbers,
    "network": Network,
    "symbolic network": SymbolicNetwork,
    "trained": trained,
    "in place": in_place,
    "bundled parameters": typed_parameters,
    "lazy parameters": lazy_parameters,
    "composite functions": lambda: composite(Network),
    "merged composite functions": lambda: merged(Network),
    "annotated composite functions": lambda: annotated(Network),
}

PIPELINES: dict[str, Callable[[IRModule], IRModule]] = {
    "fused": fused,
    "fused into PrimFuncs": fused_tir,
    "composite": composite,
    "merged": merged,
    "planned": planned,
    "lowered": lowered,
    "lifted": lifted,
    "prepared": prepared,
}
"""Passes by what they leave; each takes any module, and raises where it does not fit."""

"""Plant bugs in pipelines, find them with `irviz.bisect`, and make the module smaller.

    python bench/planted_bugs.py            75 bugs
    python bench/planted_bugs.py --bugs 15   one of each kind
    python bench/planted_bugs.py --kind slow   those of one kind
    python bench/planted_bugs.py --equal 135   pipelines that are right, of which none is to blame

Each is a pass that does something wrong at one place, which is drawn at random, and stands at a
random place of a pipeline of 5 to 60 passes. What is drawn is the same each time.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import made_modules
from shared_with_tests import from_tests
from tvm import IRModule, ir, relax, tirx

import irviz
from irviz.transforms.export_python import UnwritableError

Pass = Callable[[IRModule], IRModule]
_SEED = 7
_TRANSFORMER = made_modules.decoder(4 * made_modules.BINDINGS)
_NEUTRAL = ("Normalize", "CanonicalizeBindings", "DeadCodeElimination", "EliminateCommonSubexpr")
_EQUAL = (
    *(*_NEUTRAL, "FoldConstant", "ToNonDataflow", "ConvertToDataflow", "ExpandMatmulOfSum"),
    *("CombineParallelMatmul", "AdjustMatmulOrder", "DecomposeOpsForInference"),
)
_FUSION = ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps", "FuseTIR")
_LOWERING = (
    *("LegalizeOps", "RewriteDataflowReshape", "ToNonDataflow", "RemovePurityChecking"),
    *("CallTIRRewrite", "StaticPlanBlockMemory"),
)


def main() -> None:
    """Plant the bugs, and print what was found of each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bugs", type=int, default=75)
    parser.add_argument("--kind", default="", help=", ".join(_KINDS))
    parser.add_argument("--equal", type=int, default=0, metavar="COUNT")
    options = parser.parse_args()
    if options.equal:
        _count_false_alarms(options.equal)
        return
    chance = random.Random(_SEED)
    kinds = list(_KINDS.items())
    right, scripts, bindings, seconds = 0, 0, [], []
    count = 0
    for number in range(options.bugs):
        name, (check, needed, plant) = kinds[number % len(kinds)]
        length = chance.randint(5, 60)
        passes = _pipeline(chance, length, needed)
        place = chance.randint(_first(passes, needed), len(passes))
        if not needed:  # what bugs of operators look for is gone behind LegalizeOps
            place = min(place, len(passes) - 1)
        bug = plant(chance.random())
        if options.kind not in ("", name):
            continue
        count += 1
        passes.insert(place, bug)
        limit = 10 if name == "hang" else 60
        begun = time.monotonic()
        found = irviz.bisect(_MODULES.get(name, _TRANSFORMER), passes, check, seconds=limit)
        took = time.monotonic() - begun
        is_right = found.stage is not None and found.stage.id == str(place + 1)
        right += is_right
        words = f"{number:2} {name:18} pass {place + 1:2} of {len(passes):2}: "
        words += f"{'found' if is_right else 'MISSED'} in {took:5.1f} s"
        if is_right and check == "values":  # a try of a slow one takes seconds
            smaller = irviz.reduce(found)
            scripts += _shows_bug(smaller)
            bindings.append(smaller.bindings[1])
            seconds.append(smaller.seconds)
            words += f"; {smaller.bindings[0]} bindings became {smaller.bindings[1]} in "
            words += f"{smaller.seconds:.1f} s, {smaller.tries} tries"
        print(words if is_right else f"{words}: {found}", flush=True)
    print(f"\n{right} of {count} found")
    if bindings:
        print(f"{scripts} of {len(bindings)} have a script of TVM alone that shows the bug")
        print(f"bindings: median {statistics.median(bindings)}, at most {max(bindings)}")
        print(f"seconds: median {statistics.median(seconds):.1f}, at most {max(seconds):.1f}")


def _count_false_alarms(count: int) -> None:
    """Bisect pipelines of passes that keep the results, on random modules."""
    alarms = 0
    for number in range(count):
        chance = random.Random(number)
        mod = from_tests("diff_by_values").random_operators(number, chance.choice([10, 40]))
        session = irviz.Session(mod)
        names = [chance.choice(_EQUAL) for _ in range(6)]
        for name in [*names, *_FUSION, *_LOWERING[: chance.choice([0, 6])]]:
            made = session.apply(name)
            session = session if made.current.error else made  # not every pass takes every module
        found = irviz.bisect(session)
        alarms += found.stage is not None
        if found.stage is not None:
            print(f"{number:3} FALSE ALARM: {found}", flush=True)
    print(f"{alarms} false alarms in {count} pipelines")


def _shows_bug(smaller: irviz.Reduction) -> bool:
    """Return whether the script of a bug fails without irviz; it has none of a pass that crashes.

    These passes are closures, so that a script has the module that they made.
    """
    try:
        script = smaller.to_python()
    except UnwritableError:
        return False
    alone = f"import sys; sys.modules['irviz'] = None\n{script}".encode()
    said = subprocess.run([sys.executable, "-I", "-"], input=alone, capture_output=True).stderr
    return b"Not equal to tolerance" in said or b"Error" in said


def _pipeline(chance: random.Random, length: int, needed: str) -> list[Any]:
    """Return passes that keep the results; those of the lowering stand where a bug needs them."""
    lowering = list(_LOWERING if needed else _LOWERING[:1])
    rest = [chance.choice(_NEUTRAL) for _ in range(max(length - len(lowering), 0))]
    # before the lowering, as some of them do not take what is lowered
    return [*rest, *lowering]


def _first(passes: list[Any], needed: str) -> int:
    """Return the first place behind the pass that a bug needs."""
    return passes.index(needed) + 1 if needed else 0


# --- the bugs ----------------------------------------------------------------------------------


def _changed_calls(
    mod: IRModule, where: float, change: Callable[[ir.Call], ir.Expr | None]
) -> IRModule:
    """Change one of the calls that `change` has something for; `where` in [0, 1) tells which."""
    from irviz.transforms.kernels.swap import map_function_bindings

    candidates = [
        binding.var
        for block in mod["main"].body.blocks
        for binding in block.bindings
        if isinstance(binding.value, ir.Call) and change(binding.value) is not None
    ]
    if not candidates:
        return mod
    chosen = candidates[int(where * len(candidates))]

    def replaced(var: ir.Var, value: ir.Expr) -> ir.Expr:
        return change(value) if var.same_as(chosen) else value

    return map_function_bindings(mod, "main", replaced)


def _calls(value: ir.Call, name: str) -> bool:
    return isinstance(value.op, ir.Op) and value.op.name == name


def wrong_rewrite(where: float) -> Pass:
    """Replace SiLU by GELU."""

    def planted(mod: IRModule) -> IRModule:
        def change(call: ir.Call) -> ir.Expr | None:
            return relax.op.nn.gelu(call.args[0]) if _calls(call, "relax.nn.silu") else None

        return _changed_calls(mod, where, change)

    return planted


def other_operand(where: float) -> Pass:
    """Multiply by the weights of another projection of the same shape."""

    def planted(mod: IRModule) -> IRModule:
        weights: dict[tuple[int, ...], ir.Expr] = {}

        def change(call: ir.Call) -> ir.Expr | None:
            if not _calls(call, "relax.matmul") or len(call.args[1].ty.shape) != 2:
                return None
            shape = tuple(int(size) for size in call.args[1].ty.shape)
            first = weights.setdefault(shape, call.args[1])
            is_other = not first.same_as(call.args[1])
            return relax.op.matmul(call.args[0], first) if is_other else None

        return _changed_calls(mod, where, change)

    return planted


def wrong_constant(where: float) -> Pass:
    """Normalise with another epsilon."""

    def planted(mod: IRModule) -> IRModule:
        def change(call: ir.Call) -> ir.Expr | None:
            if not _calls(call, "relax.nn.rms_norm"):
                return None
            return relax.op.nn.rms_norm(*call.args, axes=[-1], epsilon=0.5)

        return _changed_calls(mod, where, change)

    return planted


def dropped_effect(where: float) -> Pass:
    """Leave out a call that writes into a tensor."""

    def planted(mod: IRModule) -> IRModule:
        main = mod["main"]
        bindings = [one for block in main.body.blocks for one in block.bindings]
        calls = [
            at
            for at, one in enumerate(bindings)
            if isinstance(one.value, ir.Call) and isinstance(one.value.op, ir.GlobalVar)
        ]
        if calls:
            del bindings[calls[int(where * len(calls))]]
        body = relax.SeqExpr([relax.BindingBlock(bindings)], main.body.body)
        new = relax.Function(main.params, body, main.ret_ty, main.is_pure, main.attrs)
        mod.update_func(mod.get_global_var("main"), new)
        return mod

    return planted


def early_write(where: float) -> Pass:
    """Let a product be written where one of its operands is still read."""

    def planted(mod: IRModule) -> IRModule:
        from irviz.transforms.kernels.swap import map_function_bindings

        moved = list(_products_over_operands(mod))
        if not moved:
            return mod
        tensor, storage = moved[int(where * len(moved))]

        def change(var: ir.Var, value: ir.Expr) -> ir.Expr:
            if not var.same_as(tensor):
                return value
            return ir.Call(value.op, [storage, *value.args[1:]], value.attrs, value.ty_args)

        return map_function_bindings(mod, "main", change)

    return planted


def _products_over_operands(mod: IRModule) -> Iterator[tuple[ir.Var, ir.Expr]]:
    """Yield the tensors of products, each with the storage of an operand of its type."""
    tensors: dict[ir.Var, ir.Var] = {}
    storages: dict[ir.Var, ir.Expr] = {}
    for binding in (one for block in mod["main"].body.blocks for one in block.bindings):
        value = binding.value
        if isinstance(value, ir.Var):
            tensors[binding.var] = value
        elif _calls(value, "relax.memory.alloc_tensor"):
            storages[binding.var] = value.args[0]
        elif isinstance(value.op, ir.GlobalVar) and value.op.name_hint.startswith("matmul"):
            operand, product = tensors.get(value.args[0]), value.args[-1]
            is_alike = operand in storages and str(operand.ty) == str(product.ty)
            if is_alike and not storages[operand].same_as(storages[product]):
                yield product, storages[operand]


def slow(where: float) -> Pass:
    """Compute an activation many times."""

    def planted(mod: IRModule) -> IRModule:
        def change(call: ir.Call) -> ir.Expr | None:
            if not _calls(call, "relax.nn.silu"):
                return None
            many = relax.op.tile(call.args[0], (1000, 1, 1))
            return relax.op.nn.silu(relax.op.max(many, axis=0, keepdims=True))

        return _changed_calls(mod, where, change)

    return planted


def crash(_: float) -> Pass:
    """End the process."""

    def planted(_: IRModule) -> IRModule:
        os.abort()

    return planted


def hang(_: float) -> Pass:
    """Never return."""

    def planted(_: IRModule) -> IRModule:
        while True:
            time.sleep(1)

    return planted


def _replaced(name: str, change: Callable[..., ir.Expr]) -> Callable[[float], Pass]:
    """Return a bug that computes one call of an operator by a function of its operands."""

    def bug(where: float) -> Pass:
        def planted(mod: IRModule) -> IRModule:
            def changed(call: ir.Call) -> ir.Expr | None:
                return change(*call.args) if _calls(call, name) else None

            return _changed_calls(mod, where, changed)

        return planted

    return bug


def _number(value: float) -> ir.Expr:
    return relax.const(value, "float32")


def _without(is_such: Callable[[ir.Expr], ir.Expr]) -> Callable[[float], Pass]:
    """Return a bug that computes an activation of special values as 0."""

    def change(x: ir.Expr) -> ir.Expr:
        return relax.op.where(is_such(x), _number(0.0), relax.op.nn.silu(x))

    return _replaced("relax.nn.silu", change)


def _cut_off(x: ir.Expr) -> ir.Expr:
    return relax.op.minimum(relax.op.nn.silu(x), _number(6.0))


def _drifted(x: ir.Expr) -> ir.Expr:
    return relax.op.multiply(relax.op.nn.silu(x), _number(1 + 1e-4))


def _truncated(x: ir.Expr, y: ir.Expr) -> ir.Expr:
    wide = [relax.op.astype(one, "float64") for one in (x, y)]
    return relax.op.astype(relax.op.trunc(relax.op.divide(*wide)), "int32")


def _wrong_late_rows(x: ir.Expr) -> ir.Expr:
    rows = relax.op.arange(0, x.ty.shape[0], 1, "int64")
    is_late = relax.op.greater_equal(rows, relax.const(20, "int64"))
    late = relax.op.expand_dims(is_late, 1)
    return relax.op.where(late, relax.op.abs(x), relax.op.nn.relu(x))


def wrong_dtype(_: float) -> Pass:
    """Return the result in another dtype."""

    def planted(mod: IRModule) -> IRModule:
        main = mod["main"]
        wide = relax.op.astype(main.body.body, "float64")
        builder = relax.BlockBuilder(mod)
        body = builder.normalize(relax.SeqExpr(main.body.blocks, wide))
        mod.update_func(
            mod.get_global_var("main"), relax.Function(main.params, body, None, attrs=main.attrs)
        )
        return mod

    return planted


def exchanged_parameters(where: float) -> Pass:
    """Exchange two parameters of the same shape."""

    def planted(mod: IRModule) -> IRModule:
        main = mod["main"]
        params = list(main.params)
        pairs = [
            (at, to)
            for at, one in enumerate(params)
            for to, other in enumerate(params)
            if at < to and str(one.ty) == str(other.ty)
        ]
        at, to = pairs[int(where * len(pairs))]
        params[at], params[to] = params[to], params[at]
        new = relax.Function(params, main.body, main.ret_ty, main.is_pure, main.attrs)
        mod.update_func(mod.get_global_var("main"), new)
        return mod

    return planted


def renamed_function(_: float) -> Pass:
    """Give the function another name."""

    def planted(mod: IRModule) -> IRModule:
        others = {var: one for var, one in mod.functions.items() if var.name_hint != "main"}
        main = mod["main"].with_attr("global_symbol", "forward")
        return IRModule({**others, ir.GlobalVar("forward"): main})

    return planted


def _made(
    body: Callable[..., ir.Expr], *shapes: tuple[object, ...], dtype: str = "float32"
) -> IRModule:
    builder = relax.BlockBuilder()
    params = [
        relax.Var(f"x{at}", relax.TensorType(shape, dtype)) for at, shape in enumerate(shapes)
    ]
    with builder.function("main", params):
        with builder.dataflow():
            value = builder.emit(body(*params))
            result = builder.emit_output(relax.op.add(value, value))
        builder.emit_func_output(result)
    return builder.get()


_ROWS = tirx.Var("n", "int64")
_MODULES = {
    "NaN": _made(relax.op.nn.silu, (8, 64)),
    "infinity": _made(relax.op.nn.silu, (8, 64)),
    "large size": _made(relax.op.nn.relu, (_ROWS, 64)),
    "truncation": _made(relax.op.floor_divide, (8, 64), (8, 64), dtype="int32"),
}
"""The modules of bugs that the transformer cannot have, or of which its results tell nothing."""

_KINDS: dict[str, tuple[Any, str, Callable[[float], Pass]]] = {
    "wrong rewrite": ("values", "", wrong_rewrite),
    "other operand": ("values", "", other_operand),
    "wrong constant": ("values", "", wrong_constant),
    "dropped effect": ("values", "CallTIRRewrite", dropped_effect),
    "early write": ("values", "StaticPlanBlockMemory", early_write),
    "slow": ("time", "", slow),
    "crash": ("values", "", crash),
    "hang": ("values", "", hang),
    "NaN": ("values", "", _without(relax.op.isnan)),
    "infinity": ("values", "", _without(relax.op.isinf)),
    "large size": ("values", "", _replaced("relax.nn.relu", _wrong_late_rows)),
    "large value": ("values", "", _replaced("relax.nn.silu", _cut_off)),
    "truncation": ("values", "", _replaced("relax.floor_divide", _truncated)),
    "drift": ("values", "", _replaced("relax.nn.silu", _drifted)),
    "dtype": ("values", "", wrong_dtype),
    "parameters": ("values", "", exchanged_parameters),
    "name": ("values", "", renamed_function),
}

if __name__ == "__main__":
    main()

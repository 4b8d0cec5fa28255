"""Write a script that reproduces a failure of a pass or module with TVM alone."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from tvm import ir, relax

from irviz.errors import RunError
from irviz.ir.symbolic_shapes import parameter_types
from irviz.ir.values import Argument, ShapeValue
from irviz.model.runs.array_diff import Verdict
from irviz.runtime.argument_lists import RANDOM, Cases, generator_for, random_array
from irviz.runtime.run import run
from irviz.runtime.run_config import RunConfig
from irviz.runtime.vm import PERTURB, perturb_value
from irviz.session.bisect import Bisection
from irviz.session.session import Session
from irviz.session.value_check import FILLS, INTERFACE, StageVerdict, ValueCheck
from irviz.transforms.apply_transform import apply_transform, try_transform
from irviz.transforms.python_script import INLINE, PythonScript, UnwritableError, define_function
from irviz.transforms.stage import Stage

_NAMES = (
    "before",
    "inputs",
    "results",
    "flat",
    "found",
    "expected",
    "limits",
    "limit",
    "signature",
)
_NEEDS = ("import numpy as np", "from tvm import relax")
_DOUBLE = 8
_FEW = 4
"""So many numbers are written as they are."""
_OTHER_RESULT = re.compile(rf"{INTERFACE}: (output \d|it returns)")
"""What is said if the results show that the interface is another one."""
_WRONG_VALUES = (Verdict.DIFFERENT.value, Verdict.INCOMPARABLE.value)
_RUN = """\
def inputs():
    return [
{inputs}
    ]


def flat(value):
    if isinstance(value, (tuple, list, tvm.ir.Array)):
        return [one for part in value for one in flat(part)]
    return [value.numpy() if hasattr(value, "numpy") else np.asarray(value)]


def results(mod):
    executable = tvm.compile(mod, target={target!r})
    return flat(relax.VirtualMachine(executable, tvm.cpu(){memory})[{function!r}](*inputs()))"""
_SIGNATURE = """\
def signature(mod):
    return [(param.name, str(param.ty)) for param in mod[{function!r}].params]"""


def bisection_script(
    mod: ir.IRModule, function: str, found: Bisection, inputs: Mapping[str, object]
) -> str:
    """Return the script that reproduces the failure of a bisection's pass on a module.

    A failure that depends on memory which nothing wrote is shown with memory that is filled, so
    that the script ends in the same way each time.

    Raises UnwritableError if the pass cannot be written, if the check is not "values", or if the
    failure does not show again.
    """
    assert found.stage is not None, "there is a module to begin with"
    transform, config = found.stage.transform, found.session.run_config
    if transform is None:
        raise UnwritableError(f"{found.stage.label} is not known as a pass")
    script = PythonScript()
    script.names.update(dict.fromkeys(_NAMES, script))
    script.comment(f"{transform.label}: {found.words}")
    script.begin(mod)
    first = Stage("0", mod, files=found.stage.files)
    made = apply_transform(first, transform, "1", isolate=config.isolate, seconds=config.seconds)
    if found.is_too_long:
        seconds = int(config.seconds) + 1
        script.add(
            f"signal.alarm({seconds})  # it does not end by itself", needs=("import signal",)
        )
    if made.error:
        tried = transform.tried_as
        if tried is None or not try_transform(mod, tried, seconds=config.seconds).error:
            raise UnwritableError(f"{transform.label} has arguments that a script cannot contain")
        transform.write_failing(script)
        return script.text()
    if found.check != "values":
        raise UnwritableError("a script with TVM alone can show wrong values and failures only")
    script.add("before, mod = mod, mod.clone()")
    try:
        transform.write(script, mod, made.module)
    except UnwritableError as reason:
        script.embed(made.module, f"{reason}: the module that it made")
    script.add(needs=_NEEDS)
    are_values_wrong = found.words.startswith(_WRONG_VALUES)
    if not are_values_wrong and not relax.analysis.check_well_formed(made.module):
        script.add("assert relax.analysis.check_well_formed(mod)")
        return script.text()
    if found.words.startswith(INTERFACE) and not _OTHER_RESULT.search(found.words):
        script.define(_SIGNATURE.format(function=function))
        script.add("assert signature(mod) == signature(before), signature(mod)")
        return script.text()
    _add_values(script, first, made, found, function, inputs)
    return script.text()


def _add_values(
    script: PythonScript,
    first: Stage,
    made: Stage,
    found: Bisection,
    function: str,
    inputs: Mapping[str, object],
) -> None:
    """Add the runs of both modules and the comparison of their results.

    Raises UnwritableError if the failure does not show again.
    """
    check, verdict = _failure(first, made, found, function, inputs)
    if verdict is None or verdict.sample is None:
        raise UnwritableError(f"{made.label} does not fail again with the same inputs")
    config, cases = found.session.run_config, verdict.sample.cases
    is_unset = found.words.startswith(_WRONG_VALUES) and _reads_unset(
        made, function, check.arguments(made, verdict.sample), config
    )
    types = parameter_types(first.module[function])
    values = [
        input_expression(*pair, script) for pair in zip(types, cases[verdict.case], strict=True)
    ]
    script.define(
        _RUN.format(
            inputs="\n".join(f"        {one}," for one in values),
            target=config.target or "llvm",
            function=function,
            memory=', "naive"' if is_unset else "",
        )
    )
    lines = _comparison(verdict)
    if is_unset:
        fills = ", ".join(str(perturb_value(byte)) for byte in FILLS)
        script.comment("it reads memory that nothing wrote, which glibc fills here")
        lines = [
            f"for fill in ({fills}):",
            *(f"    {line}" for line in (f"ctypes.CDLL(None).mallopt({PERTURB}, fill)", *lines)),
        ]
    script.add(*lines, needs=("import ctypes",) if is_unset else ())


def _failure(
    first: Stage, made: Stage, found: Bisection, function: str, inputs: Mapping[str, object]
) -> tuple[ValueCheck, StageVerdict | None]:
    """Return how a stage fails: with random numbers for large inputs, if it then fails, too."""
    short = {
        name: RANDOM if isinstance(value, np.ndarray) and value.size > INLINE else value
        for name, value in inputs.items()
    }
    verdict = None
    for given in (short, inputs):
        session = Session(first.module, function=function, inputs=given)
        session = session.with_run_config(**vars(found.session.run_config))
        check = ValueCheck(session, [first, made], found.tolerance)
        verdict = check.failure(made)
        if verdict and verdict.sample and not (given is short and verdict.sample.values):
            break
    return check, verdict


def _comparison(verdict: StageVerdict) -> list[str]:
    """Return the lines that compare the results of both modules."""
    limits = [
        (
            one.relative,
            one.absolute + (0.0 if one.noise is None else float(one.noise.min(initial=0))),
        )
        for one in verdict.tolerance
    ]
    return [
        f"limits = {limits!r}",
        "for found, expected, limit in zip(results(mod), results(before), limits, strict=True):",
        "    assert found.dtype == expected.dtype, found.dtype",
        "    np.testing.assert_allclose(found, expected, *limit)",
    ]


def _reads_unset(made: Stage, function: str, cases: Cases, config: RunConfig) -> bool:
    """Return whether a result depends on memory that nothing wrote."""
    try:
        one, other = (
            run(made.module, function, cases, config=replace(config, fill=fill)).outputs
            for fill in FILLS
        )
    except RunError:
        return False
    return any(a.tobytes() != b.tobytes() for a, b in zip(one, other, strict=True))


def check_script(mod: ir.IRModule, still_fails: Callable[[ir.IRModule], object]) -> str:
    """Return the script that calls a check function on a module.

    Raises UnwritableError if the function cannot be written.
    """
    script = PythonScript()
    script.begin(mod)
    name = define_function(still_fails, script)
    script.add(f"assert not {name}(mod), 'the module fails'")
    return script.text()


def input_expression(name: str, value: Argument, script: PythonScript) -> str:
    """Return the expression for an argument: many random numbers are drawn again.

    Raises UnwritableError for what a script with NumPy alone cannot contain.
    """
    if isinstance(value, tuple):
        fields = [_given(script.array(name, one)) for one in value if isinstance(one, np.ndarray)]
        if len(fields) == len(value):
            return f"({', '.join(fields)},)"
        raise UnwritableError(f"the parameter {name!r} is a tuple of others than tensors")
    if isinstance(value, ShapeValue):
        return f"tvm.runtime.ShapeTuple({list(value.dims)})"
    if not isinstance(value, np.ndarray):
        return repr(value)
    dtype, shape = value.dtype, value.shape
    drawn = random_array(shape, str(dtype), generator_for(name, 0))
    if value.size <= _FEW or drawn.tobytes() != value.tobytes():
        return _given(script.array(name, value))
    if dtype.kind not in "biuf":
        raise UnwritableError(f"NumPy alone has no {dtype}")
    numbers = f"np.random.default_rng([0, {zlib.crc32(name.encode())}])"
    if dtype.kind == "f":
        exact = dtype.name if dtype.itemsize == _DOUBLE else "float32"
        numbers += f'.standard_normal({shape}, "{exact}")'
        numbers += f" / np.float32({math.sqrt(max(shape[-1], 1))})" * (len(shape) > 1 < shape[-1])
    elif dtype.kind == "b":
        numbers += f".integers(0, 2, {shape})"
    else:
        numbers += f'.integers(0, 10, {shape}, "int8")'
    return _given(f'({numbers}).astype("{dtype}")')


def _given(array: str) -> str:
    return f"tvm.runtime.tensor({array})"

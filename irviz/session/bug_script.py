"""Write a script that reproduces a failure of a pass or module with TVM alone."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable

import numpy as np
from tvm import ir, relax

from irviz.ir.shapes.check_arguments import Argument, ShapeValue
from irviz.model.runs.array_diff import Verdict
from irviz.model.runs.tolerance import default_tolerance
from irviz.runtime.inputs.argument_lists import CallInputs
from irviz.session.bisect import Bisection
from irviz.transforms.apply_transform import apply_transform
from irviz.transforms.passes.user_function_source import define_function
from irviz.transforms.python_script import PythonScript, UnwritableError
from irviz.transforms.stage import Stage
from irviz.transforms.try_in_worker import try_transform

_NAMES = ("before", "inputs", "results", "flat", "found", "expected")
_NEEDS = ("import numpy as np", "from tvm import relax")
_DOUBLE = 8
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
    return flat(relax.VirtualMachine(executable, tvm.cpu())[{function!r}](*inputs()))"""


def bisection_script(mod: ir.IRModule, function: str, found: Bisection) -> str:
    """Return the script that reproduces the failure of a bisection's pass on a module.

    Raises UnwritableError if the pass cannot be written, or if the check is not "values".
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
    are_values_wrong = found.words.startswith((Verdict.DIFFERENT.value, Verdict.INCOMPARABLE.value))
    if not are_values_wrong and not relax.analysis.check_well_formed(made.module):
        script.add("assert relax.analysis.check_well_formed(mod)")
        return script.text()
    script.define(
        _RUN.format(
            inputs="\n".join(f"        {one}," for one in _inputs(mod, function, script)),
            target=config.target or "llvm",
            function=function,
        )
    )
    limit = found.tolerance or default_tolerance(*_dtypes(mod[function].ret_ty))
    script.add(
        "for found, expected in zip(results(mod), results(before), strict=True):",
        f"    np.testing.assert_allclose(found, expected, {limit.relative}, {limit.absolute})",
    )
    return script.text()


def check_script(mod: ir.IRModule, still_fails: Callable[[ir.IRModule], object]) -> str:
    """Return the script that calls a check function on a module.

    Raises UnwritableError if the function cannot be written.
    """
    script = PythonScript()
    script.begin(mod)
    name = define_function(still_fails, script)
    script.add(f"assert not {name}(mod), 'the module fails'")
    return script.text()


def _inputs(mod: ir.IRModule, function: str, script: PythonScript) -> list[str]:
    """Return an expression for each argument that recreates the failing inputs."""
    (case,) = CallInputs("random").cases(mod, function)
    return [
        _input(param.name, value, script)
        for param, value in zip(mod[function].params, case, strict=True)
    ]


def _input(name: str, value: Argument, script: PythonScript) -> str:
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


def _dtypes(type_: ir.Type) -> list[np.dtype[np.generic]]:
    if isinstance(type_, ir.TupleType):
        return [one for field in type_.fields for one in _dtypes(field)]
    return [np.dtype(str(type_.dtype))] if getattr(type_, "dtype", None) else []

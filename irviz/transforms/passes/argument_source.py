"""Arguments of a pass as Python expressions for a script."""

from __future__ import annotations

import enum
import types
from collections.abc import Callable, Mapping
from typing import Any

import tvm
from tvm import ir, tirx

from irviz.transforms.passes.function_source import define_function, import_statement, is_literal
from irviz.transforms.passes.parameters import ParameterKind, PassParameter
from irviz.transforms.passes.resolve_arguments import pattern_module
from irviz.transforms.python_script import PythonScript, UnwritableError, embedded_object


def argument_source(
    parameter: PassParameter, value: object, script: PythonScript, function: str | None
) -> str:
    """Return the expression for a checked argument, and write the statements it needs before.

    `function` is the one that the call applies to. Raises UnwritableError for a value that
    cannot be written as an expression.
    """
    if value is None:
        return "None"
    if parameter.kind is ParameterKind.VARS:
        return _variables(value, script, function or "main")
    if parameter.kind is ParameterKind.CHOICE and issubclass(parameter.item, enum.Enum):
        return f"{_named(parameter.item, script)}[{value!r}]"
    writer: Callable[[Any, PythonScript], str] | None = _WRITERS.get(parameter.kind)
    if writer is not None:
        return writer(value, script)
    return repr(list(value) if isinstance(value, tuple) else value)


def target_source(text: str, host: str = "") -> str:
    """Return the expression for a target, with a host if one is given."""
    return f"tvm.target.Target({text!r}, host={host!r})" if host else f"tvm.target.Target({text!r})"


def _device(parts: tuple[str, int, str], script: PythonScript) -> str:
    kind, number, memory = parts
    script.add(needs=("from tvm import relax",))
    return f"relax.VDevice({target_source(kind)}, {number}, {memory!r})"


def _variables(names: object, script: PythonScript, function: str) -> str:
    assert isinstance(names, tuple), "plain_argument checked it"
    script.add(f"params = {{param.name: param for param in mod[{function!r}].params}}")
    return f"[{', '.join(f'params[{name!r}]' for name in names)}]"


def _arrays(value: Mapping[str, tvm.runtime.Tensor], script: PythonScript) -> str:
    arrays = {name: script.array(name, tensor.numpy()) for name, tensor in value.items()}
    items = (f"{name!r}: tvm.runtime.tensor({one})" for name, one in arrays.items())
    return f"{{{', '.join(items)}}}"


def _layouts(value: Mapping[str, tuple[str, ...]], script: PythonScript) -> str:  # noqa: ARG001
    return repr({name: list(layouts) for name, layouts in value.items()})


def _patterns(value: object, script: PythonScript) -> str:
    if not isinstance(value, str):
        return _code(value, script)
    home = pattern_module(value)
    script.add(needs=("from tvm import relax", *([f"import {home}"] if home else [])))
    return f"relax.backend.get_patterns_with_prefix({value!r})"


def _named(item: type, script: PythonScript) -> str:
    """Return the expression for a class; raise UnwritableError if it cannot be imported."""
    script.add(needs=(import_statement(item.__name__, item, "the pass"),))
    return item.__name__


def _code(value: object, script: PythonScript) -> str:
    if is_literal(value):
        return repr(value)
    if isinstance(value, types.FunctionType):
        return define_function(value, script)
    if isinstance(value, ir.IRModule | tirx.PrimFunc | tirx.IndexMap):
        script.add(needs=("import base64", "import zlib"))
        return embedded_object(value)
    if isinstance(value, Mapping):
        items = (f"{key!r}: {_code(one, script)}" for key, one in value.items())
        return f"{{{', '.join(items)}}}"
    if isinstance(value, list | tuple):
        text = ", ".join(_code(one, script) for one in value)
        return f"[{text}]" if isinstance(value, list) else f"({text},)"
    raise UnwritableError(f"an argument is {value!r}, which has no source")


_WRITERS: Mapping[ParameterKind, Callable[[Any, PythonScript], str]] = {
    ParameterKind.TARGET: lambda value, _: target_source(value),
    ParameterKind.DEVICE: _device,
    ParameterKind.PARAMS: _arrays,
    ParameterKind.LAYOUTS: _layouts,
    ParameterKind.PATTERNS: _patterns,
    ParameterKind.CODE: _code,
}

"""Arguments of a pass as the Python that a script has for them."""

from __future__ import annotations

import enum
import types
from collections.abc import Callable, Mapping
from typing import Any

import tvm
from tvm import ir, tirx

from irviz.transforms.passes.parameter import Parameter, ParameterKind
from irviz.transforms.passes.resolution import pattern_module
from irviz.transforms.passes.source import define, import_of, is_plain
from irviz.transforms.python import Script, UnwritableError, embedded


def written(parameter: Parameter, value: object, script: Script, function: str | None) -> str:
    """Return the expression for a checked argument, and write what has to stand before it.

    `function` is the one that the call is about. Raises UnwritableError for what has none.
    """
    if value is None:
        return "None"
    if parameter.kind is ParameterKind.VARS:
        return _variables(value, script, function or "main")
    if parameter.kind is ParameterKind.CHOICE and issubclass(parameter.item, enum.Enum):
        return f"{_named(parameter.item, script)}[{value!r}]"
    writer: Callable[[Any, Script], str] | None = _WRITERS.get(parameter.kind)
    if writer is not None:
        return writer(value, script)
    return repr(list(value) if isinstance(value, tuple) else value)


def target(text: str, host: str = "") -> str:
    """Return the expression for a target, with a host where one is given."""
    return f"tvm.target.Target({text!r}, host={host!r})" if host else f"tvm.target.Target({text!r})"


def _device(parts: tuple[str, int, str], script: Script) -> str:
    kind, number, memory = parts
    script.add(needs=("from tvm import relax",))
    return f"relax.VDevice({target(kind)}, {number}, {memory!r})"


def _variables(names: object, script: Script, function: str) -> str:
    assert isinstance(names, tuple), "as it was checked"
    script.add(f"params = {{param.name: param for param in mod[{function!r}].params}}")
    return f"[{', '.join(f'params[{name!r}]' for name in names)}]"


def _arrays(value: Mapping[str, tvm.runtime.Tensor], script: Script) -> str:
    arrays = {name: script.array(name, tensor.numpy()) for name, tensor in value.items()}
    items = (f"{name!r}: tvm.runtime.tensor({one})" for name, one in arrays.items())
    return f"{{{', '.join(items)}}}"


def _layouts(value: Mapping[str, tuple[str, ...]], script: Script) -> str:  # noqa: ARG001
    return repr({name: list(layouts) for name, layouts in value.items()})


def _patterns(value: object, script: Script) -> str:
    if not isinstance(value, str):
        return _code(value, script)
    home = pattern_module(value)
    script.add(needs=("from tvm import relax", *([f"import {home}"] if home else [])))
    return f"relax.backend.get_patterns_with_prefix({value!r})"


def _named(item: type, script: Script) -> str:
    """Return the expression for a class; raise UnwritableError where it cannot be imported."""
    script.add(needs=(import_of(item.__name__, item, "the pass"),))
    return item.__name__


def _code(value: object, script: Script) -> str:
    if is_plain(value):
        return repr(value)
    if isinstance(value, types.FunctionType):
        return define(value, script)
    if isinstance(value, ir.IRModule | tirx.PrimFunc | tirx.IndexMap):
        script.add(needs=("import base64", "import zlib"))
        return embedded(value)
    if isinstance(value, Mapping):
        items = (f"{key!r}: {_code(one, script)}" for key, one in value.items())
        return f"{{{', '.join(items)}}}"
    if isinstance(value, list | tuple):
        text = ", ".join(_code(one, script) for one in value)
        return f"[{text}]" if isinstance(value, list) else f"({text},)"
    raise UnwritableError(f"an argument is {value!r}, which has no source")


_WRITERS: Mapping[ParameterKind, Callable[[Any, Script], str]] = {
    ParameterKind.TARGET: lambda value, _: target(value),
    ParameterKind.DEVICE: _device,
    ParameterKind.PARAMS: _arrays,
    ParameterKind.LAYOUTS: _layouts,
    ParameterKind.PATTERNS: _patterns,
    ParameterKind.CODE: _code,
}

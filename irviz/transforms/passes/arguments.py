"""Arguments of a pass as plain values: checked when they are given, and shown in labels."""

from __future__ import annotations

import enum
import json
import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

import tvm
from tvm import ir, relax, tirx

from irviz.errors import TransformError
from irviz.transforms.bind_params import bind_params
from irviz.transforms.passes.parameters import ParameterKind, PassParameter

_EXAMPLES: Mapping[ParameterKind, str] = {
    ParameterKind.BOOL: "True",
    ParameterKind.INT: "2",
    ParameterKind.FLOAT: "0.5",
    ParameterKind.STR: "'text'",
    ParameterKind.TARGET: "'llvm', or a dict as {'kind': 'llvm', 'num-cores': 4}",
    ParameterKind.DEVICE: "'llvm' or 'cuda:1'",
    ParameterKind.FUNCTION: "'main'",
    ParameterKind.FUNCTIONS: "['main']",
    ParameterKind.NAMES: "['x']",
    ParameterKind.VARS: "['x']",
    ParameterKind.PARAMS: "{'w0': w0}, with numpy arrays",
    ParameterKind.DIMS: "{'n': 128}",
    ParameterKind.LAYOUTS: "{'relax.nn.conv2d': ['NHWC', 'OHWI']}",
    ParameterKind.PATTERNS: "'cublas'",
}
_MOST_CHARACTERS = 40


def plain_argument(parameter: PassParameter, value: object, owner: str) -> object:
    """Return an argument as a plain value; `owner` is the label of the pass, for errors.

    Raises TransformError for a value that the parameter does not take.
    """
    if value is None and not parameter.is_required and parameter.default is None:
        return None
    try:
        return _plain(parameter, parameter.kind, value)
    except _MisfitError:
        if parameter.also is None:
            _refuse(parameter, value, owner)
    try:
        return _plain(parameter, parameter.also, value)
    except _MisfitError:
        _refuse(parameter, value, owner)


def argument_label(value: object) -> str:
    """Return an argument for a label: arrays by their names, long values cut."""
    text = _label(value)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"


def _label(value: object) -> str:
    match value:
        case Mapping() if any(isinstance(one, tvm.runtime.Tensor) for one in value.values()):
            return f"{{{', '.join(map(str, value))}}}"
        case Mapping():
            return f"{{{', '.join(f'{key!r}: {_label(one)}' for key, one in value.items())}}}"
        case list() | tuple():
            return f"[{', '.join(map(_label, value))}]"
    return str(getattr(value, "__name__", type(value).__name__)) if callable(value) else repr(value)


class _MisfitError(Exception):
    """The value is not of the parameter's kind."""


def _refuse(parameter: PassParameter, value: object, owner: str) -> NoReturn:
    takes, example = parameter.kind.value, _EXAMPLES.get(parameter.kind, "another")
    if parameter.choices:
        takes, example = f"one of {', '.join(map(repr, parameter.choices))}", "one of these"
    elif parameter.kind is ParameterKind.LIST:
        example = "[1, 2]" if parameter.item is int else "['relax.add']"
    raise TransformError(
        f"{parameter.name} of {owner} is {value!r}, and takes {takes}: give {example}"
    )


def _plain(parameter: PassParameter, kind: ParameterKind, value: object) -> object:
    """Convert a value to this kind; raise _MisfitError if it is not of the kind."""
    if kind is ParameterKind.CHOICE:
        return _choice(parameter, value)
    if kind is ParameterKind.LIST:
        return tuple(map(_whole if parameter.item is int else _text, _items(value)))
    return _READERS[kind](value)


def _require(condition: object) -> None:
    if not condition:
        raise _MisfitError


def _flag(value: object) -> bool:
    _require(isinstance(value, bool))
    return bool(value)


def _number(value: object) -> float:
    _require(isinstance(value, numbers.Real) and not isinstance(value, bool))
    return float(value)  # type: ignore[arg-type]


def _text(value: object) -> str:
    _require(isinstance(value, str))
    return str(value)


def _whole(value: object) -> int:
    _require(isinstance(value, numbers.Integral) and not isinstance(value, bool))
    return int(value)  # type: ignore[call-overload,no-any-return]


def _items(value: object) -> Sequence[object]:
    _require(isinstance(value, list | tuple | ir.Array))
    return value  # type: ignore[return-value]


def _size(value: object) -> int:
    size = _whole(value.value if isinstance(value, tirx.IntImm) else value)
    _require(size >= 0)
    return size


def _name(value: object) -> str:
    """Return a name, given as text or as the variable or function itself."""
    if isinstance(value, ir.GlobalVar):
        return str(value.name_hint)
    return _text(value.name if isinstance(value, ir.Var) else value)


def _names(value: object) -> tuple[str, ...]:
    return tuple(map(_name, _items(value)))


def _variables(value: object) -> tuple[str, ...]:
    return (_name(value),) if isinstance(value, str | ir.Var) else _names(value)


def _arrays(value: object) -> Mapping[str, tvm.runtime.Tensor]:
    """Return tensors by name, with the values copied now."""
    _require(isinstance(value, Mapping) or value == ())
    given = value if isinstance(value, Mapping) else {}
    return bind_params({_name(name): array for name, array in given.items()}).params


def _sizes(value: object) -> dict[str, int]:
    _require(isinstance(value, Mapping))
    return {_name(k): _size(v) for k, v in value.items()}  # type: ignore[attr-defined]


def _patterns(value: object) -> object:
    _require(isinstance(value, str | list | tuple) and value)
    return value


def _choice(parameter: PassParameter, value: object) -> object:
    name = value.name if isinstance(value, enum.Enum) else value
    _require(any(type(name) is type(one) and name == one for one in parameter.choices))
    return name


def _target(value: object) -> str:
    """Return a target as text, from which every process can create it again."""
    if isinstance(value, Mapping):
        return json.dumps(dict(value))
    text = str(value) if isinstance(value, tvm.target.Target) else _text(value).strip()
    _require(text)
    return text


def _device(value: object) -> tuple[str, int, str]:
    if isinstance(value, relax.VDevice):
        return str(value.target), int(value.vdevice_id), str(value.memory_scope)
    if isinstance(value, tuple):
        return value
    text = _text(value).strip()
    kind, _, number = text.rpartition(":")
    if text.startswith("{") or not number.isdecimal():
        kind, number = text, "0"
    _require(kind)
    return kind, int(number), "global"


def _layouts(value: object) -> dict[str, tuple[str, ...]]:
    _require(isinstance(value, Mapping))
    given: Mapping[object, object] = value  # type: ignore[assignment]
    return {_text(name): tuple(map(_text, _items(layouts))) for name, layouts in given.items()}


_READERS: Mapping[ParameterKind, Callable[[object], object]] = {
    ParameterKind.BOOL: _flag,
    ParameterKind.INT: _whole,
    ParameterKind.FLOAT: _number,
    ParameterKind.STR: _text,
    ParameterKind.TARGET: _target,
    ParameterKind.DEVICE: _device,
    ParameterKind.FUNCTION: _name,
    ParameterKind.FUNCTIONS: _names,
    ParameterKind.NAMES: _names,
    ParameterKind.VARS: _variables,
    ParameterKind.PARAMS: _arrays,
    ParameterKind.DIMS: _sizes,
    ParameterKind.LAYOUTS: _layouts,
    ParameterKind.PATTERNS: _patterns,
    ParameterKind.CODE: lambda value: value,
}

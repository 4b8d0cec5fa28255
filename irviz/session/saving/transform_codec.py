"""Convert transforms to and from plain values that a session file can hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Any

import tvm
from tvm import ir, tirx

from irviz.errors import TransformError
from irviz.loaders.file_errors import brief
from irviz.model.loop_nest import BlockAddress, LoopAddress
from irviz.session.saving.value_codec import EncodingError
from irviz.transforms.bind_params import BindParams
from irviz.transforms.kernels.swap import Swap, UpdateFunction
from irviz.transforms.passes import pass_facts
from irviz.transforms.passes.as_transform import TVMPass, write_by_name
from irviz.transforms.passes.parameters import ParameterKind, PassParameter
from irviz.transforms.passes.pass_call import PassCall, named_pass
from irviz.transforms.passes.pattern_rewrite import Rewrite
from irviz.transforms.python_script import PythonScript, UnwritableError
from irviz.transforms.recordings.recorded_stages import RecordedPass
from irviz.transforms.schedules import primitives
from irviz.transforms.schedules.index_map import IndexMapText
from irviz.transforms.schedules.schedule_error import ScheduleTraceError
from irviz.transforms.schedules.schedule_step import ScheduleStep
from irviz.transforms.transform import Transform

Description = Mapping[str, object]

_LABEL_ONLY = "was saved by its label alone"
_PLAIN = (bool, int, float, str, tvm.runtime.Tensor, tirx.IndexMap)
_INDEX_MAP = "index map"


@dataclass(frozen=True)
class LabelOnly(Transform):
    """A transform of which a file has only the label; it can be neither applied nor written.

    `is_pass` says that the label is the name of a pass.
    """

    label: str = ""
    is_pass: bool = False

    def __call__(self, mod: ir.IRModule) -> ir.IRModule:  # noqa: ARG002
        """Raise TransformError."""
        raise TransformError(
            f"{self.label!r} {_LABEL_ONLY}, and cannot be applied again: apply what it was in its "
            "place"
        )

    def write(self, script: PythonScript, before: ir.IRModule, after: ir.IRModule) -> None:
        """Write the catalog's pass of this name, if it makes the same module."""
        reason = f"{self.label} {_LABEL_ONLY}"
        if not self.is_pass:
            raise UnwritableError(reason)
        write_by_name(self.label, script, before, after, reason, reason)


_KINDS: Mapping[str, tuple[Callable[..., Transform], Mapping[str, type | UnionType]]] = {
    "bind": (BindParams, {"params": dict, "function": str}),
    "swap": (Swap, {"callee": str, "replacement": str, "node": str | None, "function": str}),
    "update": (UpdateFunction, {"name": str, "prim_func": tirx.PrimFunc}),
    "pass": (PassCall, {"name": str, "arguments": dict}),
    "schedule": (ScheduleStep, {"function": str, "primitive": str, "arguments": dict}),
    "recorded": (RecordedPass, {"name": str}),
    "rewrite": (Rewrite, {"name": str, "pattern": ir.IRModule, "function": str}),
    "label": (LabelOnly, {"label": str, "is_pass": bool}),
}
"""The class of each kind of transform, and the fields that describe one."""


def describe(transform: Transform) -> Description:
    """Return the values that `restore` needs, or else only the transform's label."""
    described: object = transform
    if not _is_described(transform):
        described = LabelOnly(transform.label, isinstance(transform, TVMPass))
    kind, fields = next(
        (kind, fields) for kind, (made, fields) in _KINDS.items() if type(described) is made
    )
    values = {name: getattr(described, name) for name in fields}
    if isinstance(described, ScheduleStep):
        values["arguments"] = {
            key: {_INDEX_MAP: one.text} if isinstance(one, IndexMapText) else one
            for key, one in described.arguments.items()
        }
    return {"kind": kind, **values}


def _is_described(transform: Transform) -> bool:
    """Tell whether a transform is fully described by its kind's fields, as plain values."""
    match transform:
        case Swap(matching=matching):
            return matching is None
        case PassCall(own=own, arguments=arguments):
            # what a file says is written nowhere else on the disk
            return own is None and _is_plain(arguments) and not arguments.keys() & pass_facts.PATHS
        case ScheduleStep(arguments=arguments):
            return _is_plain(arguments)
        case Rewrite(pattern=pattern):
            return isinstance(pattern, ir.IRModule)
    return any(type(transform) is made for made, _ in _KINDS.values())


def restore(description: Description) -> Transform:
    """Return the described transform without applying it; raise EncodingError."""
    kind = description.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise EncodingError(f"{brief(kind)} is not a kind of transform")
    made, fields = _KINDS[kind]
    values: dict[str, Any] = {name: description.get(name) for name in fields}
    for name, expected in fields.items():
        if not isinstance(values[name], expected):
            words = getattr(expected, "__name__", expected)
            raise EncodingError(
                f"its {name} is {brief(values[name])}, where a {words} was expected"
            )
    match kind:
        case "pass":
            return _pass_call(**values)
        case "schedule":
            return _schedule_step(**values)
        case "bind":
            if not all(isinstance(one, tvm.runtime.Tensor) for one in values["params"].values()):
                raise EncodingError("its params are not all tensors")
    return made(**values)


def _pass_call(name: str, arguments: Mapping[str, object]) -> PassCall:
    try:
        call = named_pass(name, **{key: _without_tensors(one) for key, one in arguments.items()})
    except TransformError as refusal:
        raise EncodingError(str(refusal)) from None
    if call.own is not None:
        raise EncodingError(f"{call.name!r} is not a pass of TVM")
    if paths := call.arguments.keys() & pass_facts.PATHS:
        raise EncodingError(
            f"its {min(paths)} names a place on the disk, which no session's file may do"
        )
    for key, value in call.arguments.items():
        _check(call.entry.parameter(key), value)
    return call


def _without_tensors(value: object) -> object:
    """Return an argument with arrays in place of tensors; the pass converts them back."""
    if isinstance(value, dict):
        return {key: _without_tensors(one) for key, one in value.items()}
    return value.numpy() if isinstance(value, tvm.runtime.Tensor) else value


def _check(parameter: PassParameter, value: object) -> None:
    """Raise EncodingError for an argument that `named_pass` only accepts from code."""
    if parameter.kind is ParameterKind.DEVICE and value is not None:
        is_valid = isinstance(value, tuple) and tuple(map(type, value)) == (str, int, str)
    elif parameter.kind is ParameterKind.PATTERNS:
        names = [value] if isinstance(value, str) else value
        is_valid = isinstance(names, list | tuple) and all(isinstance(one, str) for one in names)
    else:
        return
    if not is_valid:
        raise EncodingError(
            f"its {parameter.name} is {brief(value)}, and takes {parameter.kind.value}"
        )


def _schedule_step(function: str, primitive: str, arguments: Mapping[str, object]) -> ScheduleStep:
    try:
        known = primitives.primitive(primitive)
    except TransformError as refusal:
        raise EncodingError(str(refusal)) from None
    arguments = {key: _restored_argument(one) for key, one in arguments.items()}
    names = {one.name for one in known.parameters}
    needed = {one.name for one in known.parameters if one.is_required}
    if not needed <= arguments.keys() <= names:
        raise EncodingError(f"{known.name} takes other arguments than {brief(list(arguments))}")
    step = ScheduleStep(function, known.name, arguments)
    try:
        step.label  # noqa: B018 - it reads the arguments
    except Exception as failure:  # one is of a kind that the primitive does not take
        raise EncodingError(f"{known.name} does not take {brief(arguments)}") from failure
    return step


def _restored_argument(value: object) -> object:
    match value:
        case {"index map": str() as text, **rest} if not rest:
            index_map = IndexMapText(text)
            try:
                index_map.function()
            except ScheduleTraceError as failure:
                raise EncodingError(failure.words) from None
            # the text becomes a part of scripts, where a # would cut the line off
            if not text.isprintable() or "#" in text:
                raise EncodingError(f"{brief(text)} is not an index map on one line")
            return index_map
    return value


def _is_plain(value: object) -> bool:
    """Tell whether a file can hold a value."""
    match value:
        case Mapping():
            return all(isinstance(key, str) and _is_plain(one) for key, one in value.items())
        case list() | tuple():
            return all(map(_is_plain, value))
    return value is None or isinstance(value, (*_PLAIN, LoopAddress, BlockAddress, IndexMapText))

"""Transforms to and from plain values, which a session file can hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import tvm
from tvm import ir, tirx

from irviz.errors import IrvizError, TransformError
from irviz.loaders.arrays.numeric_arrays import brief
from irviz.model.graph.graph import NodeId
from irviz.model.loops import BlockAddress, LoopAddress
from irviz.transforms.bind_params import BindParams
from irviz.transforms.kernels.swap import Swap
from irviz.transforms.kernels.update_function import UpdateFunction
from irviz.transforms.passes.parameters import ParameterKind, PassParameter
from irviz.transforms.passes.pass_call import PassCall, named_pass
from irviz.transforms.passes.rewrite import Rewrite
from irviz.transforms.passes.tvm_pass import TVMPass, default_pass_call, reproduces
from irviz.transforms.python_script import PythonScript, UnwritableError
from irviz.transforms.recordings.recorded_stages import RecordedPass
from irviz.transforms.schedules.index_map import IndexMapText
from irviz.transforms.schedules.primitives import primitive
from irviz.transforms.schedules.schedule_step import ScheduleStep
from irviz.transforms.stage import Transform

Description = Mapping[str, object]
Field = TypeVar("Field")

_LABEL_ONLY = "was saved by its label alone"
_PLAIN = (bool, int, float, str, tvm.runtime.Tensor, tirx.IndexMap)
_INDEX_MAP = "index map"


class DescriptionError(IrvizError, ValueError):
    """A description that describes no transform."""


@dataclass(frozen=True)
class LabelOnly:
    """A transform of which a file has only the label: it can be neither applied nor written.

    `is_pass` says that the label is the name of a pass.
    """

    label: str
    is_pass: bool = False
    constant_names: Mapping[tvm.runtime.Tensor, str] = field(default_factory=dict)

    @property
    def tried_as(self) -> None:
        """Nothing: it is not applied."""

    def __call__(self, mod: ir.IRModule) -> ir.IRModule:  # noqa: ARG002
        """Raise TransformError."""
        raise TransformError(
            f"{self.label!r} {_LABEL_ONLY}, and cannot be applied again: apply what it was in its "
            "place"
        )

    def write(self, script: PythonScript, before: ir.IRModule, after: ir.IRModule) -> None:
        """Write the catalog's pass of this name, if that makes the same module."""
        call = default_pass_call(self.label) if self.is_pass else None
        if call is None or not reproduces(call, before, after):
            raise UnwritableError(f"{self.label} {_LABEL_ONLY}")
        call.write(script, before, after)


def describe(transform: Transform) -> Description:
    """Return the values that `restore` needs, or else the transform's label."""
    match transform:
        case BindParams(params=params, function=function):
            return {"kind": "bind", "function": function, "params": dict(params)}
        case Swap(matching=None):
            return {
                "kind": "swap",
                "callee": transform.callee,
                "replacement": transform.replacement,
                "node": transform.node,
                "function": transform.function,
            }
        case UpdateFunction(name=name, prim_func=prim_func):
            return {"kind": "update", "name": name, "prim_func": prim_func}
        case PassCall(name=name, own=None) if _is_plain(transform.arguments):
            return {"kind": "pass", "name": name, "arguments": transform.arguments}
        case ScheduleStep() if _is_plain(transform.arguments):
            return {
                "kind": "schedule",
                "function": transform.function,
                "primitive": transform.primitive,
                "arguments": {
                    key: {_INDEX_MAP: one.text} if isinstance(one, IndexMapText) else one
                    for key, one in transform.arguments.items()
                },
            }
        case RecordedPass(name=name):
            return {"kind": "recorded", "name": name}
        case Rewrite(pattern=ir.IRModule() as pattern):
            return {
                "kind": "rewrite",
                "name": transform.name,
                "pattern": pattern,
                "function": transform.function,
            }
        case LabelOnly(label=label, is_pass=is_pass):
            return {"kind": "label", "label": label, "is_pass": is_pass}
    is_pass = isinstance(transform, TVMPass)
    return {"kind": "label", "label": transform.label, "is_pass": is_pass}


def restore(description: Description) -> Transform:  # noqa: C901 - one case a kind
    """Return the transform of a description, without applying it; raise DescriptionError."""

    def get(key: str, kind: type[Field]) -> Field:
        value = description.get(key)
        if not isinstance(value, kind):
            raise DescriptionError(
                f"its {key} is {brief(value)}, where a {kind.__name__} was expected"
            )
        return value

    match kind := description.get("kind"):
        case "bind":
            params = get("params", dict)
            if not all(isinstance(one, tvm.runtime.Tensor) for one in params.values()):
                raise DescriptionError("its params are not all tensors")
            return BindParams(params, get("function", str))
        case "swap":
            node = None if description.get("node") is None else NodeId(get("node", str))
            return Swap(get("callee", str), get("replacement", str), node, get("function", str))
        case "update":
            return UpdateFunction(get("name", str), get("prim_func", tirx.PrimFunc))
        case "pass":
            return _pass_call(get("name", str), get("arguments", dict))
        case "schedule":
            return _schedule_step(
                get("function", str), get("primitive", str), get("arguments", dict)
            )
        case "recorded":
            return RecordedPass(get("name", str))
        case "rewrite":
            return Rewrite(
                get("name", str), get("pattern", ir.IRModule), None, get("function", str)
            )
        case "label":
            return LabelOnly(get("label", str), get("is_pass", bool))
    raise DescriptionError(f"{brief(kind)} is no kind of transform")


def _pass_call(name: str, arguments: Mapping[str, object]) -> PassCall:
    try:
        call = named_pass(name, **{key: _without_tensors(one) for key, one in arguments.items()})
    except TransformError as refusal:
        raise DescriptionError(str(refusal)) from None
    if call.own is not None:
        raise DescriptionError(f"{call.name!r} is no pass of TVM's")
    for key, value in call.arguments.items():
        _check(call.entry.parameter(key), value)
    return call


def _without_tensors(value: object) -> object:
    """Return an argument with arrays for tensors, of which the pass makes tensors of its own."""
    if isinstance(value, dict):
        return {key: _without_tensors(one) for key, one in value.items()}
    return value.numpy() if isinstance(value, tvm.runtime.Tensor) else value


def _check(parameter: PassParameter, value: object) -> None:
    """Raise DescriptionError for an argument that `named_pass` takes from code alone."""
    if parameter.kind is ParameterKind.DEVICE and value is not None:
        is_valid = isinstance(value, tuple) and tuple(map(type, value)) == (str, int, str)
    elif parameter.kind is ParameterKind.PATTERNS:
        names = [value] if isinstance(value, str) else value
        is_valid = isinstance(names, list | tuple) and all(isinstance(one, str) for one in names)
    else:
        return
    if not is_valid:
        raise DescriptionError(
            f"its {parameter.name} is {brief(value)}, and takes {parameter.kind.value}"
        )


def _schedule_step(function: str, name: str, sent: Mapping[str, object]) -> ScheduleStep:
    try:
        known = primitive(name)
    except TransformError as refusal:
        raise DescriptionError(str(refusal)) from None
    arguments = {key: _restored_argument(one) for key, one in sent.items()}
    names = {one.name for one in known.parameters}
    needed = {one.name for one in known.parameters if one.is_required}
    if not needed <= arguments.keys() <= names:
        raise DescriptionError(f"{known.name} takes other arguments than {brief(list(arguments))}")
    step = ScheduleStep(function, known.name, arguments)
    try:
        step.label  # noqa: B018 - it reads the arguments
    except Exception as failure:  # one is of a kind that the primitive does not take
        raise DescriptionError(f"{known.name} does not take {brief(arguments)}") from failure
    return step


def _restored_argument(value: object) -> object:
    match value:
        case {"index map": str() as text, **rest} if not rest:
            index_map = IndexMapText(text)
            try:
                index_map.function()
            except ValueError as failure:
                raise DescriptionError(str(failure)) from None
            # the text becomes a part of scripts, where a # would cut the line off
            if not text.isprintable() or "#" in text:
                raise DescriptionError(f"{brief(text)} is no index map in one line")
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

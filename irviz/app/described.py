"""Transforms <-> descriptions of them, in plain values: what a saved session keeps of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import tvm
from tvm import ir, tirx

from irviz.loaders.numbers import brief
from irviz.model.graph import NodeId
from irviz.model.loops import BlockNamed, LoopOf
from irviz.transforms.bind import BindParams
from irviz.transforms.kernels.swap import Swap
from irviz.transforms.kernels.update import UpdateFunction
from irviz.transforms.passes.parameter import Parameter, ParameterKind
from irviz.transforms.passes.pass_call import PassCall, named_pass
from irviz.transforms.passes.rewrite import Rewrite
from irviz.transforms.passes.tvm_pass import TVMPass, by_name, makes
from irviz.transforms.python import Script, UnwritableError
from irviz.transforms.recordings.recorded_pass import Recorded
from irviz.transforms.schedules.index_map import IndexMapText
from irviz.transforms.schedules.primitives import primitive
from irviz.transforms.schedules.schedule import ScheduleStep
from irviz.transforms.stage import Transform, TransformError

Description = Mapping[str, object]


class DescriptionError(ValueError):
    """A description that is of no transform; the message says why."""


@dataclass(frozen=True)
class Kept:
    """What a stage was made by when it was saved; of that only its label is left.

    `is_pass` tells that the label is the name of a pass.
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
            f"{self.label!r} was saved by its label alone, and cannot be applied again: apply "
            "what it was in its place"
        )

    def write(self, script: Script, before: ir.IRModule, after: ir.IRModule) -> None:
        """Write the catalog's pass of this name, if that makes the same of the module."""
        call = by_name(self.label) if self.is_pass else None
        if call is None or not makes(call, before, after):
            raise UnwritableError(f"{self.label} was saved by its label alone")
        call.write(script, before, after)


def described(transform: Transform) -> Description:
    """Return what a transform can be made of again, or else its label."""
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
                "arguments": {key: _sent(one) for key, one in transform.arguments.items()},
            }
        case Recorded(name=name):
            return {"kind": "recorded", "name": name}
        case Rewrite(pattern=ir.IRModule() as pattern):
            return {
                "kind": "rewrite",
                "name": transform.name,
                "pattern": pattern,
                "function": transform.function,
            }
    is_pass = isinstance(transform, TVMPass) or getattr(transform, "is_pass", False) is True
    return {"kind": "label", "label": transform.label, "is_pass": is_pass}


def restored(description: Description) -> Transform:
    """Return the transform of a description; raise DescriptionError when it is of none.

    Nothing of it is applied.
    """
    kind = description.get("kind")
    restore = _KINDS.get(kind) if isinstance(kind, str) else None
    if restore is None:
        raise DescriptionError(f"{brief(kind)} is no kind of transform")
    try:
        return restore(_Fields(description))
    except TransformError as refusal:
        raise DescriptionError(str(refusal)) from None


class _Fields:
    """The fields of a description, each taken as what it has to be."""

    def __init__(self, description: Description) -> None:
        self._description = description

    def text(self, key: str) -> str:
        """Return a text."""
        return str(self._of(key, str))

    def flag(self, key: str) -> bool:
        """Return true or false."""
        return bool(self._of(key, bool))

    def mapping(self, key: str) -> dict[str, Any]:
        """Return values by name."""
        return dict(self._of(key, dict))

    def module(self, key: str) -> ir.IRModule:
        """Return a module."""
        return self._of(key, ir.IRModule)

    def prim_func(self, key: str) -> tirx.PrimFunc:
        """Return a PrimFunc."""
        return self._of(key, tirx.PrimFunc)

    def tensors(self, key: str) -> dict[str, tvm.runtime.Tensor]:
        """Return tensors by name."""
        found = self.mapping(key)
        if not all(isinstance(one, tvm.runtime.Tensor) for one in found.values()):
            raise DescriptionError(f"its {key} are not all tensors")
        return found

    def node(self, key: str) -> NodeId | None:
        """Return the id of a node, or None."""
        return None if self._description.get(key) is None else NodeId(self.text(key))

    def _of(self, key: str, wanted: type) -> Any:
        value = self._description.get(key)
        if not isinstance(value, wanted):
            raise DescriptionError(
                f"its {key} is {brief(value)}, where a {wanted.__name__} was expected"
            )
        return value


def _pass_call(fields: _Fields) -> PassCall:
    arguments = fields.mapping("arguments")
    call = named_pass(fields.text("name"), **{key: _array(one) for key, one in arguments.items()})
    if call.own is not None:
        raise DescriptionError(f"{call.name!r} is no pass of TVM's")
    for name, value in call.arguments.items():
        _check(call.entry.parameter(name), value)
    return call


def _check(parameter: Parameter, value: object) -> None:
    """Raise DescriptionError for what only code could have given, and a file did."""
    if parameter.kind is ParameterKind.DEVICE and value is not None:
        is_right = isinstance(value, tuple) and tuple(map(type, value)) == (str, int, str)
    elif parameter.kind is ParameterKind.PATTERNS:
        names = [value] if isinstance(value, str) else value
        is_right = isinstance(names, list | tuple) and all(isinstance(one, str) for one in names)
    else:
        return
    if not is_right:
        raise DescriptionError(
            f"its {parameter.name} is {brief(value)}, and takes {parameter.kind.value}"
        )


def _schedule_step(fields: _Fields) -> ScheduleStep:
    known = primitive(fields.text("primitive"))
    arguments = {key: _arrived(one) for key, one in fields.mapping("arguments").items()}
    names = {one.name for one in known.parameters}
    needed = {one.name for one in known.parameters if one.is_required}
    if not needed <= arguments.keys() <= names:
        raise DescriptionError(f"{known.name} takes other arguments than {brief(list(arguments))}")
    step = ScheduleStep(fields.text("function"), known.name, arguments)
    try:
        step.label  # noqa: B018 - it looks into the arguments
    except Exception as failure:  # one is of a kind that the primitive does not take
        raise DescriptionError(f"{known.name} does not take {brief(arguments)}") from failure
    return step


_KINDS: Mapping[str, Callable[[_Fields], Transform]] = {
    "bind": lambda one: BindParams(one.tensors("params"), one.text("function")),
    "swap": lambda one: Swap(
        one.text("callee"), one.text("replacement"), one.node("node"), one.text("function")
    ),
    "update": lambda one: UpdateFunction(one.text("name"), one.prim_func("prim_func")),
    "pass": _pass_call,
    "schedule": _schedule_step,
    "recorded": lambda one: Recorded(one.text("name")),
    "rewrite": lambda one: Rewrite(
        one.text("name"), one.module("pattern"), None, one.text("function")
    ),
    "label": lambda one: Kept(one.text("label"), one.flag("is_pass")),
}


_PLAIN = (bool, int, float, str, tvm.runtime.Tensor, tirx.IndexMap)


def _is_plain(value: object) -> bool:
    """Tell whether a file can say a value."""
    match value:
        case Mapping():
            return all(isinstance(key, str) and _is_plain(one) for key, one in value.items())
        case list() | tuple():
            return all(map(_is_plain, value))
    return value is None or isinstance(value, (*_PLAIN, LoopOf, BlockNamed, IndexMapText))


def _sent(value: object) -> object:
    return {"index map": value.text} if isinstance(value, IndexMapText) else value


def _arrived(value: object) -> object:
    match value:
        case {"index map": str() as text, **rest} if not rest:
            index_map = IndexMapText(text)
            try:
                index_map.function()
            except ValueError as failure:
                raise DescriptionError(str(failure)) from None
            # the text becomes a part of scripts, where what stands behind a # is cut off
            if not text.isprintable() or "#" in text:
                raise DescriptionError(f"{brief(text)} is no index map in one line")
            return index_map
    return value


def _array(value: object) -> object:
    """Return an argument with tensors as arrays, of which the pass makes tensors of its own."""
    if isinstance(value, dict):
        return {key: _array(one) for key, one in value.items()}
    return value.numpy() if isinstance(value, tvm.runtime.Tensor) else value

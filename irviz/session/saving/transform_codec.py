"""Convert transforms to and from plain values that a session file can hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import tvm
from tvm import ir, tirx

from irviz.errors import TransformError
from irviz.loaders.file_errors import brief
from irviz.model.loop_nest import BlockAddress, LoopAddress
from irviz.session.saving.value_codec import EncodingError
from irviz.transforms.bind_params import BindParams
from irviz.transforms.kernels.swap import Swap, UpdateFunction
from irviz.transforms.passes.as_transform import TVMPass, write_by_name
from irviz.transforms.passes.pass_call import PassCall
from irviz.transforms.passes.pattern_rewrite import Rewrite
from irviz.transforms.python_script import PythonScript, UnwritableError
from irviz.transforms.recordings.recorded_stages import RecordedPass
from irviz.transforms.schedules.index_map import IndexMapText
from irviz.transforms.schedules.schedule_step import ScheduleStep
from irviz.transforms.transform import SavedAs, Transform

Description = Mapping[str, object]

_PLAIN = (
    *(bool, int, float, str, tvm.runtime.Tensor, tirx.IndexMap),
    *(LoopAddress, BlockAddress, IndexMapText),
)
_IR = (ir.IRModule, tirx.PrimFunc)


@dataclass(frozen=True)
class LabelOnly(Transform):
    """A transform of which a file has only the label; it can be neither applied nor written.

    `is_pass` says that the label is the name of a pass.
    """

    saved_as = SavedAs("label", {"label": str, "is_pass": bool})

    label: str = ""
    is_pass: bool = False

    def __call__(self, mod: ir.IRModule) -> ir.IRModule:  # noqa: ARG002
        """Raise TransformError."""
        raise TransformError(
            f"{self.label!r} was saved by its label alone, and cannot be applied again: apply what "
            "it was in its place"
        )

    def write(self, script: PythonScript, before: ir.IRModule, after: ir.IRModule) -> None:
        """Write the catalog's pass of this name, if it makes the same module."""
        known = f"{self.label} was saved by its label alone"
        if not self.is_pass:
            raise UnwritableError(known)
        write_by_name(self.label, script, before, after, known)


_CLASSES = (
    *(BindParams, Swap, UpdateFunction, PassCall, ScheduleStep, RecordedPass, Rewrite),
    LabelOnly,
)
_KINDS: Mapping[str, type[Transform]] = {one.saved_as.kind: one for one in _CLASSES}


def describe(transform: Transform) -> Description:
    """Return the values that `restore` needs, or else only the transform's label."""
    kind, values = transform.saved_as.kind, transform.saved_values() or {}
    if kind and values and all(isinstance(v, _IR) or _is_plain(v) for v in values.values()):
        return {"kind": kind, **values}
    return describe(LabelOnly(transform.label, isinstance(transform, TVMPass)))


def restore(description: Description) -> Transform:
    """Return the described transform without applying it; raise EncodingError."""
    kind = description.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise EncodingError(f"{brief(kind)} is not a kind of transform")
    made = _KINDS[kind]
    fields = made.saved_as.fields
    values = {name: description.get(name) for name in fields}
    for name, expected in fields.items():
        if not isinstance(values[name], expected):
            words = getattr(expected, "__name__", expected)
            raise EncodingError(
                f"its {name} is {brief(values[name])}, where a {words} was expected"
            )
    try:
        return made.restored(values)
    except TransformError as refusal:
        raise EncodingError(str(refusal)) from None


def _is_plain(value: object) -> bool:
    """Tell whether a file can hold a value."""
    match value:
        case Mapping():
            return all(isinstance(key, str) and _is_plain(one) for key, one in value.items())
        case list() | tuple():
            return all(map(_is_plain, value))
    return value is None or isinstance(value, _PLAIN)

"""A form for the plain values of a schedule step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ipywidgets as widgets

from irviz.explorer.panels.field_errors import CheckedField, FieldError
from irviz.explorer.panels.form_controls import field
from irviz.model.loop_nest import Block, BlockAddress, LoopNest, ScheduleAddress, walk
from irviz.transforms.schedules.index_map import IndexMapText
from irviz.transforms.schedules.primitives import (
    CHOICES,
    ArgumentKind,
    Primitive,
    PrimitiveParameter,
)
from irviz.transforms.schedules.schedule_error import ScheduleTraceError
from irviz.transforms.schedules.schedule_trace import parse_value

_EXAMPLES: dict[ArgumentKind, str] = {
    ArgumentKind.FACTORS: "None, 4",
    ArgumentKind.NUMBERS: "1, 2",
    ArgumentKind.NUMBER: "0",
    ArgumentKind.VALUE: "none",
    ArgumentKind.TEXT: "a name",
    ArgumentKind.CHOICE: "one of the list, or another",
    ArgumentKind.ANNOTATION: '16, "text", [1, 2] or {"key": 1}',
    ArgumentKind.INDEX_MAP: "lambda i, j: (j, i)",
    ArgumentKind.BLOCKS: "names of blocks; none for all",
}
_LISTS = (ArgumentKind.FACTORS, ArgumentKind.NUMBERS)
_BUFFERS = (ArgumentKind.READ, ArgumentKind.WRITTEN, ArgumentKind.BUFFER)


class StepForm:
    """Asks for the arguments of a primitive other than loops and blocks."""

    def __init__(self) -> None:
        self.fields: dict[str, widgets.Widget] = {}
        self._checked: dict[str, CheckedField] = {}
        self.widget = widgets.VBox()
        self.widget.add_class("irviz-step-form")
        self._primitive: Primitive | None = None

    def show(
        self, primitive: Primitive | None, chosen: Sequence[ScheduleAddress], nest: LoopNest
    ) -> None:
        """Ask for the values of a primitive, keeping entries while it stays the same."""
        if primitive != self._primitive:
            self._primitive = primitive
            values = primitive.values if primitive else ()
            self.fields = {one.name: _field(one) for one in values}
            self._checked = {name: CheckedField(one) for name, one in self.fields.items()}
            self.widget.children = tuple(self._checked.values())
        for parameter in primitive.values if primitive else ():
            if parameter.kind in _BUFFERS:
                _offer_buffers(self.fields[parameter.name], parameter.kind, _block(chosen, nest))

    def values(self) -> dict[str, object]:
        """Return the entries by parameter; raise FieldError, which says what would be right."""
        parameters = self._primitive.values if self._primitive else ()
        return {
            one.name: value
            for one in parameters
            if (value := _value(one, self._checked[one.name])) is not None
        }


def _field(parameter: PrimitiveParameter) -> widgets.Widget:
    text = "" if parameter.default is None else str(parameter.default)
    kind: type[widgets.Widget] = widgets.Text
    options: dict[str, Any] = {"value": text, "placeholder": _EXAMPLES.get(parameter.kind, "")}
    if parameter.kind is ArgumentKind.FLAG:
        kind, options = widgets.Checkbox, {"value": bool(parameter.default), "indent": False}
    elif parameter.kind in _BUFFERS:
        kind, options = widgets.Dropdown, {}
    elif parameter.kind is ArgumentKind.CHOICE:
        kind, options["options"], options["value"] = widgets.Combobox, CHOICES[parameter.name], ""
    options["tooltip"] = f"{parameter.name}: {parameter.kind.value}"
    return field(kind, f"irviz-step-{parameter.name}", parameter.name, **options)


def _block(chosen: Sequence[ScheduleAddress], nest: LoopNest) -> Block | None:
    names = [one.name for one in chosen if isinstance(one, BlockAddress)]
    for node in walk(nest):
        if isinstance(node, Block) and node.name in names[:1]:
            return node
    return None


def _offer_buffers(offered: widgets.Dropdown, kind: ArgumentKind, block: Block | None) -> None:
    sides = {"read": block.reads, "write": block.writes} if block else {}
    wanted = {ArgumentKind.READ: ("read",), ArgumentKind.WRITTEN: ("write",)}.get(
        kind, ("read", "write")
    )
    options: list[tuple[str, object]] = []
    for side in wanted:
        for number, access in enumerate(sides.get(side, ())):
            value: object = (side, number) if kind is ArgumentKind.BUFFER else number
            options.append((f"{side}s {number}: {access.buffer}", value))
    if options != list(offered.options):
        offered.options = options


def _value(parameter: PrimitiveParameter, checked: CheckedField) -> object:
    """Return a field's value as TVM takes it, None for an empty optional one."""
    example = _EXAMPLES.get(parameter.kind)
    value = given = checked.control.value
    if isinstance(given, str):
        try:
            value = _read(parameter.kind, given.strip())
        except ScheduleTraceError as failure:
            raise FieldError(
                checked,
                f"{parameter.name} is {given.strip()!r}: {failure.words}; it takes "
                f"{parameter.kind.value}, such as {example}",
            ) from None
    if parameter.is_required and value in (None, []):
        hint = f", such as {example}" if example else ""
        words = f"{parameter.name} is empty: write {parameter.kind.value}{hint}"
        raise FieldError(checked, words)
    return value


def _read(kind: ArgumentKind, text: str) -> object:
    """Parse a text, None if empty; raise ScheduleTraceError for a value of another kind."""
    if not text:
        return None
    if kind is ArgumentKind.BLOCKS:
        names = [name.strip() for name in text.split(",") if name.strip()]
        return [BlockAddress(name) for name in names] or None
    if kind in (ArgumentKind.TEXT, ArgumentKind.CHOICE):
        return text
    if kind in _LISTS:
        return parse_value(text if text.startswith("[") else f"[{text}]")
    value = parse_value(text)
    if kind is ArgumentKind.INDEX_MAP and not isinstance(value, IndexMapText):
        raise ScheduleTraceError("it is not an index map")
    return value

"""The plain values of a step, as a small form."""

from __future__ import annotations

from collections.abc import Sequence

import ipywidgets as widgets

from irviz.model.loops import Address, Block, BlockNamed, LoopNest, nodes
from irviz.transforms.schedules.index_map import IndexMapText
from irviz.transforms.schedules.primitives import CHOICES, Kind, Parameter, Primitive
from irviz.transforms.schedules.trace import TraceError, read_value
from irviz.transforms.stage import TransformError

_EXAMPLES: dict[Kind, str] = {
    Kind.FACTORS: "None, 4",
    Kind.NUMBERS: "1, 2",
    Kind.NUMBER: "0",
    Kind.VALUE: "none",
    Kind.TEXT: "a name",
    Kind.CHOICE: "one of the list, or another",
    Kind.ANNOTATION: '16, "text", [1, 2] or {"key": 1}',
    Kind.INDEX_MAP: "lambda i, j: (j, i)",
    Kind.BLOCKS: "names of blocks; none for all",
}
_LISTS = (Kind.FACTORS, Kind.NUMBERS)
_BUFFERS = (Kind.READ, Kind.WRITTEN, Kind.BUFFER)


class StepForm:
    """Ask for what a primitive takes beside loops and blocks."""

    def __init__(self) -> None:
        self.fields: dict[str, widgets.Widget] = {}
        self.widget = widgets.VBox()
        self.widget.add_class("irviz-step-form")
        self._primitive: Primitive | None = None

    def show(self, primitive: Primitive | None, chosen: Sequence[Address], nest: LoopNest) -> None:
        """Ask for the values of a primitive; what was written stays while it is the same one."""
        if primitive != self._primitive:
            self._primitive = primitive
            values = primitive.values if primitive else ()
            self.fields = {one.name: _field(one) for one in values}
            self.widget.children = tuple(self.fields.values())
        for parameter in primitive.values if primitive else ():
            if parameter.kind in _BUFFERS:
                _offer_buffers(self.fields[parameter.name], parameter.kind, _block(chosen, nest))

    def values(self) -> dict[str, object]:
        """Return what was written, by parameter; raise TransformError with what would be right."""
        parameters = self._primitive.values if self._primitive else ()
        return {
            one.name: value
            for one in parameters
            if (value := _value(one, self.fields[one.name].value)) is not None or one.is_required
        }


def _field(parameter: Parameter) -> widgets.Widget:
    style = {"description_width": "initial"}
    look = {"description": parameter.name, "style": style, "layout": widgets.Layout(width="auto")}
    if parameter.kind is Kind.FLAG:
        field = widgets.Checkbox(value=bool(parameter.default), indent=False, **look)
    elif parameter.kind in _BUFFERS:
        field = widgets.Dropdown(**look)
    elif parameter.kind is Kind.CHOICE:
        hint = _EXAMPLES[Kind.CHOICE]
        field = widgets.Combobox(options=CHOICES[parameter.name], placeholder=hint, **look)
    else:
        text = "" if parameter.default is None else str(parameter.default)
        field = widgets.Text(value=text, placeholder=_EXAMPLES.get(parameter.kind, ""), **look)
    field.tooltip = f"{parameter.name}: {parameter.kind.value}"
    field.add_class(f"irviz-step-{parameter.name}")
    return field


def _block(chosen: Sequence[Address], nest: LoopNest) -> Block | None:
    names = [one.name for one in chosen if isinstance(one, BlockNamed)]
    for node in nodes(nest):
        if isinstance(node, Block) and node.name in names[:1]:
            return node
    return None


def _offer_buffers(field: widgets.Dropdown, kind: Kind, block: Block | None) -> None:
    sides = {"read": block.reads, "write": block.writes} if block else {}
    wanted = {Kind.READ: ("read",), Kind.WRITTEN: ("write",)}.get(kind, ("read", "write"))
    options: list[tuple[str, object]] = []
    for side in wanted:
        for number, access in enumerate(sides.get(side, ())):
            value: object = (side, number) if kind is Kind.BUFFER else number
            options.append((f"{side}s {number}: {access.buffer}", value))
    if options != list(field.options):
        field.options = options


def _value(parameter: Parameter, given: object) -> object:
    """Return a field's value as TVM takes it, None for an empty one."""
    if not isinstance(given, str):
        return given
    text = given.strip()
    if parameter.kind is Kind.BLOCKS:
        names = [name.strip() for name in text.split(",") if name.strip()]
        return [BlockNamed(name) for name in names] or None
    if parameter.kind in (Kind.TEXT, Kind.CHOICE) and text:
        return text
    try:
        if text:
            return _read(parameter.kind, text)
    except TraceError as failure:
        raise TransformError(
            f"{parameter.name} is {text!r}: {failure.words}; it takes {parameter.kind.value}, "
            f"such as {_EXAMPLES[parameter.kind]}"
        ) from None
    if parameter.is_required:
        raise TransformError(
            f"{parameter.name} is empty: write {parameter.kind.value}"
            + (f", such as {example}" if (example := _EXAMPLES.get(parameter.kind)) else "")
        )
    return None


def _read(kind: Kind, text: str) -> object:
    if kind in _LISTS:
        return read_value(text if text.startswith("[") else f"[{text}]")
    if kind is Kind.INDEX_MAP:
        value = read_value(text)
        if not isinstance(value, IndexMapText):
            raise TraceError("it is no index map", 1, 1)
        return value
    return read_value(text)

"""The schedule of a PrimFunc: primitives chosen by clicks on its loop nest, and their trace."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import anywidget
import ipywidgets as widgets

from irviz.errors import TransformError
from irviz.explorer import actions
from irviz.explorer.panels.form_controls import (
    CheckedField,
    FieldError,
    classed,
    field,
    html,
    offer,
    paragraph,
    show_if,
)
from irviz.explorer.panels.panel import Panel
from irviz.explorer.schedules import loop_addresses, nest, prim_func, prim_funcs, schedule_trace
from irviz.explorer.state import State
from irviz.explorer.store import Store
from irviz.explorer.viewer import STATIC
from irviz.explorer.viewer.schema import LoopTraits
from irviz.explorer.viewer.widget import synced_traits
from irviz.model.loop_nest import (
    Block,
    BlockAddress,
    Loop,
    LoopNest,
    ScheduleAddress,
    innermost_node,
    walk,
)
from irviz.transforms.python_script import UnwritableError
from irviz.transforms.schedules.index_map import IndexMapText
from irviz.transforms.schedules.primitives import (
    CHOICES,
    FOR_CODE,
    ArgumentKind,
    Primitive,
    PrimitiveParameter,
    primitives,
)
from irviz.transforms.schedules.schedule_error import IllegalStepError, ScheduleTraceError
from irviz.transforms.schedules.schedule_step import ScheduleStep, schedule_step
from irviz.transforms.schedules.schedule_trace import parse_trace, parse_value
from irviz.view.loop_nest_html import loop_nest_html
from irviz.view.templating import render


class LoopView(anywidget.AnyWidget, LoopTraits):
    """Shows a loop nest and lets the user choose loops and blocks."""

    _esm = STATIC / "loops.js"

    locals().update(synced_traits(LoopTraits))

    def show(self, nest: LoopNest, choosable: Collection[str], label: str) -> None:
        """Show a nest, and drop chosen nodes that are gone or can no longer be chosen."""
        there = {node.id for node in walk(nest)}
        with self.hold_sync():
            self.html, self.label = loop_nest_html(nest, choosable), label
            self.chosen = [one for one in self.chosen if one in choosable]
            self.marked = [one for one in self.marked if one in there]

    def mark(self, marked: Sequence[str]) -> None:
        """Mark these nodes, and no others."""
        self.marked = list(marked)


class SchedulePanel(Panel):
    """Chooses a PrimFunc, loops and blocks of it, and a primitive to apply to them."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._nest = LoopNest("", (), (), ())
        self._addresses: Mapping[str, ScheduleAddress] = {}
        self._shown_primitive: Primitive | None = None
        self._functions = field(widgets.Dropdown, "irviz-schedule-function", "PrimFunc")
        self.view = LoopView()
        self._several = field(widgets.Checkbox, "", "a click adds to what is chosen", indent=False)
        options = [("choose a step", "")]
        self._primitives = field(
            widgets.Dropdown, "irviz-schedule-primitive", "step", options=options
        )
        self._checked = CheckedField(self._primitives)
        self._hint, self._error = html(""), html("")
        self.form = StepForm()
        self._checked_values = CheckedField(self.form.widget)
        self._apply = self.button(
            "Apply step",
            "Do this to the loops and blocks that are chosen",
            self._send_step,
            name="irviz-schedule-apply",
        )
        self._automatic = field(widgets.Checkbox, "", "measure each step", value=True, indent=False)
        self.on_change(self._functions, self._choose_function)
        self._primitives.observe(lambda _: self._show_primitive(), "value")
        self.view.observe(lambda _: self._show_choice(), "chosen")
        self.sets(self._automatic, "measures_steps")
        widgets.link((self._several, "value"), (self.view, "many"))
        buttons = widgets.HBox([self._apply, self._automatic])
        controls = [self.view, self._several, self._checked, self._hint, self._checked_values]
        self._controls = widgets.VBox([*controls, buttons, self._error])
        self.widget = classed(widgets.VBox([self._functions, self._controls]), "irviz-schedule")

    def _parts(self, state: State) -> tuple[object, ...]:
        name = prim_func(state)
        loops = nest(state) if name else None
        options = state.measures_steps, state.stage_id
        return (name, loops, state.stage, *prim_funcs(state), *options, _refusal(state, name))

    def _show(self, state: State) -> None:
        """Show the PrimFunc's loops, keeping the selection while they are the same."""
        names, function = prim_funcs(state), prim_func(state)
        offer(self._functions, names or [("none in this stage", "")], function)
        self._automatic.value = state.measures_steps
        show_if(self._controls, bool(function))
        if not function:
            return
        loops = nest(state)
        if loops != self._nest:
            self._nest, self._addresses = loops, loop_addresses(state)
            self.view.chosen, self._primitives.value = [], ""
        self.view.show(loops, self._addresses, f"loops of {function}, stage {state.stage_id}")
        refused = _refusal(state, function)
        self.view.mark(self._marks(refused))
        self._error.value = refusal_html(refused)
        self._show_choice()

    def _choose_function(self, name: str | None) -> None:
        if name:
            self.send(actions.SetField("prim_func", name))

    def _show_choice(self) -> None:
        """List the primitives, first those that fit the selection."""
        chosen = self._chosen()
        fitting, others = list[tuple[str, str]](), list[tuple[str, str]]()
        for one in primitives().values():
            if one.name not in FOR_CODE:
                fits = one.placed(chosen) is not None
                words = f"{one.name} ({one.group})" if fits else f"{one.name}: takes {one.needs}"
                (fitting if fits else others).append((words, one.name))
        offer(
            self._primitives,
            [("choose a step", ""), *fitting, *others],
            self._primitives.value or "",
        )
        self._show_primitive()

    def _show_primitive(self) -> None:
        if self._primitives.value is None:  # between two lists of options
            return
        known = self._primitive()
        chosen = self._chosen()
        self.form.show(known, chosen, self._nest)
        words = f"chosen: {', then '.join(map(self._name, self.view.chosen)) or 'nothing'}."
        if known is not None:
            words += f" {known.summary}"
            if known.placed(chosen) is None:
                words += f" Choose {known.needs}."
        if known is not self._shown_primitive:
            self._shown_primitive = known
            self._several.value = known is not None and known.takes_several
        self._hint.value = paragraph(words, "irviz-hint")
        self._apply.disabled = known is None or known.placed(chosen) is None

    def _send_step(self) -> None:
        self._error.value = ""
        self.try_to_send(self._step)

    def _step(self) -> actions.Action:
        known = self._primitive()
        placed = known.placed(self._chosen()) if known else None
        if known is None or placed is None:
            words = "no step is chosen, or not what it takes: choose a step, loops and blocks"
            raise FieldError(self._checked, words)
        named = {**placed, **self.form.values()}
        several = [one.name for one in known.addresses if one.is_variadic]
        positional = [loop for name in several for loop in named.pop(name)]  # type: ignore[attr-defined]
        try:
            return actions.Apply(
                schedule_step(prim_func(self.state), known.name, *positional, **named)
            )
        except TransformError as failure:  # the parameters do not go together
            raise FieldError(self._checked_values, failure) from None

    def _primitive(self) -> Primitive | None:
        return primitives().get(self._primitives.value or "")

    def _chosen(self) -> list[ScheduleAddress]:
        return [self._addresses[one] for one in self.view.chosen if one in self._addresses]

    def _marks(self, refused: Exception | None) -> list[str]:
        """Return the nodes that TVM's error refers to, and the chosen loops if it refers to none.

        An error that refers to nothing is about the other arguments.
        """
        if not isinstance(refused, IllegalStepError):
            return []
        marks = [one for path in refused.paths if (one := innermost_node(self._nest, path))]
        there = {node.id: node for node in walk(self._nest)}
        if marks and not any(isinstance(there[one], Loop) for one in marks):
            marks += [one for one in self.view.chosen if isinstance(there.get(one), Loop)]
        return marks

    def _name(self, node_id: str) -> str:
        """Return a node's name for display."""
        node = next((one for one in walk(self._nest) if one.id == node_id), None)
        match node:
            case Loop(variable=name):
                return name
            case Block(name=name):
                return f"block {name}"
        return node_id


class TracePanel(Panel):
    """Shows the trace of the PrimFunc's schedule as text, to be edited and replayed."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._trace = CheckedField(field(widgets.Textarea, "irviz-trace", rows=6))
        replay = self.button(
            "Replay",
            "Do the steps of this text, from where the trace begins",
            lambda: self.try_to_send(self._replay),
            name="irviz-schedule-replay",
        )
        self.widget = widgets.VBox(
            [widgets.HTML("<h3>trace</h3>"), self._trace, widgets.HBox([replay])]
        )

    def _parts(self, state: State) -> tuple[object, ...]:
        return (schedule_trace(state) if prim_func(state) else None,)

    def _show(self, state: State) -> None:
        """Show the steps of the schedule, up to the current stage."""
        show_if(self.widget, bool(prim_func(state)))
        self._trace.say("")
        if prim_func(state):
            self._trace.control.value = "".join(map(_line, schedule_trace(state).steps))

    def _replay(self) -> actions.Action:
        function = prim_func(self.state)
        try:
            steps = parse_trace(self._trace.control.value, function)
        except TransformError as failure:
            raise FieldError(self._trace, failure) from None
        return actions.ReplaySchedule(function, tuple(steps))


def _refusal(state: State, function: str) -> Exception | None:
    """Return why the last step of a PrimFunc's schedule was rejected, None if it was not."""
    if state.failure is None:
        return None
    match state.failure.action:
        case actions.Apply(transform=ScheduleStep(function=name)) if name == function:
            return state.failure.error
        case actions.ReplaySchedule(function=name) if name == function:
            return state.failure.error
    return None


def refusal_html(refused: Exception | None) -> str:
    """Return why a step was rejected, with TVM's full message collapsed; "" if it was not."""
    if refused is None:
        return ""
    words, details = str(refused), getattr(refused, "details", "")
    return str(render("refusal", words=words, details="" if details in words else details))


def _line(step: ScheduleStep) -> str:
    try:
        return f"{step.line}\n"
    except UnwritableError as failure:
        return f"# {step.primitive}: only code can do this; {failure}\n"


# --- schedule step form ------------------------------------------------------------------------
#
# A form for the plain values of a schedule step.


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

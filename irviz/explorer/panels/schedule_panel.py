"""The schedule of a PrimFunc: any primitive with all its values, and the trace of the steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
from irviz.explorer.schedules import (
    chosen_addresses,
    chosen_loops,
    nest,
    prim_func,
    prim_funcs,
    read_value,
    refusal,
    schedule_trace,
)
from irviz.explorer.state import State
from irviz.explorer.store import Store
from irviz.model.loop_nest import (
    Block,
    BlockAddress,
    LoopNest,
    ScheduleAddress,
    walk,
)
from irviz.transforms.python_script import UnwritableError
from irviz.transforms.schedules.primitives import (
    CHOICES,
    FOR_CODE,
    ArgumentKind,
    Primitive,
    PrimitiveParameter,
    primitives,
)
from irviz.transforms.schedules.schedule_error import ScheduleTraceError
from irviz.transforms.schedules.schedule_step import ScheduleStep, schedule_step
from irviz.transforms.schedules.schedule_trace import parse_trace
from irviz.view.templating import render


class SchedulePanel(Panel):
    """Chooses a PrimFunc, and a primitive to apply to the loops and blocks that are chosen."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._nest = LoopNest("", (), (), ())
        self._functions = field(widgets.Dropdown, "irviz-schedule-function", "PrimFunc")
        options = [("choose a step", "")]
        self._primitives = field(
            widgets.Dropdown, "irviz-schedule-primitive", "any step", options=options
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
        self.sets(self._automatic, "measures_steps")
        buttons = widgets.HBox([self._apply, self._automatic])
        controls = [self._error, self._checked, self._hint, self._checked_values]
        self._controls = widgets.VBox([*controls, buttons])
        self.widget = classed(widgets.VBox([self._functions, self._controls]), "irviz-schedule")

    def _parts(self, state: State) -> tuple[object, ...]:
        name = prim_func(state)
        loops = nest(state) if name else None
        options = state.measures_steps, *prim_funcs(state)
        return (name, loops, state.stage, chosen_loops(state), refusal(state), *options)

    def _show(self, state: State) -> None:
        """Show the primitives for what is chosen; entries stay while the loops are the same."""
        names, function = prim_funcs(state), prim_func(state)
        offer(self._functions, names or [("none in this stage", "")], function)
        show_if(self._functions, len(names) != 1)
        self._automatic.value = state.measures_steps
        show_if(self._controls, bool(function))
        if not function:
            return
        if nest(state) != self._nest:
            self._nest, self._primitives.value = nest(state), ""
        self._error.value = refusal_html(refusal(state))
        self._show_choice()

    def _choose_function(self, name: str | None) -> None:
        if name:
            self.send(actions.Look(actions.Focus(name)))

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
        words = ""
        if known is not None:
            words = known.summary
            if known.placed(chosen) is None:
                words += f" Choose {known.needs}. A click with Ctrl or Shift chooses one more."
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

    def _chosen(self) -> Sequence[ScheduleAddress]:
        return chosen_addresses(self.state)


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
            value = read_value(parameter.kind, given.strip())
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

"""The schedule of a PrimFunc: primitives chosen by clicks on its loop nest, and their trace."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

import ipywidgets as widgets
from tvm import tirx

from irviz.app.controls import button, wide_field
from irviz.app.loop_view import LoopView
from irviz.app.panels import Act
from irviz.app.reference import offer
from irviz.app.replay import applied, replayed
from irviz.app.session import Session
from irviz.app.step_form import StepForm
from irviz.app.step_timing import StepTiming
from irviz.ir.loops import loop_nest
from irviz.model.loops import Address, Block, Loop, LoopNest, addresses, nearest, nodes
from irviz.transforms.python import UnwritableError
from irviz.transforms.schedules.primitives import FOR_CODE, Primitive, primitives
from irviz.transforms.schedules.schedule import ScheduleStep, schedule_step
from irviz.transforms.schedules.schedule_error import IllegalStepError
from irviz.transforms.schedules.trace import Trace, read_trace, trace_of
from irviz.transforms.stage import Stage, TransformError

Say = Callable[[str], None]


class SchedulePanel:
    """Choose a PrimFunc, loops and blocks of it and a primitive; show, cut and replay the trace.

    `act` applies a verb to the session, `say` shows words.
    """

    def __init__(self, act: Act, say: Say) -> None:
        self._act = act
        self._session: Session | None = None
        self._nest = LoopNest("", (), (), ())
        self.addresses: dict[str, Address] = {}
        self._timing = StepTiming(say)
        self._refused: IllegalStepError | None = None
        self._shown: Primitive | None = None
        self._functions = widgets.Dropdown(description="PrimFunc", **wide_field())
        self._functions.add_class("irviz-schedule-function")
        self.view = LoopView()
        self._several = widgets.Checkbox(
            value=False, description="a click adds to what is chosen", indent=False, **wide_field()
        )
        self._primitives = widgets.Dropdown(
            options=[("choose a step", "")], description="step", **wide_field()
        )
        self._primitives.add_class("irviz-schedule-primitive")
        self._hint, self._error = widgets.HTML(), widgets.HTML()
        self.form = StepForm()
        self._apply = button("Apply step", "Do this to the loops and blocks that are chosen")
        self._apply.add_class("irviz-schedule-apply")
        self._automatic = widgets.Checkbox(
            value=True, description="measure each step", indent=False, **wide_field()
        )
        self._trace = widgets.Textarea(rows=6, layout=widgets.Layout(width="auto"))
        self._trace.add_class("irviz-trace")
        self._replay = button("Replay", "Do the steps of this text, from where the trace begins")
        self._replay.add_class("irviz-schedule-replay")
        self._functions.observe(lambda _: self._show_function(), "value")
        self._primitives.observe(lambda _: self._show_primitive(), "value")
        self.view.observe(lambda _: self._show_choice(), "chosen")
        widgets.link((self._several, "value"), (self.view, "many"))
        self._apply.on_click(lambda _: self._do(self._step))
        self._replay.on_click(lambda _: self._do(self._replayed))
        controls = widgets.HBox([self._apply, self._automatic])
        self._parts = widgets.VBox(
            [
                *(self.view, self._several, self._primitives, self._hint, self.form.widget),
                *(controls, self._error, self._timing.widget),
                *(widgets.HTML("<h5>trace</h5>"), self._trace, widgets.HBox([self._replay])),
            ]
        )
        self.widget = widgets.VBox([self._functions, self._parts])
        self.widget.add_class("irviz-schedule")

    @property
    def function(self) -> str:
        """The name of the PrimFunc that is shown, "" for none."""
        return self._functions.value or ""

    def show(self, session: Session) -> None:
        """Show the shown stage's PrimFuncs, the chosen one's loops and its trace."""
        names = sorted(
            gvar.name_hint
            for gvar, function in session.shown.module.functions.items()
            if isinstance(function, tirx.PrimFunc)
        )
        self._session = None  # nothing is read while the options change
        chosen = self.function if self.function in names else next(iter(names), "")
        offer(self._functions, names or [("none in this stage", "")], chosen)
        self._session = session
        self._show_function()

    def choose(self, function: str) -> None:
        """Show another PrimFunc of the shown stage; a name that it lacks changes nothing."""
        if function in self._functions.options:
            self._functions.value = function

    def _show_function(self) -> None:
        """Set everything from the session and the chosen PrimFunc."""
        if self._session is None or self._functions.value is None:  # between two lists of options
            return
        self._parts.layout.display = "" if self.function else "none"
        if not self.function:
            return
        stage, function = self._session.shown, self.function
        nest = loop_nest(stage.module[function], function)
        if nest != self._nest:
            self._nest, self.addresses = nest, addresses(nest)
            self.view.chosen, self._refused, self._primitives.value = [], None, ""
        label = f"loops of {function}, stage {stage.id}"
        self.view.show(nest, self.addresses, label)
        self.view.mark(self._marks())
        self._trace.value = "".join(map(_line, self._traced().steps))
        self._timing.show(self._session, self._whole(), function)
        self._show_choice()
        self._show_refused()

    def _show_choice(self) -> None:
        """Offer the primitives, first those that fit what is chosen."""
        chosen = self._chosen()
        fitting, others = list[tuple[str, str]](), list[tuple[str, str]]()
        for one in primitives().values():
            if one.name not in FOR_CODE:
                fits = one.placed(chosen) is not None
                words = f"{one.name} ({one.group})" if fits else f"{one.name}: takes {one.needs}"
                (fitting if fits else others).append((words, one.name))
        options = [("choose a step", ""), *fitting, *others]
        if options != list(self._primitives.options):
            offer(self._primitives, options, self._primitives.value or "")
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
        if known is not self._shown:
            self._shown = known
            self._several.value = known is not None and known.takes_several
        self._hint.value = f'<p class="irviz-hint">{escape(words)}</p>'
        self._apply.disabled = known is None or known.placed(chosen) is None

    def _show_refused(self) -> None:
        refused = self._refused
        if refused is None:
            self._error.value = ""
            return
        details = ""
        if refused.details and refused.details not in refused.words:
            details = (
                "<details><summary>all that TVM says</summary>"
                f"<pre>{escape(refused.details)}</pre></details>"
            )
        words = f'<p role="alert" class="irviz-error">{escape(refused.words)}</p>'
        self._error.value = words + details

    def _do(self, make: Callable[[Session], Session]) -> None:
        """Apply a verb; measure what it made, or show why it could not be."""
        before, self._refused = self._session, None

        def verb(session: Session) -> Session:
            try:
                return make(session)
            except TransformError as failure:
                self._refused = (
                    failure
                    if isinstance(failure, IllegalStepError)
                    else IllegalStepError(str(failure))
                )
                raise

        self._act(verb)
        self.view.mark(self._marks())
        self._show_refused()
        if self._session is not before and self._automatic.value:
            self._timing.measure()

    def _step(self, session: Session) -> Session:
        known = self._primitive()
        placed = known.placed(self._chosen()) if known else None
        if known is None or placed is None:
            raise TransformError("choose a step, and the loops and blocks that it takes")
        named = {**placed, **self.form.values()}
        several = [one.name for one in known.addresses if one.is_variadic]
        positional = [loop for name in several for loop in named.pop(name)]  # type: ignore[attr-defined]
        return applied(session, schedule_step(self.function, known.name, *positional, **named))

    def _replayed(self, session: Session) -> Session:
        return replayed(session, read_trace(self._trace.value, self.function), self.function)

    def _primitive(self) -> Primitive | None:
        return primitives().get(self._primitives.value or "")

    def _chosen(self) -> list[Address]:
        return [self.addresses[one] for one in self.view.chosen if one in self.addresses]

    def _marks(self) -> list[str]:
        """Return what the refusal means: what TVM points at, and the chosen loops if no loop is."""
        paths = self._refused.paths if self._refused else ()
        marks = [one for path in paths if (one := nearest(self._nest, path))]
        there = {node.id: node for node in nodes(self._nest)}
        if self._refused and not any(isinstance(there[one], Loop) for one in marks):
            marks += [one for one in self.view.chosen if isinstance(there.get(one), Loop)]
        return marks

    def _name(self, node_id: str) -> str:
        """Return what a reader calls a node."""
        node = next((one for one in nodes(self._nest) if one.id == node_id), None)
        match node:
            case Loop(variable=name):
                return name
            case Block(name=name):
                return f"block {name}"
        return node_id

    def _traced(self) -> Trace:
        assert self._session is not None, "show was called"
        return trace_of(self._session.stages, self._session.shown_id, self.function)

    def _whole(self) -> tuple[Stage, ...]:
        """Return the stages of the trace, from the one that it begins with."""
        return (self._traced().base, *self._traced().stages)


def _line(step: ScheduleStep) -> str:
    try:
        return f"{step.line}\n"
    except UnwritableError as failure:
        return f"# {step.primitive}: only code can do this; {failure}\n"

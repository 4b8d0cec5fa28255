"""The tab *Results*: inputs and limits of runs, outputs by case, and the first wrong pass."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import ipywidgets as widgets
from tvm import relax, tirx

from irviz.errors import IrvizError
from irviz.explorer import actions
from irviz.explorer.actions import LimitName
from irviz.explorer.panels import panel as ui
from irviz.explorer.stage_rows import answer
from irviz.explorer.state import State
from irviz.explorer.store import Store
from irviz.ir.module_functions import function_named
from irviz.ir.symbolic_shapes import parameter_types, symbolic_sizes
from irviz.loaders.input_files import missing_inputs, read_inputs
from irviz.runtime.argument_conversion import SIZE, Array
from irviz.runtime.build_module import BUILDS
from irviz.runtime.call_inputs import RANDOM, WORDS, ZEROS, CallInputs, Inputs, Plan, own_inputs
from irviz.runtime.kv_caches import total_lengths
from irviz.runtime.run_config import check_limits, check_place
from irviz.session.run_stages import input_of_case
from irviz.view.array_pictures import as_image, grey_png
from irviz.view.run_result_html import outputs_html
from irviz.view.templating import render
from irviz.worker.shared_arrays import shared


class RunButton(ui.Panel):
    """Runs the current stage now, and new ones automatically."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._run = self.button(
            "Run", "Build the shown stage and run it", self._wanted, "play", "irviz-run"
        )
        self._answer = ui.html("irviz-answer")
        self._automatic = ui.checkbox("irviz-run-new", "run every new stage", is_on=True)
        self.sets(self._automatic, "runs_new_stages")
        row = widgets.HBox([self._run, self._automatic])
        self.widget = widgets.VBox([row, self._answer])

    def _show(self, state: State) -> None:
        self._automatic.value = state.runs_new_stages
        shown = ("Cancel", "stop") if state.jobs.keys else ("Run", "play")
        self._run.description, self._run.icon = shown
        given = answer(state)
        self._answer.value = ui.paragraph(given.words, f"irviz-answer irviz-{given.kind}", "status")

    def _wanted(self) -> actions.Action:
        return actions.Cancel() if self.state.jobs.keys else actions.Run(again=True)


class RunPanel(ui.Panel):
    """Shows the outputs of the current stage for one case, and the input if it is an image."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._case = ui.field(widgets.BoundedIntText, "irviz-case", min=0)
        self.sets(self._case, "case")
        hidden = widgets.Layout(display="none")
        self._picture = ui.classed(
            widgets.Image(format="png", layout=hidden), "irviz-input-picture"
        )
        self._outputs = ui.html("irviz-run-outputs")
        self.widget = widgets.VBox([self._case, self._picture, self._outputs])

    def _parts(self, state: State) -> tuple[object, ...]:
        runs, stage_id = state.function_runs, state.stage_id
        result, error = runs.results.get(stage_id), runs.errors.get(stage_id, "")
        return state.session.call_inputs.inputs, state.function, result, error, state.case

    def _show(self, state: State) -> None:
        """Show the outputs of a run, or why there are none."""
        runs, stage_id = state.function_runs, state.stage_id
        result, error = runs.results.get(stage_id), runs.errors.get(stage_id, "")
        ui.show_if(self._case, result is not None and result.cases > 1)
        if result is None:
            ui.show_if(self._picture, False)
            words = error or "Not run yet."
            self._outputs.value = ui.paragraph(words, "irviz-error" if error else "")
            return
        self._case.max = max(result.cases - 1, 0)
        self._case.description = f"input (0 to {result.cases - 1})"
        shown = min(state.case, result.cases - 1)
        self._case.value = shown
        called = function_named(state.stage.module, state.function)
        array = input_of_case(own_inputs(called, state.session.call_inputs.inputs), shown)
        image = None if array is None else as_image(array)
        is_classified = image is not None or result.labels is not None
        self._outputs.value = outputs_html(result, shown, is_classified=is_classified)
        ui.show_if(self._picture, image is not None)
        if image is not None:
            self._picture.value = grey_png(image)


_GB = 10**9
_LIMITS: Mapping[LimitName, tuple[type[widgets.Widget], str, Mapping[str, Any]]] = {
    "isolate": (widgets.Checkbox, "in a process of its own", {"indent": False}),
    "seconds": (widgets.BoundedFloatText, "stop after (s)", {"min": 0.1, "max": 86_400}),
    "memory": (widgets.BoundedFloatText, "memory (GB, 0: what is free)", {"min": 0, "max": 1e6}),
    "device": (
        widgets.Text,
        "device",
        {"placeholder": "cpu, or host:port of an RPC server", "continuous_update": False},
    ),
    "build": (widgets.Dropdown, "build", {"options": BUILDS}),
}
"""The control, words and options of each limit."""


class LimitsPanel(ui.Panel):
    """Chooses the process or machine that runs stages, and the limits of a run."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        # only what was changed is sent: the others may be beyond what a field can show
        self._fields: dict[LimitName, ui.CheckedField] = {}
        for name, (kind, words, options) in _LIMITS.items():
            made = ui.field(kind, f"irviz-limits-{name}", words, **options)
            self._fields[name] = ui.CheckedField(made)
            self.on_change(made, partial(self._limit, name))
        fields = widgets.VBox([*self._fields.values()])
        self.widget = ui.classed(
            widgets.Accordion([fields], titles=("where it runs, and limits",)), "irviz-limits"
        )

    def _parts(self, state: State) -> tuple[object, ...]:
        return (state.session.run_config,)

    def _show(self, state: State) -> None:
        limits = state.session.run_config
        for name, made in self._fields.items():
            value = getattr(limits, name)
            made.control.value = (value or 0) / _GB if name == "memory" else value

    def _limit(self, name: LimitName, value: Any) -> actions.Action:
        if name == "memory":
            value = round(value * _GB) or None
        value = value.strip() if name == "device" else value
        try:
            limits = self.state.session.with_run_config(**{name: value}).run_config
            check_limits(limits)
            if name == "device":
                check_place(limits)
        except IrvizError as failure:
            words = f"{failure}; runs go on with what was there before"
            raise ui.FieldError(self._fields[name], words) from None
        return actions.SetLimit(name, value)


# --- Choose the inputs of runs: the user's own, random ones, zeros or a file; and sizes ----------


GIVEN, FILE = "given", "file"
_OPTIONS = [("random", RANDOM), ("zeros", ZEROS), ("file", FILE)]
_CALLABLE = (relax.Function, tirx.PrimFunc)
_MOST_LINES = 4
_LARGEST = 1 << 53
_NO_FILE = "no file is named: give the path of an .npy, an .npz, an image, or a folder of images"
_AS_BEFORE = "runs are still given what was chosen before"


class InputsPanel(ui.Panel):
    """Choose the source of inputs, the seed, and the sizes that nothing determines.

    A choice takes effect if the function can be called with it; otherwise the panel says why not,
    and the previous choice remains. Choices persist while stages change, and a file's contents stay
    as they were read, so that all stages get the same inputs.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        session = store.state.session
        given = self._given = session.call_inputs.inputs
        self._sizes = dict(session.call_inputs.sizes)
        self._read: dict[str, Array] = {}
        self._refused = ""
        is_word = given is None or isinstance(given, str)
        self._options = _OPTIONS if is_word else [("as given", GIVEN), *_OPTIONS]
        self._source = ui.field(
            widgets.Dropdown,
            "irviz-inputs-source",
            "inputs",
            options=self._options,
            value=(given if given in WORDS else RANDOM) if is_word else GIVEN,
        )
        self._seed = ui.field(
            widgets.BoundedIntText,
            "irviz-inputs-seed",
            "seed",
            value=session.call_inputs.seed,
            min=0,
            max=_LARGEST,
        )
        self._path = ui.field(widgets.Text, "irviz-inputs-path", "file", continuous_update=False)
        again = self.button("Read", "Read the file again", self._choose, name="irviz-inputs-read")
        self._file = ui.CheckedField(self._path, widgets.HBox([self._path, again]))
        self._fields: dict[str, widgets.BoundedIntText] = {}
        wrapping = widgets.Layout(flex_flow="row wrap")
        self._row = ui.classed(widgets.HBox(layout=wrapping), "irviz-inputs-sizes")
        self._line = ui.html("irviz-inputs-line")
        self.on_change(self._source, lambda _: self._choose())
        self.on_change(self._seed, lambda _: self._report())
        self.on_change(self._path, lambda _: self._choose())
        parts = [self._source, self._seed, self._file, self._row, self._line]
        self.widget = ui.classed(widgets.VBox(parts), "irviz-inputs")

    @property
    def source(self) -> str:
        """Where inputs come from: "given", "random", "zeros" or "file"."""
        return str(self._source.value)

    @property
    def _function(self) -> object:
        """The shown function."""
        return function_named(self.state.stage.module, self.state.function)

    @property
    def _callee(self) -> relax.Function | tirx.PrimFunc:
        """The shown function, which is called."""
        function = self._function
        assert isinstance(function, _CALLABLE), "nothing is called"
        return function

    @property
    def _params(self) -> Mapping[str, Array]:
        """The arrays of parameters, which are those of Relax functions."""
        is_prim_func = isinstance(self._function, tirx.PrimFunc)
        return {} if is_prim_func else self.state.session.call_inputs.params

    def _parts(self, state: State) -> tuple[object, ...]:
        return state.stage.module, state.function, state.session.call_inputs.params

    def _show(self, _: State) -> None:
        """Show the inputs of the function, or nothing if it cannot be called."""
        ui.show_if(self.widget, isinstance(self._function, _CALLABLE))
        if isinstance(self._function, _CALLABLE):
            self._render()

    def _choose(self) -> actions.Action | None:
        """Use another source or file."""
        self._read = {}
        path, failed = self._path.value.strip(), ""
        if self.source == FILE and path and isinstance(self._function, _CALLABLE):
            wanted = missing_inputs(self._function, self._params)
            try:
                self._read = shared(read_inputs(Path(path).expanduser(), wanted))
            except (ValueError, RuntimeError) as failure:  # the second where there is no home
                failed = str(failure)
        return self._report(failed)

    def _resize(self, name: str, size: int) -> actions.Action | None:
        self._sizes[name] = size
        return self._report()

    def _report(self, failed: str = "") -> actions.Action | None:
        """Return the choice, if the function can be called with it."""
        if not isinstance(self._function, _CALLABLE):
            return None
        if self.source == FILE and not self._read:
            failed = failed or _NO_FILE
        self._refused = failed or self._plan()[0]
        self._file.say(failed and f"{failed}; {_AS_BEFORE}")
        with self.setting_traits():
            self._render()
        if self._refused:
            return None
        return actions.SetInputs(self._inputs(), int(self._seed.value), self._said_sizes())

    def _render(self) -> None:
        """Update all controls from the choices."""
        if self._options is not _OPTIONS:
            words = "as given" if self._takes_given() else "random, as nothing given fits"
            ui.offer(self._source, [(words, GIVEN), *_OPTIONS], self.source)
        ui.show_if(self._seed, self._is_random())
        ui.show_if(self._file, self.source == FILE)
        error, plan = self._plan()
        self._ask(plan.dims if plan else {})
        if self._refused:
            error = "" if self._file.error else f"{self._refused}; {_AS_BEFORE}"
        if self._refused or error or plan is None:
            self._line.value = ui.paragraph(error, "irviz-error", "alert")
        else:
            lines = plan.lines(f"from {self._path.value}" if self._read else "as given")
            self._line.value = _lines_html(lines)

    def _plan(self) -> tuple[str, Plan | None]:
        """Return the plan of the function's arguments, or why it cannot be called."""
        call: dict[str, Any] = {"seed": int(self._seed.value), "sizes": self._said_sizes()}
        try:
            inputs = CallInputs(self._inputs(), self._params, **call)
            return "", inputs.plan(self.state.stage.module, self.state.function)
        except ValueError as failure:
            return str(failure), None

    def _ask(self, dims: Mapping[str, int]) -> None:
        """Show a field for each size that nothing determines."""
        asked = self._asked()
        if list(self._fields) != list(asked):
            self._fields = {name: self._size_field(name) for name in asked}
            self._row.children = tuple(self._fields.values())
        for name, size in self._fields.items():
            size.value = self._sizes.get(name, dims.get(name, SIZE))
        ui.show_if(self._row, bool(asked))

    def _size_field(self, name: str) -> widgets.BoundedIntText:
        made = ui.field(
            widgets.BoundedIntText,
            "irviz-inputs-size",
            name,
            value=SIZE,
            min=1,
            max=_LARGEST,
            tooltip=f"the size {name}",
        )
        self.on_change(made, partial(self._resize, name))
        return made

    def _asked(self) -> tuple[str, ...]:
        if self.source == FILE and not self._read:
            return ()  # the file may tell them
        inputs, names = own_inputs(self._callee, self._inputs()), parameter_types(self._callee)
        told = {name for name in names if name in self._params}
        if isinstance(inputs, Mapping):
            told |= {name for name, value in inputs.items() if not _is_word(value)}
        elif not _is_word(inputs):
            told |= set(names)
        if isinstance(self._callee, relax.Function):
            told |= set(total_lengths(self._callee))  # which follow from the calls before
        return symbolic_sizes(self._callee, told)

    def _said_sizes(self) -> dict[str, int]:
        """Return the sizes that the user entered, except those that arrays determine here."""
        told = set(symbolic_sizes(self._callee)) - set(self._asked())
        return {name: size for name, size in self._sizes.items() if name not in told}

    def _inputs(self) -> Inputs:
        if self.source == GIVEN:
            return self._given
        if self.source == FILE:
            return {**self._others(), **self._read}
        return ZEROS if self.source == ZEROS else RANDOM

    def _takes_given(self) -> bool:
        """Whether something that the user gave belongs to the function, which a PrimFunc names."""
        if not isinstance(self._callee, tirx.PrimFunc):
            return True
        names = self._given.keys() if isinstance(self._given, Mapping) else set[str]()
        return not names.isdisjoint(parameter_types(self._callee))

    def _others(self) -> dict[str, str]:
        """Describe parameters that cannot come from a file, such as shapes and numbers."""
        there = {*self._params, *self._read}
        return {
            name: RANDOM
            for name, type_ in parameter_types(self._callee).items()
            if name not in there and not isinstance(type_, relax.TensorType)
        }

    def _is_random(self) -> bool:
        inputs = own_inputs(self._callee, self._inputs())
        values = inputs.values() if isinstance(inputs, Mapping) else (inputs,)
        return any(isinstance(value, str) and value == RANDOM for value in values)


def _is_word(value: object) -> bool:
    return value is None or isinstance(value, str)


def _lines_html(lines: tuple[str, ...]) -> str:
    shown = list(lines[:_MOST_LINES])
    if len(lines) > _MOST_LINES:
        shown.append(f"… and {len(lines) - _MOST_LINES} more")
    return str(render("status_lines", lines=shown or ["no inputs: the parameters are all given"]))


# --- Find the first pass that makes results differ, a call slower, or its memory larger -----------


_CHECKS = (
    ("the results are equal", "values"),
    ("a call is not slower", "time"),
    ("it takes no more memory", "memory"),
)


class BisectionPanel(ui.Panel):
    """Searches for the first pass up to the current stage that makes a check fail."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._check = ui.field(widgets.Dropdown, "irviz-find-check", "check", options=_CHECKS)
        find = self.button(
            "Find the pass",
            "Run some of the stages up to the shown one, and compare them with the first",
            lambda: actions.FindPass(self._check.value),
            "search",
        )
        self._found = ui.html("irviz-found-pass")
        self.widget = ui.classed(
            widgets.VBox([ui.heading("Find the pass"), self._check, find, self._found]),
            "irviz-find-pass",
        )

    def _show(self, state: State) -> None:
        found = state.bisection
        words, kind = (found, "irviz-error") if isinstance(found, str) else (found.line, "")
        self._found.value = ui.paragraph(words, kind, "status")

"""What a run is given: the reader's own inputs, random ones, zeros or a file, and which sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path

import ipywidgets as widgets
from tvm import ir, relax, tirx

from irviz.app.controls import wide_field
from irviz.ir.sizes import parameter_types, symbolic_sizes
from irviz.loaders.input_files import read_inputs, wanted_tensors
from irviz.runtime.chosen_sizes import SIZE
from irviz.runtime.inputs import Array, Inputs, Plan, plan_inputs
from irviz.runtime.made_up import RANDOM, WORDS, ZEROS
from irviz.runtime.prim_func import own_inputs

Changed = Callable[[Inputs, int, dict[str, int]], None]
"""Hears the inputs, the seed and the sizes by name, when the reader chose others."""

GIVEN, FILE = "given", "file"
_MOST_LINES = 4
_LARGEST = 1 << 53
_NO_FILE = "give the path of an .npy, an .npz, an image, or a folder of images"


class InputsPanel:
    """Choose where inputs come from, the seed, and the sizes that nothing tells.

    `given` are the reader's own inputs, which can be chosen where there are some. `changed` hears
    a choice when the function can be called with it; what it cannot be called with is said in the
    panel, and what was chosen before holds. Choices stay while stages change.
    """

    def __init__(
        self,
        changed: Changed,
        given: Inputs = None,
        *,
        seed: int = 0,
        sizes: Mapping[str, int] | None = None,
    ) -> None:
        self._changed, self._given = changed, given
        self._function: relax.Function | tirx.PrimFunc | None = None
        self._all_params: Mapping[str, Array] = {}
        self._params: Mapping[str, Array] = {}
        self._sizes = dict(sizes or {})
        self._read: dict[str, Array] = {}
        self._refused = ""
        self._is_setting = False
        is_word = given is None or isinstance(given, str)
        options = [("random", RANDOM), ("zeros", ZEROS), ("file", FILE)]
        self._source = widgets.Dropdown(
            options=options if is_word else [("as given", GIVEN), *options],
            value=(given if given in WORDS else RANDOM) if is_word else GIVEN,
            description="inputs",
            **wide_field(),
        )
        self._seed = widgets.BoundedIntText(
            value=seed, min=0, max=_LARGEST, description="seed", **wide_field()
        )
        self._path = widgets.Text(description="file", continuous_update=False, **wide_field())
        self._again = widgets.Button(
            description="Read", tooltip="Read the file again", layout=widgets.Layout(width="auto")
        )
        self._file = widgets.HBox([self._path, self._again])
        self._fields: dict[str, widgets.BoundedIntText] = {}
        self._row = widgets.HBox(layout=widgets.Layout(flex_flow="row wrap"))
        self._line = widgets.HTML()
        for part, name in (
            *((self._source, "source"), (self._seed, "seed"), (self._path, "path")),
            *((self._again, "read"), (self._row, "sizes"), (self._line, "line")),
        ):
            part.add_class(f"irviz-inputs-{name}")
        self._source.observe(lambda _: self._choose(), "value")
        self._seed.observe(lambda _: self._report(), "value")
        self._path.observe(lambda _: self._choose(), "value")
        self._again.on_click(lambda _: self._choose())
        self.widget = widgets.VBox([self._source, self._seed, self._file, self._row, self._line])
        self.widget.add_class("irviz-inputs")

    @property
    def source(self) -> str:
        """Where inputs come from: "given", "random", "zeros" or "file"."""
        return str(self._source.value)

    def show(self, function: ir.BaseFunc | None, params: Mapping[str, Array]) -> None:
        """Show what a function will be given; `params` are the arrays that it has anyway.

        A PrimFunc has none of these. With any other function nothing is shown. What a file held
        stays as it was read, so that all stages are given the same.
        """
        is_known = isinstance(function, relax.Function | tirx.PrimFunc)
        is_same = function is self._function and params is self._all_params
        self._function, self._all_params = function if is_known else None, params
        self._params = {} if isinstance(function, tirx.PrimFunc) else params
        self.widget.layout.display = "" if self._function is not None else "none"
        if self._function is not None and not is_same:
            self._show()

    def _choose(self) -> None:
        """Take another source or file."""
        self._read = {}
        path, failed = self._path.value.strip(), ""
        if self.source == FILE and path and self._function is not None:
            wanted = wanted_tensors(self._function, self._params)
            try:
                self._read = read_inputs(Path(path).expanduser(), wanted)
            except (ValueError, RuntimeError) as failure:  # the second where there is no home
                failed = str(failure)
        self._report(failed)

    def _resize(self, name: str, size: int) -> None:
        if not self._is_setting:
            self._sizes[name] = size
            self._report()

    def _report(self, failed: str = "") -> None:
        """Say that something else was chosen, if the function can be called with it."""
        if self._function is None:
            return
        if self.source == FILE and not self._read:
            failed = failed or _NO_FILE
        self._refused = failed or self._plan()[0]
        self._show()
        if not self._refused:
            self._changed(self._inputs(), int(self._seed.value), self._said_sizes())

    def _show(self) -> None:
        """Set every part from what is chosen."""
        self._seed.layout.display = "" if self._is_random() else "none"
        self._file.layout.display = "" if self.source == FILE else "none"
        error, plan = self._plan()
        self._ask(plan.dims if plan else {})
        if self._refused:
            error = f"{self._refused}; runs are still given what was chosen before"
        if error or plan is None:
            words = f'<p role="alert" class="irviz-error">{escape(error)}</p>'
        else:
            words = _lines_html(
                plan.lines(f"from {self._path.value}" if self._read else "as given")
            )
        self._line.value = words

    def _plan(self) -> tuple[str, Plan | None]:
        """Return what the function will be called with, or why it cannot be."""
        assert self._function is not None, "nothing is called"
        seed, sizes = int(self._seed.value), self._said_sizes()
        try:
            return "", plan_inputs(
                self._function, self._own(), self._params, seed=seed, sizes=sizes
            )
        except ValueError as failure:
            return str(failure), None

    def _ask(self, dims: Mapping[str, int]) -> None:
        """Show a field for each size that nothing tells."""
        asked = self._asked()
        self._is_setting = True
        if list(self._fields) != list(asked):
            self._fields = {name: self._field(name) for name in asked}
            self._row.children = tuple(self._fields.values())
        for name, field in self._fields.items():
            field.value = self._sizes.get(name, dims.get(name, SIZE))
        self._is_setting = False
        self._row.layout.display = "" if asked else "none"

    def _field(self, name: str) -> widgets.BoundedIntText:
        field = widgets.BoundedIntText(
            value=SIZE,
            min=1,
            max=_LARGEST,
            description=name,
            tooltip=f"the size {name}",
            **wide_field(),
        )
        field.add_class("irviz-inputs-size")
        field.observe(lambda change: self._resize(name, int(change.new)), "value")
        return field

    def _asked(self) -> tuple[str, ...]:
        assert self._function is not None, "there is nothing to ask for"
        if self.source == FILE and not self._read:
            return ()  # the file may tell them
        inputs, names = self._own(), parameter_types(self._function)
        told = {name for name in names if name in self._params}
        if isinstance(inputs, Mapping):
            told |= {name for name, value in inputs.items() if not _is_word(value)}
        elif not _is_word(inputs):
            told |= set(names)
        return symbolic_sizes(self._function, told)

    def _said_sizes(self) -> dict[str, int]:
        """Return the sizes that the reader said, but those that arrays tell here."""
        assert self._function is not None, "there are no sizes of nothing"
        told = set(symbolic_sizes(self._function)) - set(self._asked())
        return {name: size for name, size in self._sizes.items() if name not in told}

    def _inputs(self) -> Inputs:
        if self.source == GIVEN:
            return self._given
        return {**self._others(), **self._read} if self.source == FILE else self.source

    def _own(self) -> Inputs:
        """Return what of the inputs is the function's."""
        is_prim_func = isinstance(self._function, tirx.PrimFunc)
        return own_inputs(self._function, self._inputs()) if is_prim_func else self._inputs()

    def _others(self) -> dict[str, str]:
        """Return words for what no file holds, such as shapes and numbers."""
        assert self._function is not None, "there are no parameters of nothing"
        there = {*self._params, *self._read}
        return {
            name: RANDOM
            for name, type_ in parameter_types(self._function).items()
            if name not in there and not isinstance(type_, relax.TensorType)
        }

    def _is_random(self) -> bool:
        inputs = self._own()
        values = inputs.values() if isinstance(inputs, Mapping) else (inputs,)
        return any(isinstance(value, str) and value == RANDOM for value in values)


def _is_word(value: object) -> bool:
    return value is None or isinstance(value, str)


def _lines_html(lines: tuple[str, ...]) -> str:
    shown = list(lines[:_MOST_LINES])
    if len(lines) > _MOST_LINES:
        shown.append(f"… and {len(lines) - _MOST_LINES} more")
    words = "<br>".join(map(escape, shown)) or "no inputs: the parameters are all given"
    return f'<p role="status">{words}</p>'

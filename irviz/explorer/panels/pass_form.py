"""The form of a pass: a suitable control for each parameter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from irviz.errors import TransformError
from irviz.explorer.panels.field_errors import CheckedField, FieldError
from irviz.explorer.panels.form_controls import classed, field, offer, paragraph
from irviz.ir.module_functions import relax_functions
from irviz.loaders.arrays.param_files import load_params
from irviz.runtime.inputs.symbolic_dims import parse_sizes
from irviz.session.session import Session
from irviz.transforms.passes.arguments import (
    NameScope,
    plain_argument,
    resolve_argument,
    symbolic_names,
)
from irviz.transforms.passes.parameters import ParameterKind, PassParameter
from irviz.transforms.passes.pass_facts import PATTERN_MODULES

_TARGETS = ("llvm", "c", "cuda", "rocm", "metal", "vulkan", "opencl", "webgpu", "hexagon")
_HINTS = {
    ParameterKind.TARGET: 'a kind such as llvm, or {"kind": "llvm", "num-cores": 4}',
    ParameterKind.DEVICE: "llvm, or cuda:1",
    ParameterKind.PATTERNS: "a backend such as cublas, or the beginning of a pattern's name",
    ParameterKind.LAYOUTS: "relax.nn.conv2d: NHWC, OHWI",
    ParameterKind.LIST: "separated by commas",
    ParameterKind.INT: "a whole number; none if it is empty",
    ParameterKind.FLOAT: "a number; none if it is empty",
}
_CHOOSING = (ParameterKind.FUNCTIONS, ParameterKind.NAMES, ParameterKind.VARS)
_MOST_ROWS = 6


class PassForm:
    """Asks for the arguments of a pass; entries are kept while the pass stays the same."""

    def __init__(self, session: Session, changed: Callable[[], None]) -> None:
        self.fields: dict[str, widgets.Widget] = {}
        self.paths: dict[str, widgets.Text] = {}
        self._checked: dict[str, CheckedField] = {}
        self.widget = classed(widgets.VBox(), "irviz-pass-form")
        self._parameters: tuple[PassParameter, ...] = ()
        self._session, self._changed = session, changed

    def ask(self, parameters: tuple[PassParameter, ...]) -> None:
        """Ask for these parameters, starting with their defaults."""
        self._parameters = parameters
        formed = [one for one in parameters if one.kind is not ParameterKind.CODE]
        self.fields = {one.name: _field(one) for one in formed}
        self.paths = {one.name: _path() for one in formed if one.kind is ParameterKind.PARAMS}
        named = self.fields | self.paths
        self._checked = {name: CheckedField(control) for name, control in named.items()}
        rows: list[widgets.Widget] = []
        for one in parameters:
            rows += [self.fields[one.name]] if one.name in self.paths else []
            rows += [self._checked[one.name]] if one.name in self.fields else []
            rows.append(widgets.HTML(_explained(one)))
        self.widget.children = tuple(rows)
        for control in (*self.fields.values(), *self.paths.values()):
            control.observe(self._hear, "value")
        self._offer(is_new=True)

    def show(self, session: Session) -> None:
        """Offer the functions, parameters and arrays of the session's shown stage."""
        self._session = session
        self._offer()

    def arguments(self) -> dict[str, object]:
        """Return the arguments other than defaults; raise FieldError for an invalid one."""
        found: dict[str, object] = {}
        scope = NameScope(self._session.current.module, self._function())
        for one in self._parameters:
            if one.name not in self.fields:
                continue
            try:
                value = self._value(one)
                if value is not None:
                    resolve_argument(one, plain_argument(one, value, "this pass"), scope)
            except Exception as failure:  # a file, for example
                raise FieldError(self._checked[one.name], failure) from None
            if value is None and one.is_required:
                words = f"{one.name} is empty, and takes {one.kind.value}: give it"
                raise FieldError(self._checked[one.name], words)
            if value is not None and (one.is_required or value != one.default):
                found[one.name] = value
        return found

    def _function(self) -> str | None:
        """Return the function that the pass applies to, None if it names none."""
        kinds = ((one.kind, one.name) for one in self._parameters)
        names = [name for kind, name in kinds if kind is ParameterKind.FUNCTION]
        return str(self.fields[names[0]].value or "") or None if names else None

    def _value(self, parameter: PassParameter) -> object:
        given = self.fields[parameter.name].value
        if parameter.kind is ParameterKind.PARAMS:
            path = self.paths[parameter.name].value.strip()
            if path:
                return dict(load_params(path))
            return {name: self._session.call_inputs.params[name] for name in given}
        if parameter.kind in _CHOOSING:
            return tuple(given) or None
        if not isinstance(given, str) or parameter.kind is ParameterKind.CHOICE:
            return given
        text = given.strip()
        return _read(parameter, text) if text else None

    def _hear(self, change: Any) -> None:
        kinds = {self.fields[p.name]: p.kind for p in self._parameters if p.name in self.fields}
        if kinds.get(change.owner) is ParameterKind.FUNCTION:
            self._offer()
        self._changed()

    def _offer(self, is_new: bool = False) -> None:
        """Set the options: functions first, then what belongs to the chosen function."""
        function = ""
        for one in self._parameters:
            if one.kind is ParameterKind.FUNCTION:
                function = self._offer_functions(one, is_new) or function
        for one in self._parameters:
            if one.name in self.fields:
                self._offer_of(one, function or self._session.function, is_new)

    def _offer_functions(self, parameter: PassParameter, is_new: bool) -> str:
        chosen = self.fields[parameter.name]
        names = [*relax_functions(self._session.current.module)]
        value = self._session.function if is_new and parameter.is_required else chosen.value
        if value not in names:
            value = names[0] if names and parameter.is_required else None
        options = [(name, name) for name in names]
        if not parameter.is_required:
            options.insert(0, ("–", ""))
            value = value or ""
        offer(chosen, options, value)
        return str(value or "")

    def _offer_of(self, parameter: PassParameter, function: str, is_new: bool) -> None:
        session, asked = self._session, self.fields[parameter.name]
        of_it = relax_functions(session.current.module).get(function)
        params = [param.name for param in of_it.params] if of_it is not None else []
        if parameter.kind is ParameterKind.DIMS:
            names = symbolic_names(session.current.module, function if of_it is not None else None)
            asked.placeholder = ", ".join(f"{name}=1" for name in names) or "no symbolic sizes"
        elif parameter.kind is ParameterKind.FUNCTIONS:
            _keep(asked, [gvar.name_hint for gvar in session.current.module.functions], ())
        elif parameter.kind in _CHOOSING:
            _keep(asked, params, ())
        elif parameter.kind is ParameterKind.PARAMS:
            arrays = [*session.call_inputs.params]
            _keep(asked, arrays, [one for one in arrays if one in params], is_new)


def _field(parameter: PassParameter) -> widgets.Widget:
    """Return the control of a parameter."""
    begin, kind = parameter.begins_with, parameter.kind
    text = ", ".join(map(str, begin)) if isinstance(begin, tuple) else str(begin or "")
    made: type[widgets.Widget] = widgets.Text
    options: dict[str, Any] = {"value": text, "placeholder": _HINTS.get(kind, "")}
    if kind is ParameterKind.BOOL:
        made, options = widgets.Checkbox, {"value": bool(begin), "indent": False}
    elif kind is ParameterKind.CHOICE:
        choices = [("–" if one is None else str(one), one) for one in parameter.choices]
        value = begin if begin in parameter.choices else parameter.choices[0]
        made, options = widgets.Dropdown, {"options": choices, "value": value}
    elif kind is ParameterKind.FUNCTION:
        made, options = widgets.Dropdown, {}
    elif kind in (*_CHOOSING, ParameterKind.PARAMS):
        made, options = widgets.SelectMultiple, {"rows": 2}
    elif kind is ParameterKind.INT and isinstance(begin, int):
        made, options = widgets.IntText, {"value": begin}
    elif kind is ParameterKind.FLOAT and isinstance(begin, float | int):
        made, options = widgets.FloatText, {"value": begin}
    elif kind in (ParameterKind.TARGET, ParameterKind.DEVICE):
        made, options["options"] = widgets.Combobox, _TARGETS
    elif kind is ParameterKind.PATTERNS:
        made, options["options"] = widgets.Combobox, tuple(PATTERN_MODULES)
    options["tooltip"] = parameter.summary or kind.value
    return field(made, f"irviz-pass-{parameter.name}", parameter.name, **options)


def _path() -> widgets.Text:
    hint = "the path of an .npz"
    return field(widgets.Text, "irviz-pass-file", "or a file", placeholder=hint)


def _explained(parameter: PassParameter) -> str:
    words = parameter.summary or f"Takes {parameter.kind.value}."
    if parameter.kind is ParameterKind.CODE:
        words = f"{parameter.name} is for code. {parameter.summary}"
    return paragraph(words, "irviz-hint")


def _read(parameter: PassParameter, text: str) -> object:
    """Parse a parameter's text; raise TransformError, which says what would be right."""
    try:
        is_whole = parameter.item is int
        return _whole(text) if is_whole else _READERS.get(parameter.kind, str)(text)
    except ValueError:
        example = _HINTS.get(parameter.kind, "n=128, m=784")
        raise TransformError(
            f"{parameter.name} is {text!r}, and takes {parameter.kind.value}: write {example}"
        ) from None


def _listed(text: str) -> tuple[str, ...]:
    return tuple(one.strip() for one in text.split(",") if one.strip())


def _whole(text: str) -> tuple[int, ...]:
    return tuple(map(int, _listed(text)))


def _layouts(text: str) -> dict[str, tuple[str, ...]]:
    """Read "name: layout, layout; name: layout"."""
    found = {}
    for part in filter(str.strip, text.split(";")):
        name, colon, layouts = part.partition(":")
        if not colon or not name.strip():
            raise ValueError(part)
        found[name.strip()] = _listed(layouts)
    return found


_READERS: dict[ParameterKind, Callable[[str], object]] = {
    ParameterKind.INT: int,
    ParameterKind.FLOAT: float,
    ParameterKind.LIST: _listed,
    ParameterKind.DIMS: parse_sizes,
    ParameterKind.LAYOUTS: _layouts,
}


def _keep(
    select: widgets.SelectMultiple, names: list[str], first: object, is_new: bool = False
) -> None:
    """Set the options of a control, keeping its value if possible."""
    chosen = first if is_new else select.value
    if list(select.options) != names:
        select.value = ()
        select.options = names
        select.rows = min(max(len(names), 2), _MOST_ROWS)
    kept = tuple(name for name in names if name in chosen)  # type: ignore[operator]
    if select.value != kept:
        select.value = kept

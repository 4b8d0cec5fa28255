"""Make a stage from the current one: bind parameters, apply a pass, replay a branch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anywidget
import ipywidgets as widgets

from irviz.errors import TransformError
from irviz.explorer import actions
from irviz.explorer.panels import panel as ui
from irviz.explorer.state import Preview, State
from irviz.explorer.store import Store
from irviz.explorer.suggested_passes import suggested_passes
from irviz.explorer.viewer import STATIC
from irviz.explorer.viewer.schema import Card, PassPickerTraits
from irviz.explorer.viewer.widget import synced_traits
from irviz.ir.module_functions import relax_functions
from irviz.loaders.param_files import load_params
from irviz.runtime.argument_conversion import parse_sizes
from irviz.session.session import Session
from irviz.transforms.bind_params import bind_params
from irviz.transforms.passes.catalog import GROUPS, CatalogEntry, catalog, search
from irviz.transforms.passes.parameters import (
    PATTERN_MODULES,
    TARGET_KINDS,
    NameScope,
    ParameterKind,
    PassParameter,
    plain_argument,
    resolve_argument,
    symbolic_names,
)
from irviz.transforms.passes.pass_transform import PassCall, named_pass
from irviz.view.svg_primitives import visible
from irviz.view.templating import render


class BindPanel(ui.Panel):
    """Chooses parameters and binds them to the session's arrays."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._names = ui.classed(ui.Chips(label="parameters to bind"), "irviz-bind-names")
        self._names.add_class("irviz-unlabelled")
        self._checked = ui.CheckedField(self._names)
        self._button = self.button(
            "Bind parameters", "Make the chosen parameters constants", self._bind, "link"
        )
        self._empty = ui.html("")
        self.widget = widgets.VBox(
            [ui.heading("Bind parameters"), self._empty, self._checked, self._button]
        )

    def _parts(self, state: State) -> tuple[object, ...]:
        return state.stage, state.function, state.session.call_inputs.params

    def _show(self, state: State) -> None:
        """List the unbound parameters for which the session has arrays."""
        session = state.session
        names = list(session.unbound_params)
        self._names.offer(names, names)
        ui.show_if(self._checked, bool(names))
        ui.show_if(self._button, bool(names))
        why = (
            "all of them are bound"
            if session.call_inputs.params
            else "none were given: explore(…, params=…)"
        )
        self._empty.value = "" if names else ui.paragraph(f"Nothing to bind: {why}.")

    def _bind(self) -> actions.Action:
        arrays = self.state.session.unbound_params
        chosen = {name: arrays[name] for name in self._names.value}
        if not chosen:
            raise ui.FieldError(self._checked, "no parameter is chosen: choose at least one")
        return actions.Apply(bind_params(chosen, self.state.function))


_ALL, _FITTING = "all passes", "suggested for this stage"


class PassPicker(anywidget.AnyWidget, PassPickerTraits):
    """A field for words, and below it a card for each pass that they fit."""

    _esm = STATIC / "pass_picker.js"

    locals().update(synced_traits(PassPickerTraits))


class PassPanel(ui.Panel):
    """Finds a pass by name or words, shows its form, previews it and applies it."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._preview_shown: Preview | None = None
        self._chosen: CatalogEntry | None = None
        words = "find a pass: a part of its name, or words"
        self._choice = ui.classed(PassPicker(placeholder=words), "irviz-pass-name")
        self._checked_choice = ui.CheckedField(self._choice)
        self._group = ui.field(
            widgets.Dropdown, "irviz-pass-group", "show", options=(_FITTING, _ALL, *GROUPS)
        )
        self._code_only = ui.html("irviz-pass-code")
        self.form = PassForm(store.state.session, self._forget)
        self._preview = self.button(
            "Preview",
            "Try it in another process: what would it change?",
            lambda: actions.TryTransform(self._call()),
            "eye",
        )
        self._apply = self.button(
            "Apply pass",
            "Apply this pass to the shown stage",
            lambda: actions.Apply(self._call()),
            "play",
        )
        self._words = ui.html("irviz-pass-preview")
        self._choice.observe(lambda _: self._search(), "value")
        self._group.observe(lambda _: self._search(), "value")
        self.on_change(self._choice, self._choose, "chosen")
        buttons = [self._preview, self._apply]
        parts = [ui.heading("Apply a pass"), self._group, self._checked_choice, self._code_only]
        parts += [self.form.widget, widgets.HBox(buttons), self._words]
        self.widget = ui.classed(widgets.VBox(parts), "irviz-pass")
        self._search()

    def _parts(self, state: State) -> tuple[object, ...]:
        # more passes may be registered
        return state.session, state.preview, state.trials, len(catalog())

    def _show(self, state: State) -> None:
        """List what the current stage has, keeping what was typed and chosen."""
        found = state.preview
        if found is not None:
            kind = "irviz-error" if found.is_error else "irviz-said"
            self._words.value = ui.paragraph(found.words, kind, "status")
        elif self._preview_shown is not None:
            self._words.value = ""
        self._preview_shown = found
        self.form.show(state.session)
        self._search()  # another stage has other suggestions, which may change something else

    def _listed(self) -> tuple[CatalogEntry, ...]:
        """Return the passes of the group, or of all groups if words are typed."""
        group, words = self._group.value, self._choice.value
        if group == _FITTING and not words.strip():
            # of two passes with one name, that of Relax
            entries = sorted(catalog(), key=lambda entry: entry.namespace == "relax")
            known = {entry.name: entry for entry in entries}
            return tuple(known[one] for one in suggested_passes(self.state.stage) if one in known)
        return tuple(e for e in search(words) if group in (_FITTING, _ALL, e.group))

    def _search(self) -> None:
        """List the passes that match the words, and choose one whose full name is typed."""
        words, entries = self._choice.value, self._listed()
        exact = [e.full_name for e in entries if words.strip() in (e.name, e.full_name)]
        chosen = self._choice.chosen
        if chosen not in (exact or [entry.full_name for entry in entries]):
            chosen = next(iter(exact), "")
        trials = self.state.trials
        is_known = trials is not None and trials[0] == (self.state.stage, self.state.function)
        would = trials[1] if trials is not None and is_known else {}
        cards = [_card(entry, would.get(entry.full_name, "")) for entry in entries]
        with self.setting_traits(), self._choice.hold_sync():
            self._choice.cards = cards
            self._choice.answered = words
            self._choice.chosen = chosen
        self._choose(chosen)

    def _choose(self, full_name: str) -> None:
        entry = next((one for one in catalog() if one.full_name == full_name), None)
        if entry == self._chosen:
            return
        self._chosen = entry
        self._checked_choice.say("")
        self._apply.disabled = self._preview.disabled = bool(entry and entry.code_only)
        words, _, code = entry.code_only.partition(": ") if entry else ("", "", "")
        self._code_only.value = str(render("code_only", words=words, code=code)) if words else ""
        self.form.ask(() if entry is None or entry.code_only else entry.parameters)
        self._forget()

    def _call(self) -> PassCall:
        """Return the transform to apply: the chosen pass, or else the first that fits the words."""
        typed = self._choice.value.strip()
        if self._chosen is None and typed:
            first = next(iter(self._listed()), None)
            if first is None:
                raise ui.FieldError(self._checked_choice, f"no pass has {typed!r} in {_NONE}")
            self._choice.set_trait("chosen", first.full_name)
        if self._chosen is None:
            words = "no pass is chosen: choose one from the list, or type a part of its name"
            raise ui.FieldError(self._checked_choice, words)
        if self._chosen.code_only:
            raise ui.FieldError(self._checked_choice, self._chosen.code_only)
        return named_pass(self._chosen.full_name, **self.form.arguments())

    def _forget(self) -> None:
        """Remove a preview, which was of something else."""
        if not self._sets_traits:
            self._words.value = ""
            self.send(actions.SetField("preview", None))


_NONE = (
    "its name or in what it does: type less of it, such as fuse, or clear the field to see what "
    "fits the stage"
)


def _card(entry: CatalogEntry, would: str) -> Card:
    return {
        "name": entry.full_name,
        "title": visible(entry.name),
        "tag": entry.group,
        "summary": visible(entry.summary),
        "would": would,
    }


class ReplayPanel(ui.Panel):
    """Chooses a stage, and replays the current stage's branch onto it."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._stage = ui.field(widgets.Dropdown, "irviz-replay-on", "behind stage")
        checked = self._checked = ui.CheckedField(self._stage)
        replay = self.button(
            "Replay",
            "Apply what led to the shown stage behind that one, too",
            self._replay,
            "repeat",
        )
        self.widget = widgets.VBox([ui.heading("Replay the shown branch"), checked, replay])

    def _parts(self, state: State) -> tuple[object, ...]:
        return (state.session,)

    def _show(self, state: State) -> None:
        """List the stages that the current one was not made from."""
        session = state.session
        own = session.lineage()
        others = [(f"{s.id}  {s.label}", s.id) for s in session.stages if s.id not in own]
        chosen = self._stage.value
        kept = chosen if chosen in dict(others).values() else ""
        ui.offer(self._stage, [("–", ""), *others], kept)
        ui.show_if(self.widget, bool(others))

    def _replay(self) -> actions.Action:
        if not self._stage.value:
            raise ui.FieldError(
                self._checked, "no stage is chosen: choose the one to continue from"
            )
        return actions.ReplayBranch(self._stage.value)


# --- The form of a pass: a suitable control for each parameter ------------------------------------


_HINTS = {
    ParameterKind.TARGET: 'a kind such as llvm, or {"kind": "llvm", "num-cores": 4}',
    ParameterKind.DEVICE: "llvm, or cuda:1",
    ParameterKind.PATTERNS: "a backend such as cublas, or the beginning of a pattern's name",
    ParameterKind.LAYOUTS: "relax.nn.conv2d: NHWC, OHWI",
    ParameterKind.LIST: "separated by commas",
    ParameterKind.INT: "a whole number, or nothing",
    ParameterKind.FLOAT: "a number, or nothing",
}
_CHOOSING = (ParameterKind.FUNCTIONS, ParameterKind.NAMES, ParameterKind.VARS)


class PassForm:
    """Asks for the arguments of a pass; entries are kept while the pass stays the same."""

    def __init__(self, session: Session, changed: Callable[[], None]) -> None:
        self.fields: dict[str, widgets.Widget] = {}
        self.paths: dict[str, widgets.Text] = {}
        self._checked: dict[str, ui.CheckedField] = {}
        self.widget = ui.classed(widgets.VBox(), "irviz-pass-form")
        self._parameters: tuple[PassParameter, ...] = ()
        self._session, self._changed = session, changed

    def ask(self, parameters: tuple[PassParameter, ...]) -> None:
        """Ask for these parameters, starting with their defaults."""
        self._parameters = parameters
        formed = [one for one in parameters if one.kind is not ParameterKind.CODE]
        self.fields = {one.name: _field(one) for one in formed}
        self.paths = {one.name: _path() for one in formed if one.kind is ParameterKind.PARAMS}
        named = self.fields | self.paths
        self._checked = {name: ui.CheckedField(control) for name, control in named.items()}
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
                raise ui.FieldError(self._checked[one.name], failure) from None
            if value is None and one.is_required:
                words = f"{one.name} is empty, and takes {one.kind.value}: give it"
                raise ui.FieldError(self._checked[one.name], words)
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
        options = {name: name for name in relax_functions(self._session.current.module)}
        if not parameter.is_required:
            options = {"–": "", **options}
        value = self._session.function if is_new and parameter.is_required else chosen.value
        if value not in options.values():
            value = next(iter(options.values()), None)
        ui.offer(chosen, [*options.items()], value)
        return str(value or "")

    def _offer_of(self, parameter: PassParameter, function: str, is_new: bool) -> None:
        session, asked = self._session, self.fields[parameter.name]
        of_it = relax_functions(session.current.module).get(function)
        params = [param.name for param in of_it.params] if of_it is not None else []
        if parameter.kind is ParameterKind.DIMS:
            names = symbolic_names(session.current.module, function if of_it is not None else None)
            asked.placeholder = ", ".join(f"{name}=1" for name in names) or "no symbolic sizes"
        elif parameter.kind is ParameterKind.FUNCTIONS:
            asked.offer([g.name_hint for g in session.current.module.functions], asked.value)
        elif parameter.kind in _CHOOSING:
            asked.offer(params, asked.value)
        elif parameter.kind is ParameterKind.PARAMS:
            arrays = [*session.call_inputs.params]
            asked.offer(arrays, params if is_new else asked.value)


def _field(parameter: PassParameter) -> widgets.Widget:
    """Return the control of a parameter."""
    begin, kind = parameter.begins_with, parameter.kind
    text = ", ".join(map(str, begin)) if isinstance(begin, tuple) else str(begin)
    text = "" if begin is None else text  # a browser rounds numbers of its number fields
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
        return ui.classed(ui.Chips(label=parameter.name), f"irviz-pass-{parameter.name}")
    elif kind in (ParameterKind.TARGET, ParameterKind.DEVICE):
        made, options["options"] = widgets.Combobox, TARGET_KINDS
    elif kind is ParameterKind.PATTERNS:
        made, options["options"] = widgets.Combobox, tuple(PATTERN_MODULES)
    options["tooltip"] = parameter.summary or kind.value
    return ui.field(made, f"irviz-pass-{parameter.name}", parameter.name, **options)


def _path() -> widgets.Text:
    hint = "the path of an .npz"
    return ui.field(widgets.Text, "irviz-pass-file", "or a file", placeholder=hint)


def _explained(parameter: PassParameter) -> str:
    words = parameter.summary or f"Takes {parameter.kind.value}."
    if parameter.kind is ParameterKind.CODE:
        words = f"{parameter.name} is for code. {parameter.summary}"
    return ui.paragraph(words, "irviz-hint")


def _read(parameter: PassParameter, text: str) -> object:
    """Parse a parameter's text; raise TransformError, which says what would be right."""
    try:
        if parameter.item is int:
            return tuple(map(int, _listed(text)))
        return _READERS.get(parameter.kind, str)(text)
    except ValueError:
        example = _HINTS.get(parameter.kind, "n=128, m=784")
        raise TransformError(
            f"{parameter.name} is {text!r}, and takes {parameter.kind.value}: write {example}"
        ) from None


def _listed(text: str) -> tuple[str, ...]:
    return tuple(one.strip() for one in text.split(",") if one.strip())


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

"""Make a stage from the current one: bind parameters, apply a pass, replay a branch."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import ipywidgets as widgets

from irviz.errors import TransformError
from irviz.explorer import actions
from irviz.explorer.panels.form_controls import (
    CheckedField,
    FieldError,
    classed,
    field,
    heading,
    html,
    offer,
    paragraph,
    show_if,
)
from irviz.explorer.panels.panel import Panel
from irviz.explorer.state import Preview, State
from irviz.explorer.store import Store
from irviz.ir.labels import attributes
from irviz.ir.module_functions import prim_funcs, relax_functions
from irviz.loaders.param_files import load_params
from irviz.model.graph.graph import NodeKind, RegionKind
from irviz.runtime.argument_lists import parse_sizes
from irviz.session.session import Session
from irviz.session.stage_cache import graph_of
from irviz.transforms.bind_params import bind_params
from irviz.transforms.passes.arguments import (
    NameScope,
    plain_argument,
    resolve_argument,
    symbolic_names,
)
from irviz.transforms.passes.catalog import GROUPS, CatalogEntry, catalog, search
from irviz.transforms.passes.parameters import ParameterKind, PassParameter
from irviz.transforms.passes.pass_call import PassCall, named_pass
from irviz.transforms.passes.pass_facts import PATTERN_MODULES
from irviz.transforms.stage import Stage
from irviz.view.templating import render


class BindPanel(Panel):
    """Chooses parameters and binds them to the session's arrays."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._names = field(
            widgets.SelectMultiple, "irviz-bind-names", "parameters to bind", rows=4
        )
        self._names.add_class("irviz-unlabelled")
        self._checked = CheckedField(self._names)
        self._button = self.button(
            "Bind parameters",
            "Make the chosen parameters constants",
            lambda: self.try_to_send(self._bind),
            "link",
        )
        self._empty = html("")
        self.widget = widgets.VBox(
            [heading("Bind parameters"), self._empty, self._checked, self._button]
        )

    def _parts(self, state: State) -> tuple[object, ...]:
        return state.stage, state.function, state.session.call_inputs.params

    def _show(self, state: State) -> None:
        """List the unbound parameters for which the session has arrays."""
        session = state.session
        names = tuple(session.unbound_params)
        self._names.value = ()  # the page fails where what is chosen is no option
        self._names.options = names
        self._names.value = names
        self._names.rows = min(max(len(names), 2), 6)
        show_if(self._checked, bool(names))
        show_if(self._button, bool(names))
        why = (
            "all of them are bound"
            if session.call_inputs.params
            else "none were given: explore(…, params=…)"
        )
        self._empty.value = "" if names else paragraph(f"Nothing to bind: {why}.")

    def _bind(self) -> actions.Action:
        arrays = self.state.session.unbound_params
        chosen = {name: arrays[name] for name in self._names.value}
        if not chosen:
            raise FieldError(self._checked, "no parameter is chosen: choose at least one")
        return actions.Apply(bind_params(chosen, self.state.function))


_ROWS = 8
_MOST_CHARACTERS = 60
_ALL, _FITTING = "all passes", "suggested for this stage"


class PassPanel(Panel):
    """Finds a pass by name or words, shows its form, previews it and applies it."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._preview_shown: Preview | None = None
        self._chosen: CatalogEntry | None = None
        self._name = field(
            widgets.Text, "irviz-pass-name", placeholder="a name such as LegalizeOps, or words"
        )
        self._checked_name = CheckedField(self._name)
        self._group = field(
            widgets.Dropdown, "irviz-pass-group", "show", options=(_FITTING, _ALL, *GROUPS)
        )
        self._found = field(widgets.Select, "irviz-pass-found", "passes", rows=_ROWS)
        self._found.add_class("irviz-passes").add_class("irviz-unlabelled")
        self._summary = html("irviz-pass-summary")
        self.form = PassForm(store.state.session, self._forget)
        self._preview = self.button(
            "Preview",
            "Try it in another process: what would it change?",
            lambda: self.try_to_send(lambda: actions.TryTransform(self._call())),
            "eye",
        )
        self._apply = self.button(
            "Apply pass",
            "Apply this pass to the shown stage",
            lambda: self.try_to_send(lambda: actions.Apply(self._call())),
            "play",
        )
        self._words = html("irviz-pass-preview")
        self._name.observe(lambda _: self._search(), "value")
        self._group.observe(lambda _: self._search(), "value")
        self.on_change(self._found, self._choose)
        buttons = [self._preview, self._apply]
        parts = [heading("Apply a pass"), self._checked_name, self._group, self._found]
        parts.append(self._summary)
        parts += [self.form.widget, widgets.HBox(buttons), self._words]
        self.widget = classed(widgets.VBox(parts), "irviz-pass")
        self._search()

    def _parts(self, state: State) -> tuple[object, ...]:
        return state.session, state.preview, len(catalog())  # more passes may be registered

    def _show(self, state: State) -> None:
        """List what the current stage has, keeping what was typed and chosen."""
        found = state.preview
        if found is not None:
            kind = "irviz-error" if found.is_error else "irviz-said"
            self._words.value = paragraph(found.words, kind, "status")
        elif self._preview_shown is not None:
            self._words.value = ""
        self._preview_shown = found
        self.form.show(state.session)
        listed = [entry.full_name for entry in self._listed()]
        if listed != [name for _, name in self._found.options]:
            self._search()  # another stage has other suggestions, and passes may be registered

    def _listed(self) -> tuple[CatalogEntry, ...]:
        """Return the passes of the group, or of all groups if words are typed."""
        group, words = self._group.value, self._name.value
        if group == _FITTING and not words.strip():
            # of two passes with one name, that of Relax
            entries = sorted(catalog(), key=lambda entry: entry.namespace == "relax")
            known = {entry.name: entry for entry in entries}
            return tuple(known[one] for one in suggested_passes(self.state.stage) if one in known)
        return tuple(e for e in search(words) if group in (_FITTING, _ALL, e.group))

    def _search(self) -> None:
        """List the passes that match the words, and choose one whose full name is typed."""
        typed, entries = self._name.value.strip(), self._listed()
        exact = [entry for entry in entries if typed in (entry.name, entry.full_name)]
        kept = self._chosen.full_name if self._chosen else None
        value = kept if kept in [entry.full_name for entry in entries] else None
        if exact and value not in [entry.full_name for entry in exact]:
            value = exact[0].full_name
        with self.changes.paused():
            self._found.index = None
            self._found.options = [(_line(entry), entry.full_name) for entry in entries]
            self._found.value = value
        self._choose(value)

    def _choose(self, full_name: str | None) -> None:
        entry = next((one for one in catalog() if one.full_name == full_name), None)
        if entry == self._chosen:
            return
        self._chosen = entry
        self._apply.disabled = self._preview.disabled = bool(entry and entry.code_only)
        self._summary.value = "" if entry is None else _described(entry)
        self.form.ask(() if entry is None or entry.code_only else entry.parameters)
        self._forget()

    def _call(self) -> PassCall:
        """Return the transform to apply, or the typed text if no pass is chosen."""
        if self._chosen is not None:
            return named_pass(self._chosen.full_name, **self.form.arguments())
        typed = self._name.value.strip()
        try:
            if typed:
                return named_pass(typed)
        except TransformError as failure:
            raise FieldError(self._checked_name, failure) from None
        words = "no pass is chosen: choose one from the list, or type its name, such as LegalizeOps"
        raise FieldError(self._checked_name, words)

    def _forget(self) -> None:
        """Remove a preview, which was of something else."""
        if not self.changes.are_paused:
            self._words.value = ""
            self.send(actions.ForgetPreview())


def _line(entry: CatalogEntry) -> str:
    """Return the entry's line in the list: name, group and the start of its summary."""
    text = f"{entry.name}  · {entry.group} ·  {entry.summary}"
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"


def _described(entry: CatalogEntry) -> str:
    words, _, code = entry.code_only.partition(": ")
    code_only = (words, code) if entry.code_only else None
    return str(
        render("pass_summary", name=entry.full_name, summary=entry.summary, code_only=code_only)
    )


class ReplayPanel(Panel):
    """Chooses a stage, and replays the current stage's branch onto it."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._stage = field(widgets.Dropdown, "irviz-replay-on", "behind stage")
        checked = self._checked = CheckedField(self._stage)
        replay = self.button(
            "Replay",
            "Apply what led to the shown stage behind that one, too",
            lambda: self.try_to_send(self._replay),
            "repeat",
        )
        self.widget = widgets.VBox([heading("Replay the shown branch"), checked, replay])

    def _parts(self, state: State) -> tuple[object, ...]:
        return (state.session,)

    def _show(self, state: State) -> None:
        """List the stages that the current one was not made from."""
        session = state.session
        own = session.lineage()
        others = [(f"{s.id}  {s.label}", s.id) for s in session.stages if s.id not in own]
        chosen = self._stage.value
        kept = chosen if chosen in dict(others).values() else ""
        offer(self._stage, [("–", ""), *others], kept)
        show_if(self.widget, bool(others))

    def _replay(self) -> actions.Action:
        if not self._stage.value:
            raise FieldError(self._checked, "no stage is chosen: choose the one to continue from")
        return actions.ReplayBranch(self._stage.value)


# --- pass form ---------------------------------------------------------------------------------
#
# The form of a pass: a suitable control for each parameter.


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


# --- suggested passes --------------------------------------------------------------------------
#
# Suggest passes of the course that apply to a stage, in the order of its chapters.


@dataclass
class _Contents:
    """The contents of a module that passes look for."""

    kinds: set[NodeKind] = dataclasses.field(default_factory=set)
    operators: set[str] = dataclasses.field(default_factory=set)
    has_dataflow: bool = False
    has_fused: bool = False
    has_prim_funcs: bool = False

    def has(self, *names: str) -> bool:
        """Tell whether there is one of these Relax operators."""
        return any(f"relax.{name}" in self.operators for name in names)


_SUGGESTIONS: Mapping[str, Callable[[_Contents], bool]] = {
    "LegalizeOps": lambda found: NodeKind.OPERATOR in found.kinds,
    "FoldConstant": lambda found: NodeKind.CONSTANT in found.kinds,
    "AnnotateTIROpPattern": lambda found: found.has_prim_funcs,
    "FuseOps": lambda found: NodeKind.CALL_TIR in found.kinds,
    "FuseTIR": lambda found: found.has_fused,
    "FuseOpsByPattern": lambda found: NodeKind.OPERATOR in found.kinds,
    "ConvertLayout": lambda found: found.has("nn.conv1d", "nn.conv2d"),
    "ToMixedPrecision": lambda found: found.has("matmul", "nn.conv2d"),
    "EliminateCommonSubexpr": lambda found: bool(found.kinds - {NodeKind.PARAM}),
    "CanonicalizeBindings": lambda found: bool(found.kinds - {NodeKind.PARAM}),
    "DeadCodeElimination": lambda found: bool(found.kinds - {NodeKind.PARAM}),
    "LambdaLift": lambda found: NodeKind.FUNCTION in found.kinds,
    "RewriteDataflowReshape": lambda found: NodeKind.CALL_TIR in found.kinds,
    "CallTIRRewrite": lambda found: NodeKind.CALL_TIR in found.kinds,
    "ToNonDataflow": lambda found: found.has_dataflow,
    "StaticPlanBlockMemory": lambda found: NodeKind.ALLOC in found.kinds,
}


def suggested_passes(stage: Stage) -> tuple[str, ...]:
    """Return the names of applicable passes; none if the module cannot be read."""
    try:
        found = _contents(stage)
    except Exception:  # why is said in the place of the picture
        return ()
    return tuple(name for name, fits in _SUGGESTIONS.items() if fits(found))


def _contents(stage: Stage) -> _Contents:
    found = _Contents(has_prim_funcs=bool(prim_funcs(stage.module)))
    for name, function in relax_functions(stage.module).items():
        found.has_fused |= "Primitive" in dict(attributes(function.attrs))
        graph = graph_of(stage, name)
        found.kinds |= {node.kind for node in graph.nodes}
        found.operators |= {node.operator for node in graph.nodes}
        found.has_dataflow |= any(one.kind is RegionKind.DATAFLOW_BLOCK for one in graph.regions)
    return found

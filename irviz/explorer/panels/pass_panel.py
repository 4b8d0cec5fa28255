"""Make a stage from the current one: bind parameters, apply a pass, replay a branch."""

from __future__ import annotations

import ipywidgets as widgets

from irviz.errors import TransformError
from irviz.explorer import actions
from irviz.explorer.panels.field_errors import CheckedField, FieldError
from irviz.explorer.panels.form_controls import (
    classed,
    field,
    heading,
    html,
    offer,
    paragraph,
    show_if,
)
from irviz.explorer.panels.panel import Panel
from irviz.explorer.panels.pass_form import PassForm
from irviz.explorer.state import Preview, State
from irviz.explorer.store import Store
from irviz.explorer.suggested_passes import suggested_passes
from irviz.transforms.bind_params import bind_params
from irviz.transforms.passes.catalog import GROUPS, CatalogEntry, catalog, search
from irviz.transforms.passes.pass_call import PassCall, named_pass
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
            known = {entry.name: entry for entry in catalog() if entry.namespace == "relax"}
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

"""Replace the callee of one call by an equivalent, or a PrimFunc for all its calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

import ipywidgets as widgets
import tvm_ffi
from IPython import get_ipython
from tvm import ir, tirx

from irviz.explorer import actions
from irviz.explorer.panels import panel as ui
from irviz.explorer.selected_node import REPLACEABLE, call_key, selected_node
from irviz.explorer.state import CallKey, State
from irviz.explorer.store import Store
from irviz.ir.module_functions import function_named, prim_funcs
from irviz.model.graph.graph import grouped
from irviz.session.stage_cache import graph_of
from irviz.transforms.kernels.candidates import Candidate, Equivalence, equivalence
from irviz.transforms.kernels.library import definitions, kernels
from irviz.transforms.kernels.swap import Swap, UpdateFunction, update_obstacle
from irviz.view.templating import escape, render


class SwapPanel(ui.Panel):
    """Lists equivalents of the selected call's callee, and swaps it."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._call: CallKey | None = None
        self._callee, self._is_known = "", False
        self._found: tuple[Candidate, ...] = ()
        self._to = ui.field(widgets.Dropdown, "irviz-swap-to", "replacement")
        self._to.add_class("irviz-unlabelled")
        self._to.observe(lambda _: self._describe(), "value")
        self._about = ui.html("irviz-swap-about")
        self._everywhere = ui.checkbox("irviz-swap-everywhere")
        swap = self.button("Replace", "Let the call call this instead", self._swap, "exchange")
        self._count, self._reasons = ui.html("irviz-swap-count"), ui.html("irviz-swap-reasons")
        controls = widgets.VBox([self._to, self._about, self._everywhere, swap])
        self._controls = ui.classed(controls, "irviz-swap-controls")
        # keep the growing list below the buttons, so that they don't move under the pointer
        self.widget = widgets.VBox(
            [ui.heading("Replace this call"), self._controls, self._count, self._reasons]
        )

    def _parts(self, state: State) -> tuple[object, ...]:
        call = call_key(state)
        return (*(call or (None,)), _candidates(state, call), state.session.trusted)

    def _show(self, state: State) -> None:
        """List the equivalents found so far."""
        call = call_key(state)
        ui.show_if(self.widget, call is not None)
        if call is None:
            self._call = None
            return
        graph = graph_of(state.stage, call.function)
        node = graph[call.node]
        is_new = self._call is None or (self._call.node, self._callee) != (call.node, node.callee)
        self._call, self._callee = call, node.callee
        count = sum(one.kind in REPLACEABLE and one.callee == node.callee for one in graph.nodes)
        self._everywhere.description = f"all {count} calls of {node.callee}"
        self._everywhere.value = self._everywhere.value and not is_new
        ui.show_if(self._everywhere, count > 1)
        found = _candidates(state, call)
        is_complete = bool(found) and not any(each.is_pending for each in found)
        self._is_known = self._is_known and not is_new
        if self._is_known and not is_complete:
            return  # what was found before stays meanwhile, for whoever is about to click
        self._is_known = is_complete
        self._offer(found, "" if is_new else str(self._to.value))

    def _offer(self, found: tuple[Candidate, ...], chosen: str) -> None:
        self._found = found
        same = [each.name for each in found if each.computes_the_same]
        if same:
            ui.offer(self._to, same, chosen if chosen in same else same[0])
        ui.show_if(self._controls, bool(same))
        self._describe()
        self._count.value = ui.paragraph(_counted(found)) if found else self._untried()
        self._reasons.value = _reasons_html(found)

    def _untried(self) -> str:
        is_trusted = self.state.session.is_trusted(self.state.stage)
        words = "Nothing is tried before the file's code may be run: press Run."
        return "" if is_trusted else ui.paragraph(words, "irviz-hint")

    def _describe(self) -> None:
        found = next((each for each in self._found if each.name == self._to.value), None)
        words = "" if found is None else f"{found.kind.value}, {found.reason}. {_summary(found)}"
        self._about.value = ui.paragraph(words, "irviz-hint")

    def _swap(self) -> actions.Action | None:
        if self._call is None:
            return None
        node = None if self._everywhere.value else self._call.node
        return actions.Apply(Swap(self._callee, str(self._to.value), node, self._call.function))


def _candidates(state: State, call: CallKey | None) -> tuple[Candidate, ...]:
    known = state.candidates
    return known[1] if known is not None and known[0] == call else ()


def _counted(found: tuple[Candidate, ...]) -> str:
    same = sum(each.computes_the_same for each in found)
    fitting = sum(each.verdict is not Equivalence.MISFIT for each in found)
    if any(each.is_pending for each in found):
        return f"trying what fits: {same} of {fitting} compute the same so far"
    verb = "computes" if same == 1 else "compute"
    return f"{same} of the {fitting} that fit {verb} the same"


def _reasons_html(found: tuple[Candidate, ...]) -> str:
    """Return two collapsed lists: callees that fit but are not listed, and those that do not."""
    others = [each for each in found if not (each.computes_the_same or each.is_pending)]
    misfits = [each for each in others if each.verdict is Equivalence.MISFIT]
    tried = [each for each in others if each.verdict is not Equivalence.MISFIT]
    lists = [
        (f"{len(tried)} fit and are not offered", _by_reason(tried)),
        (f"{len(misfits)} do not fit", _by_reason(misfits)),
    ]
    return str(render("collapsed_lists", lists=lists))


def _by_reason(found: Iterable[Candidate]) -> list[tuple[str, str]]:
    names = grouped((each.reason, each.name) for each in found)
    return [(", ".join(those), reason) for reason, those in names.items()]


def _summary(found: Candidate) -> str:
    known = kernels().get(found.name) or definitions().get(found.name)
    return known.summary if known is not None else ""


Variables = Callable[[], Mapping[str, object]]


def notebook_variables() -> Mapping[str, object]:
    """Return the variables of the notebook; empty outside a notebook."""
    shell = get_ipython()
    return {} if shell is None else dict(shell.user_ns)


class UpdatePanel(ui.Panel):
    """Lists the notebook's PrimFuncs that fit all calls of the selected call's PrimFunc."""

    def __init__(self, store: Store, variables: Variables = notebook_variables) -> None:
        super().__init__(store)
        self._variables = variables
        self._name = ""
        self._found: dict[str, tirx.PrimFunc] = {}
        self._by = ui.field(widgets.Dropdown, "irviz-update-by", "PrimFunc that replaces it")
        self._by.add_class("irviz-unlabelled")
        checked = self._checked = ui.CheckedField(self._by)
        self._by.observe(lambda _: self._describe(), "value")
        self._about, self._heading = ui.html("irviz-update-about"), ui.html("")
        replace = self.button(
            "Replace",
            "Put this PrimFunc into the module, for all its calls",
            self._replace,
            "pencil",
        )
        self.widget = widgets.VBox([self._heading, checked, self._about, replace])

    def _parts(self, state: State) -> tuple[object, ...]:
        # with the selection: each click looks at the notebook's variables anew
        return state.stage, state.selection, selected_node(state)

    def _show(self, state: State) -> None:
        """List what fits if the selected call calls a PrimFunc; nothing is tried yet."""
        node = selected_node(state)
        self._name = node.callee if node is not None else ""
        self._found = self._offered(state.stage.module)
        self._heading.value = f"<h3>Replace {escape(self._name)} everywhere</h3>"
        options = [("– a PrimFunc of the notebook –", ""), *((one, one) for one in self._found)]
        ui.offer(self._by, options, "")
        self._about.value = ""
        ui.show_if(self.widget, bool(self._found))

    def _offered(self, module: ir.IRModule) -> dict[str, tirx.PrimFunc]:
        """Return the notebook's PrimFuncs that fit, by name, each once."""
        old = function_named(module, self._name) if self._name else None
        found: dict[str, tirx.PrimFunc] = {}
        if isinstance(old, tirx.PrimFunc):
            known = {_hash(old)}
            for variable, prim_func in _prim_funcs(self._variables()).items():
                key = _hash(prim_func)
                if key not in known and not update_obstacle(module, self._name, prim_func):
                    known.add(key)
                    found[variable] = prim_func
        return found

    def _describe(self) -> None:
        chosen = self._found.get(str(self._by.value))
        words = ""
        if chosen is not None:
            state = self.state
            is_trusted = state.session.is_trusted(state.stage)
            words = "not compared: it would run code of an opened file, which waits for Run"
            if is_trusted:
                words = equivalence(state.stage.module, self._name, chosen).reason
        self._about.value = ui.paragraph(words, "irviz-hint")

    def _replace(self) -> actions.Action:
        chosen = self._found.get(str(self._by.value))
        if chosen is None:
            words = f"no PrimFunc is chosen: choose one to put into the place of {self._name!r}"
            raise ui.FieldError(self._checked, words)
        return actions.Apply(UpdateFunction(self._name, chosen))


def _prim_funcs(variables: Mapping[str, object]) -> dict[str, tirx.PrimFunc]:
    """Return the PrimFuncs among variables, and those of the modules among them."""
    found: dict[str, tirx.PrimFunc] = {}
    for name, value in variables.items():
        if name.startswith("_"):  # what IPython keeps of earlier cells
            continue
        if isinstance(value, tirx.PrimFunc):
            found[name] = value
        elif isinstance(value, ir.IRModule):
            found |= {f"{name}.{own}": function for own, function in prim_funcs(value).items()}
    return found


@lru_cache(maxsize=4096)
def _hash(prim_func: tirx.PrimFunc) -> int:
    return int(tvm_ffi.structural_hash(prim_func.without_attr("global_symbol")))

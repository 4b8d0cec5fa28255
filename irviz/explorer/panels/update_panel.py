"""Put a PrimFunc that stands in the notebook into the place of one of the module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from html import escape

import ipywidgets as widgets
import tvm_ffi
from IPython import get_ipython
from tvm import ir, tirx

from irviz.explorer import actions
from irviz.explorer.panels.controls import button, field, html, offer, paragraph, show_if
from irviz.explorer.panels.panel import Panel
from irviz.explorer.state import State
from irviz.explorer.store import Store
from irviz.explorer.view_model import selected_node
from irviz.ir.functions import function_named, prim_funcs
from irviz.transforms.kernels.candidates import equivalence
from irviz.transforms.kernels.update_function import UpdateFunction, update_obstacle

Variables = Callable[[], Mapping[str, object]]


def notebook_variables() -> Mapping[str, object]:
    """Return the variables of the notebook; none where Python runs without one."""
    shell = get_ipython()
    return {} if shell is None else dict(shell.user_ns)


class UpdatePanel(Panel):
    """Offer the notebook's PrimFuncs that fit all calls of the selected call's PrimFunc."""

    def __init__(self, store: Store, variables: Variables = notebook_variables) -> None:
        super().__init__(store)
        self._variables = variables
        self._name = ""
        self._found: dict[str, tirx.PrimFunc] = {}
        self._by = field(widgets.Dropdown, "irviz-update-by", is_aligned=True)
        self._by.observe(lambda _: self._describe(), "value")
        self._about, self._heading = html("irviz-update-about"), html("")
        replace = button(
            "Replace",
            "Put this PrimFunc into the module, for all its calls",
            self._replace,
            "pencil",
        )
        self.widget = widgets.VBox([self._heading, self._by, self._about, replace])

    def _parts(self, state: State) -> tuple[object, ...]:
        # with the selection: each click looks at the notebook's variables anew
        return state.stage, state.selection, selected_node(state)

    def _show(self, state: State) -> None:
        """Offer what fits, where the selected call calls a PrimFunc; nothing is tried yet."""
        node = selected_node(state)
        self._name, self._found = node.callee if node is not None else "", self._offered(state)
        self._heading.value = f"<h4>Replace {escape(self._name)} everywhere</h4>"
        options = [("– a PrimFunc of the notebook –", ""), *((one, one) for one in self._found)]
        offer(self._by, options, "")
        self._about.value = ""
        show_if(self.widget, bool(self._found))

    def _offered(self, state: State) -> dict[str, tirx.PrimFunc]:
        """Return the notebook's PrimFuncs that fit, by name, each once."""
        node, module = selected_node(state), state.stage.module
        name = node.callee if node is not None else ""
        old = function_named(module, name) if name else None
        found: dict[str, tirx.PrimFunc] = {}
        if isinstance(old, tirx.PrimFunc):
            known = {_hash(old)}
            for variable, prim_func in _prim_funcs(self._variables()).items():
                key = _hash(prim_func)
                if key not in known and not update_obstacle(module, name, prim_func):
                    known.add(key)
                    found[variable] = prim_func
        return found

    def _describe(self) -> None:
        chosen = self._found.get(str(self._by.value))
        words = ""
        if chosen is not None:
            words = equivalence(self.state.stage.module, self._name, chosen).reason
        self._about.value = paragraph(words, "irviz-hint")

    def _replace(self) -> None:
        chosen = self._found.get(str(self._by.value))
        if chosen is None:
            self.refuse(f"choose a PrimFunc to put into the place of {self._name!r}")
        else:
            self.send(actions.Apply(UpdateFunction(self._name, chosen)))


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

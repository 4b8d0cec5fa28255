"""Put a PrimFunc that stands in the notebook into the place of one of the module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from html import escape

import ipywidgets as widgets
import tvm_ffi
from IPython import get_ipython
from tvm import ir, tirx

from irviz.app.reference import offer
from irviz.app.session import Session
from irviz.ir.identity import function_named
from irviz.model.graph import NodeId
from irviz.transforms.kernels.match import equivalence
from irviz.transforms.kernels.replacements import prim_funcs
from irviz.transforms.kernels.update import obstacle

Act = Callable[[Callable[[Session], Session]], None]
Variables = Callable[[], Mapping[str, object]]


def notebook_variables() -> Mapping[str, object]:
    """Return the variables of the notebook; none where Python runs without one."""
    shell = get_ipython()
    return {} if shell is None else dict(shell.user_ns)


class UpdatePanel:
    """Offer the notebook's PrimFuncs that fit all calls of the selected call's PrimFunc."""

    def __init__(self, act: Act, variables: Variables = notebook_variables) -> None:
        self._variables = variables
        self._module = ir.IRModule({})
        self._name = ""
        self._found: dict[str, tirx.PrimFunc] = {}
        wide = widgets.Layout(width="auto")
        self._by = widgets.Dropdown(layout=wide)
        self._by.add_class("irviz-update-by")
        self._by.observe(lambda _: self._describe(), "value")
        self._about, self._heading = widgets.HTML(), widgets.HTML()
        self._button = widgets.Button(
            description="Replace",
            tooltip="Put this PrimFunc into the module, for all its calls",
            icon="pencil",
            layout=wide,
        )
        self._button.on_click(lambda _: act(self._update))
        self.widget = widgets.VBox([self._heading, self._by, self._about, self._button])
        self.widget.layout.display = "none"

    def show(self, session: Session, selected: str) -> None:
        """Offer what fits, where the selected call calls a PrimFunc; nothing is tried yet."""
        graph = session.graph()
        index = graph.index.get(NodeId(selected))
        name = "" if index is None else graph.nodes[index].callee
        module = session.shown.module
        old = function_named(module, name) if name else None
        found = {}
        if isinstance(old, tirx.PrimFunc):
            known = {_hash(old)}
            for variable, prim_func in _prim_funcs(self._variables()).items():
                key = _hash(prim_func)
                if key not in known and not obstacle(module, name, prim_func):
                    known.add(key)
                    found[variable] = prim_func
        self._module, self._name, self._found = module, name, found
        self._heading.value = f"<h4>Replace {escape(name)} everywhere</h4>"
        offer(
            self._by, [("– a PrimFunc of the notebook –", ""), *zip(found, found, strict=True)], ""
        )
        self._about.value = ""
        self.widget.layout.display = "" if found else "none"

    def _describe(self) -> None:
        chosen = self._found.get(str(self._by.value))
        words = "" if chosen is None else equivalence(self._module, self._name, chosen).reason
        self._about.value = f"<p class='irviz-hint'>{escape(words)}</p>" if words else ""

    def _update(self, session: Session) -> Session:
        chosen = self._found.get(str(self._by.value))
        if chosen is None:
            raise ValueError(f"choose a PrimFunc to put into the place of {self._name!r}")
        return session.update(self._name, chosen)


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

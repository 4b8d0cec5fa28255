"""Where stages run, and what a run may take."""

from __future__ import annotations

import ipywidgets as widgets

from irviz.explorer import actions
from irviz.explorer.panels.controls import wide
from irviz.explorer.panels.panel import Panel
from irviz.explorer.state import State
from irviz.explorer.store import Store

_GB = 10**9
_WORDS = {"description_width": "initial"}


class LimitsPanel(Panel):
    """Choose the process or machine that runs stages, and the time and memory of a run."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._isolate = widgets.Checkbox(
            description="in a process of its own", indent=False, layout=wide()
        )
        self._seconds = widgets.BoundedFloatText(
            min=0.1, max=86_400, description="stop after (s)", style=_WORDS, layout=wide()
        )
        self._memory = widgets.BoundedFloatText(
            min=0, max=1e6, description="memory (GB, 0: what is free)", style=_WORDS, layout=wide()
        )
        self._device = widgets.Text(
            description="device",
            placeholder="cpu, or host:port of an RPC server",
            continuous_update=False,
            style=_WORDS,
            layout=wide(),
        )
        # only what was changed is sent: the others may be beyond what a field can show
        self.on_change(self._isolate, lambda on: self.send(actions.SetLimit("isolate", bool(on))))
        self.on_change(self._seconds, lambda s: self.send(actions.SetLimit("seconds", float(s))))
        self.on_change(
            self._memory, lambda gb: self.send(actions.SetLimit("memory", round(gb * _GB) or None))
        )
        self.on_change(
            self._device, lambda text: self.send(actions.SetLimit("device", text.strip()))
        )
        fields = [self._isolate, self._seconds, self._memory, self._device]
        for field, name in zip(fields, ("isolate", "seconds", "memory", "device"), strict=True):
            field.add_class(f"irviz-limits-{name}")
        self.widget = widgets.Accordion(
            [widgets.VBox(fields)], titles=("where it runs, and limits",)
        )
        self.widget.add_class("irviz-limits")

    def parts(self, state: State) -> tuple[object, ...]:
        """Return the session's limits."""
        return (state.session.run_config,)

    def show(self, state: State) -> None:
        """Show the session's limits."""
        limits = state.session.run_config
        self._isolate.value = limits.isolate
        self._seconds.value = limits.seconds
        self._memory.value = (limits.memory or 0) / _GB
        self._device.value = limits.device

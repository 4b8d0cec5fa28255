"""Where stages run, and what a run may take."""

from __future__ import annotations

import ipywidgets as widgets

from irviz.explorer import actions
from irviz.explorer.panels.controls import classed, field
from irviz.explorer.panels.panel import Panel
from irviz.explorer.state import State
from irviz.explorer.store import Store

_GB = 10**9


class LimitsPanel(Panel):
    """Choose the process or machine that runs stages, and the time and memory of a run."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._isolate = field(
            widgets.Checkbox, "irviz-limits-isolate", "in a process of its own", indent=False
        )
        self._seconds = field(
            widgets.BoundedFloatText,
            "irviz-limits-seconds",
            "stop after (s)",
            min=0.1,
            max=86_400,
        )
        self._memory = field(
            widgets.BoundedFloatText,
            "irviz-limits-memory",
            "memory (GB, 0: what is free)",
            min=0,
            max=1e6,
        )
        self._device = field(
            widgets.Text,
            "irviz-limits-device",
            "device",
            placeholder="cpu, or host:port of an RPC server",
            continuous_update=False,
        )
        # only what was changed is sent: the others may be beyond what a field can show
        set_limit = actions.SetLimit
        self.on_change(self._isolate, lambda on: self.send(set_limit("isolate", on)))
        self.on_change(self._seconds, lambda seconds: self.send(set_limit("seconds", seconds)))
        self.on_change(
            self._memory, lambda gb: self.send(set_limit("memory", round(gb * _GB) or None))
        )
        self.on_change(self._device, lambda text: self.send(set_limit("device", text.strip())))
        fields = widgets.VBox([self._isolate, self._seconds, self._memory, self._device])
        self.widget = classed(
            widgets.Accordion([fields], titles=("where it runs, and limits",)), "irviz-limits"
        )

    def _parts(self, state: State) -> tuple[object, ...]:
        return (state.session.run_config,)

    def _show(self, state: State) -> None:
        limits = state.session.run_config
        self._isolate.value = limits.isolate
        self._seconds.value = limits.seconds
        self._memory.value = (limits.memory or 0) / _GB
        self._device.value = limits.device

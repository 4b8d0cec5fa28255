"""Where stages run, and what a run may take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import ipywidgets as widgets

from irviz.app.controls import wide
from irviz.app.session import Session

_GB = 10**9
_WORDS = {"description_width": "initial"}


class LimitsPanel:
    """Choose the process or machine that runs stages, and the time and memory that a run may take.

    `changed` hears a verb of the session.
    """

    def __init__(self, changed: Callable[[Callable[[Session], Session]], None]) -> None:
        self._changed = changed
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
        for field, name in (
            (self._isolate, "isolate"),
            (self._seconds, "seconds"),
            (self._memory, "memory"),
            (self._device, "device"),
        ):
            field.add_class(f"irviz-limits-{name}")
            field.observe(lambda _, name=name: self._report(name), "value")
        self._is_setting = False
        fields = widgets.VBox([self._isolate, self._seconds, self._memory, self._device])
        self.widget = widgets.Accordion([fields], titles=("where it runs, and limits",))
        self.widget.add_class("irviz-limits")

    def show(self, session: Session) -> None:
        """Show the session's limits."""
        self._is_setting = True
        self._isolate.value = session.isolate
        self._seconds.value = session.seconds
        self._memory.value = (session.memory or 0) / _GB
        self._device.value = session.device
        self._is_setting = False

    def _report(self, name: str) -> None:
        """Change what was changed here; the others may be beyond what a field can show."""
        if self._is_setting:
            return
        limits = {
            "isolate": bool(self._isolate.value),
            "seconds": float(self._seconds.value),
            "memory": round(self._memory.value * _GB) or None,
            "device": self._device.value.strip(),
        }
        chosen: Any = {name: limits[name]}
        self._changed(lambda session: replace(session, **chosen))

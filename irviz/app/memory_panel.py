"""What memory the shown stage takes as it runs, and the buffers that its calls write into."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape

import ipywidgets as widgets
from tvm import relax

from irviz.app.controls import button, wide
from irviz.app.message import Say, save_file
from irviz.ir.destinations import destination_passing
from irviz.ir.identity import drawn_functions, relax_function
from irviz.ir.sizes import symbolic_sizes
from irviz.model.memory import MemoryUse, bytes_text
from irviz.runtime.inputs import InputError
from irviz.runtime.memory import memory_use
from irviz.transforms.stage import Stage
from irviz.view.drawing import Drawing
from irviz.view.figure import Figure, figure
from irviz.view.memory_chart import memory_chart
from irviz.view.style import THEMES

_SIZE = 128
"""What a symbolic size is, when nothing else is said."""
_MOST_NAMES = 6


class _Shown:
    """A picture that was asked for, with a field to save it."""

    def __init__(self, kind: str, say: Say) -> None:
        self.picture: Drawing | Figure | None = None
        self._kind, self._say = kind, say
        self._html = widgets.HTML()
        self._html.add_class(f"irviz-{kind}-picture")
        self._path = widgets.Text(description="file", layout=wide())
        save = button("Save SVG", "Write this picture to a file", "save")
        save.on_click(lambda _: self._save())
        self.widget = widgets.VBox([self._html, widgets.HBox([self._path, save])])
        self.clear("")

    def clear(self, name: str) -> None:
        """Show nothing, and suggest a file name for what is shown next."""
        self.picture, self._html.value = None, ""
        self._path.value = f"{name}-{self._kind}.svg"
        self.widget.layout.display = "none"

    def show(self, picture: Drawing | Figure) -> None:
        """Show a picture in a part of the page of its own: it may be wider than the panel."""
        self.picture = picture
        frame = "overflow: auto; max-height: 600px"
        self._html.value = f'<div style="{frame}">{picture.svg}</div>'
        self.widget.layout.display = ""

    def _save(self) -> None:
        if (picture := self.picture) is not None:
            save_file(self._say, lambda: picture.save(self._path.value))


class MemoryPanel:
    """Show what a function holds as it runs, when that is asked for; `use` is what was found."""

    def __init__(self, say: Say) -> None:
        self.use: MemoryUse | None = None
        self._key: tuple[object, ...] = ()
        self._stage: Stage | None = None
        self._function = ""
        self._sizes = widgets.Text(description="sizes", layout=wide())
        self._sizes.add_class("irviz-memory-sizes")
        self._theme = widgets.Dropdown(options=tuple(THEMES), description="theme", layout=wide())
        self._theme.observe(lambda _: self._redraw(), "value")
        self.ask = button("Show memory", "Plan the memory as the build does", "bar-chart")
        self.ask.on_click(lambda _: self._try(self._show_use))
        self._facts = widgets.HTML()
        self._facts.add_class("irviz-memory-facts")
        self._planned = widgets.Checkbox(
            value=False, description="with the storages of the plan", indent=False, layout=wide()
        )
        self.ask_buffers = button(
            "Destination-passing view",
            "Draw the buffers that each call reads and writes",
            "sitemap",
        )
        self.ask_buffers.on_click(lambda _: self._try(self._show_buffers))
        self.chart, self.buffers = _Shown("memory", say), _Shown("buffers", say)
        heading = widgets.HTML("<h4>Memory</h4>")
        self._parts = widgets.VBox(
            [
                *(self._sizes, self._theme, self.ask, self._facts, self.chart.widget),
                *(self.ask_buffers, self._planned, self.buffers.widget),
            ]
        )
        self._hint = widgets.HTML()
        self.widget = widgets.VBox([heading, self._hint, self._parts])
        self.widget.add_class("irviz-memory")

    @property
    def theme(self) -> str:
        """The name of the pictures' theme, which the reader can change."""
        return str(self._theme.value)

    @theme.setter
    def theme(self, name: str) -> None:
        self._theme.value = name

    def show(self, stage: Stage, function: str, sizes: Mapping[str, int] | None = None) -> None:
        """Take a stage and one of its functions; what was shown of another is taken away.

        `sizes` are the symbolic sizes that are known; the reader can change them.
        """
        known = dict(sizes or {})
        key = (stage.id, stage.module, function, tuple(sorted(known.items())))
        if key == self._key:
            return
        self._key, self._stage, self._function = key, stage, function
        self.use, self._facts.value = None, ""
        self.chart.clear(f"{function}-{stage.id}")
        self.buffers.clear(f"{function}-{stage.id}")
        there = drawn_functions(stage.module).get(function)
        is_relax = isinstance(there, relax.Function)
        self._parts.layout.display = "" if is_relax else "none"
        words = "" if is_relax else f"{function} is a PrimFunc: look at a function that calls it."
        self._hint.value = f'<p class="irviz-hint">{escape(words)}</p>' if words else ""
        names = symbolic_sizes(there) if is_relax else ()
        self._sizes.layout.display = "" if names else "none"
        self._sizes.value = ", ".join(f"{name}={known.get(name, _SIZE)}" for name in names)

    def _show_use(self, stage: Stage) -> None:
        self.use = None
        self.chart.clear(f"{self._function}-{stage.id}")
        self.use = memory_use(stage.module, self._function, self._written_sizes())
        self._facts.value = facts_html(self.use)
        self.chart.show(memory_chart(self.use, self._theme.value))

    def _show_buffers(self, stage: Stage) -> None:
        self._facts.value = facts_html(self.use) if self.use else ""
        self.buffers.clear(f"{self._function}-{stage.id}")
        relax_function(stage.module, self._function)
        graph = destination_passing(stage.module, self._function, planned=self._planned.value)
        self.buffers.show(figure(graph, self._theme.value))

    def _redraw(self) -> None:
        """Draw what is shown in the chosen theme."""
        if self.chart.picture is not None and self.use is not None:
            self.chart.show(memory_chart(self.use, self._theme.value))
        if self.buffers.picture is not None:
            self._try(self._show_buffers)

    def _try(self, act: Callable[[Stage], None]) -> None:
        if self._stage is None:
            return
        self.ask.disabled = self.ask_buffers.disabled = True
        try:
            act(self._stage)
        except Exception as failure:  # whatever it is, the explorer lives on
            words = escape(str(failure))
            self._facts.value = f'<p role="alert" class="irviz-error">{words}</p>'
        finally:
            self.ask.disabled = self.ask_buffers.disabled = False

    def _written_sizes(self) -> dict[str, int]:
        """Return the sizes that stand in the field; raise InputError for what is none."""
        found = {}
        for part in filter(str.strip, self._sizes.value.split(",")):
            name, _, size = part.partition("=")
            if not name.strip() or not size.strip().isdecimal():
                raise InputError(f"{part.strip()!r} is no size: write sizes such as n=128, m=784")
            found[name.strip()] = int(size)
        return found


def facts_html(use: MemoryUse) -> str:
    """Return what a function holds in a few numbers, and what is wrong with its plan."""
    facts = [("peak", bytes_text(use.peak))]
    if use.peak_step is not None:
        facts[0] = ("peak", f"{facts[0][1]} at step {use.peak_step}, {_step(use)}")
    saved = f", {use.unplanned / use.peak:.1f}× the peak" if use.peak else ""
    facts += [
        ("without reuse", f"{bytes_text(use.unplanned)}{saved}"),
        ("storages", f"{len(use.storages)} for {len(use.allocations)} buffers"),
        ("parameters and constants", bytes_text(use.given)),
    ]
    if use.unseen:
        more = len(use.unseen) - _MOST_NAMES
        names = [*use.unseen[:_MOST_NAMES], *([f"{more} more"] if more > 0 else [])]
        facts.append(("not counted", f"what {', '.join(names)} allocate by themselves"))
    rows = "".join(f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in facts)
    warnings = "".join(
        f'<p role="alert" class="irviz-error">{escape(words)}</p>' for words in use.warnings
    )
    return f'<div class="irviz-details"><dl>{rows}</dl>{warnings}</div>'


def _step(use: MemoryUse) -> str:
    assert use.peak_step is not None, "something runs"
    step = use.steps[use.peak_step]
    return step.name if step.node is None else f"{step.name}, which makes {step.node}"

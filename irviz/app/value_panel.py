"""The value of the selected node: facts, pictures, and the way to the whole of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html import escape

import ipywidgets as widgets

from irviz.app.controls import button, show_if, wide
from irviz.app.message import Say, save_file
from irviz.app.reference import offer
from irviz.model.summary import Summary
from irviz.model.trace import Array, Value
from irviz.view.drawing import Drawing
from irviz.view.image import images_shape
from irviz.view.image_strip import MOST_IMAGES
from irviz.view.style import theme_of
from irviz.view.value_facts import value_html
from irviz.view.value_figure import HEAT_MAP, HISTOGRAM, IMAGES, picture_of, pictures_of

_UNSAFE = re.compile(r"[^\w.-]+")
"""What a file is better not called."""

Fetch = Callable[[], Sequence[Array]]
"""Returns the tensors of the shown value; raises ValueError or RuntimeError with words to show."""


class ValuePanel:
    """Show a node's value in numbers and pictures, and save these; `widget` is what is displayed.

    `fetch` is asked for what was too large to keep; `theme` is that of the pictures.
    """

    def __init__(self, fetch: Fetch, say: Say, theme: str = "course") -> None:
        self._fetch, self._say, self._theme = fetch, say, theme
        self._value: Value | None = None
        self._arrays: tuple[Array | None, ...] = ()
        self._label = self._words = ""
        self._tensor, self._kind, self._wanted = 0, "", ""  # wanted: what the reader chose last
        self._drawing: Drawing | None = None
        self._facts, self._picture = widgets.HTML(), widgets.HTML()
        self._picture.add_class("irviz-value-picture")
        self._tensors = _dropdown("tensor", "irviz-value-tensor")
        self._kinds = _dropdown("picture", "irviz-value-kind")
        self._places = widgets.VBox()
        self._whole = button("Fetch whole value", "Run again and keep this value", "download")
        self._path = widgets.Text(description="file", layout=wide())
        self._path.add_class("irviz-value-path")
        save = button("Save SVG", "Write this picture of the value as a file", "save")
        self._saving = widgets.VBox([self._path, save])
        self._tensors.observe(lambda change: self._choose_tensor(change.new), "index")
        self._kinds.observe(lambda change: self._choose_kind(change.new), "value")
        self._whole.on_click(lambda _: self._fetch_whole())
        save.on_click(lambda _: self._save())
        chosen = [self._tensors, self._whole, self._kinds, self._places]
        self.widget = widgets.VBox([self._facts, *chosen, self._picture, self._saving])
        self.widget.add_class("irviz-value")
        self.show(None, "")

    @property
    def theme(self) -> str:
        """The name of the pictures' theme."""
        return self._theme

    @theme.setter
    def theme(self, name: str) -> None:
        if theme_of(name) is not theme_of(self._theme):
            self._theme = name
            self._draw()

    def show(self, value: Value | None, label: str, *, words: str = "") -> None:
        """Show a value under a label, None for no value; `words` are told of it as they are.

        What is shown already is not drawn again.
        """
        is_shown = value is not None and value is self._value and label == self._label
        if value is None or value is not self._value:
            self._arrays = value.arrays if value is not None else ()
            self._tensor = 0
        self._value, self._label, self._words = value, label, words
        if is_shown:
            self._show_facts()
        else:
            self._show_value()

    @property
    def _summary(self) -> Summary | None:
        """What is known of the chosen tensor; None where the value is none."""
        summaries = self._value.summaries if self._value is not None else ()
        return summaries[self._tensor] if summaries else None

    @property
    def _array(self) -> Array | None:
        """The chosen tensor, where it was kept or fetched."""
        return self._arrays[self._tensor] if self._tensor < len(self._arrays) else None

    @property
    def _is_left_out(self) -> bool:
        return self._summary is not None and self._summary.nbytes > 0 and self._array is None

    def _show_value(self) -> None:
        """Set every control from what is chosen, and draw."""
        show_if(self.widget, self._value is not None or bool(self._words))
        summaries = self._value.summaries if self._value is not None else ()
        names = [f"{place}: {one.dtype} {one.shape}" for place, one in enumerate(summaries)]
        if names:
            offer(self._tensors, names, names[self._tensor])
        show_if(self._tensors, len(names) > 1)
        show_if(self._whole, self._is_left_out)
        kinds = self._fitting()
        self._kind = self._wanted if self._wanted in kinds else next(iter(kinds), "")
        if kinds:
            offer(self._kinds, kinds, self._kind)
        show_if(self._kinds, len(kinds) > 1)
        self._show_facts()
        self._show_kind()

    def _show_facts(self) -> None:
        text = self._value.text if self._value is not None else ""
        left_out = "It is too large to be kept; its numbers are known." if self._is_left_out else ""
        words = " ".join(part for part in (self._words, left_out) if part)
        self._facts.value = value_html(self._label, self._summary, text, words)

    def _show_kind(self) -> None:
        """Offer what can be chosen of a kind of picture, suggest a file for it, and draw it."""
        boxes = _places(self._kind, self._summary.shape if self._summary is not None else ())
        for box in boxes:
            box.observe(lambda _: self._draw(), "value")
        self._places.children = boxes
        name = _UNSAFE.sub("-", self._label).strip("-.") or "value"
        self._path.value = f"{name}-{self._kind.replace(' ', '-')}.svg"
        self._draw()

    def _fitting(self) -> tuple[str, ...]:
        """Return the pictures that can be drawn now."""
        summary = self._summary
        if summary is None:
            return ()
        return tuple(
            kind
            for kind in pictures_of(summary.shape)
            if (summary.counts if kind == HISTOGRAM else self._array is not None)
        )

    def _draw(self) -> None:
        summary = self._summary
        self._drawing, shown = None, ""
        if summary is not None and self._kind:
            try:
                self._drawing = picture_of(
                    self._kind,
                    self._array,
                    summary,
                    self._theme,
                    index=self._index(summary.shape),
                    title=self._label,
                )
                shown = self._drawing.svg
            except ValueError as failure:
                shown = f'<p class="irviz-error">{escape(str(failure))}</p>'
        self._picture.value = shown
        show_if(self._saving, self._drawing is not None)

    def _index(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the chosen slice or image; dimensions of one number have no control."""
        chosen = iter(int(box.value) for box in self._places.children)
        if self._kind != HEAT_MAP:
            return tuple(chosen)
        return tuple(next(chosen) if side > 1 else 0 for side in shape[:-2])

    def _choose_tensor(self, place: int | None) -> None:
        if place is not None and place != self._tensor:
            self._tensor = place
            self._show_value()

    def _choose_kind(self, kind: str | None) -> None:
        if kind is not None and kind != self._kind:
            self._kind = self._wanted = kind
            self._show_kind()

    def _fetch_whole(self) -> None:
        value = self._value
        try:
            fetched = tuple(self._fetch())
        except (ValueError, RuntimeError) as failure:
            self._say(str(failure), True)
            return
        if value is None or value is not self._value:
            return  # another node was chosen meanwhile
        found = [(array.shape, str(array.dtype)) for array in fetched]
        wanted = [(one.shape, one.dtype) for one in value.summaries]
        if found != wanted:
            self._say(f"the fetched value has {found} and not {wanted}: run the stage again", True)
            return
        self._arrays = fetched
        self._show_value()

    def _save(self) -> None:
        if (drawing := self._drawing) is not None:
            save_file(self._say, lambda: drawing.save(self._path.value))


def _places(kind: str, shape: Sequence[int]) -> tuple[widgets.BoundedIntText, ...]:
    """Return the controls for what a picture does not show at once: slices, or further images."""
    if kind == IMAGES:
        images = images_shape(shape)
        if images is None or images[0] <= MOST_IMAGES:
            return ()
        return (_number(f"first image (0 to {images[0] - 1:,})", images[0]),)
    leading = shape[:-2] if kind == HEAT_MAP else ()
    return tuple(
        _number(f"index {axis} (0 to {side - 1:,})", side)
        for axis, side in enumerate(leading)
        if side > 1
    )


def _number(words: str, count: int) -> widgets.BoundedIntText:
    box = widgets.BoundedIntText(
        min=0,
        max=count - 1,
        description=words,
        style={"description_width": "initial"},
        layout=wide(),
    )
    box.add_class("irviz-value-index")
    return box


def _dropdown(words: str, name: str) -> widgets.Dropdown:
    dropdown = widgets.Dropdown(description=words, layout=wide())
    dropdown.add_class(name)
    return dropdown

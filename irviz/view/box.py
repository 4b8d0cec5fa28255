"""The room that something takes in a picture."""

from __future__ import annotations

from typing import NamedTuple

from irviz.view import label
from irviz.view.dot import Size
from irviz.view.layout import Point


class Box(NamedTuple):
    """A rectangle in px, y downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        """Tell whether two of them have a point in common that is on no border."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def holds(self, other: Box) -> bool:
        """Tell whether another one is inside of it."""
        return (
            self.left <= other.left
            and other.right <= self.right
            and self.top <= other.top
            and other.bottom <= self.bottom
        )


def around(middle: Point, size: Size) -> Box:
    """Return the box of this size around a point."""
    x, y, half, high = *middle, size.width / 2, size.height / 2
    return Box(x - half, y - high, x + half, y + high)


def text_box(words: str, place: Point, size: float) -> Box:
    """Return the room of a line of text, its middle above the place."""
    half = label.width(words, size) / 2
    x, y = place
    return Box(x - half, y - 0.75 * size, x + half, y + 0.22 * size)

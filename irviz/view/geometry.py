"""Points, sizes and rectangles in px, with y downwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

Point = tuple[float, float]
"""A position: x to the right, y downwards."""


@dataclass(frozen=True, slots=True)
class Size:
    """A width and a height."""

    width: float
    height: float


class Rect(NamedTuple):
    """A rectangle by its sides."""

    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def around(cls, centre: Point, size: Size) -> Rect:
        """Return the rectangle of a size around its centre."""
        x, y, half, high = *centre, size.width / 2, size.height / 2
        return cls(x - half, y - high, x + half, y + high)

    def overlaps(self, other: Rect) -> bool:
        """Return whether two rectangles share a point that is not on the border of one."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def contains(self, other: Rect) -> bool:
        """Return whether another rectangle is inside this one."""
        return (
            self.left <= other.left
            and other.right <= self.right
            and self.top <= other.top
            and other.bottom <= self.bottom
        )

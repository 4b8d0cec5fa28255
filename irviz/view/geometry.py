"""Points, sizes and rectangles in px, with y downwards."""

from __future__ import annotations

from typing import NamedTuple

Point = tuple[float, float]
"""A position: x to the right, y downwards."""


class Size(NamedTuple):
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

    @classmethod
    def at(cls, corner: Point, width: float, height: float) -> Rect:
        """Return the rectangle of a size with its upper left corner at a point."""
        return cls(*corner, corner[0] + width, corner[1] + height)

    @property
    def width(self) -> float:
        """The width."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """The height."""
        return self.bottom - self.top

    @property
    def centre(self) -> Point:
        """The point in the middle."""
        return ((self.left + self.right) / 2, (self.top + self.bottom) / 2)

    def overlaps(self, other: Rect) -> bool:
        """Return whether two rectangles overlap in more than a border."""
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

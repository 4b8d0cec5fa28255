"""Widgets report every change of a value: which of them are the reader's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class ReadersChanges:
    """Pass on what the reader changes, and not what irviz itself sets."""

    def __init__(self) -> None:
        self.are_paused = False

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Set traits until the block ends: what widgets report meanwhile is not the reader's."""
        before, self.are_paused = self.are_paused, True
        try:
            yield
        finally:
            self.are_paused = before

    def to(self, act: Callable[[Any], None]) -> Callable[[Any], None]:
        """Return an observer that gives a function each new value."""

        def changed(change: Any) -> None:
            if not self.are_paused:
                act(change.new)

        return changed

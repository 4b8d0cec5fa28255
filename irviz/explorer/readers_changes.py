"""Tell the user's changes to widgets from those made by irviz."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class ReadersChanges:
    """Passes on the user's changes, but not those made by irviz."""

    def __init__(self) -> None:
        self.are_paused = False

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Ignore changes inside the block, in which irviz sets traits."""
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

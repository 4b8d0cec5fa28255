"""A pass that was run, as an interval of time with the passes inside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class TimedPass:
    """A pass, or a block that ran passes.

    Attributes:
        name: Its name.
        start: When it began, in seconds since the first one did.
        seconds: How long it took, with the passes inside it.
        children: The passes inside it, in the order in which they ran.
        is_changed: Whether it changed the module.
        error: Why it failed, "" where it did not.
        stage: The stage of a session that it made, "" where that is not known.
    """

    name: str
    start: float
    seconds: float
    children: tuple[TimedPass, ...] = ()
    is_changed: bool = False
    error: str = ""
    stage: str = ""

    @property
    def own(self) -> float:
        """The seconds that it took itself, without the passes inside it."""
        return max(self.seconds - sum(one.seconds for one in self.children), 0.0)

    def walk(self, depth: int = 0) -> Iterator[tuple[int, TimedPass]]:
        """Yield it and all inside it in the order in which they began, with how deep they are."""
        yield depth, self
        for child in self.children:
            yield from child.walk(depth + 1)

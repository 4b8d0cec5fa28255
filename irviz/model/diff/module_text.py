"""The TVMScript of a module by function, with the line of each node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from irviz.model.graph.graph import NodeId


@dataclass(frozen=True)
class FunctionText:
    """The lines of a function; `nodes` has the index of the line of each binding."""

    lines: tuple[str, ...]
    nodes: Mapping[NodeId, int]


class ModuleText:
    """The texts of a module's functions by name, printed on first use; pickled as plain data."""

    def __init__(self, make: Callable[[], Mapping[str, FunctionText]]) -> None:
        self._make: Callable[[], Mapping[str, FunctionText]] | None = make

    @cached_property
    def functions(self) -> Mapping[str, FunctionText]:
        """The functions by name, in the order of the text."""
        assert self._make is not None, "its result takes its place"
        made = self._make()
        self._make = None
        return made

    def __getstate__(self) -> dict[str, object]:
        return {"_make": None, "functions": self.functions}

"""Modules with everything that can stand in one, by name; and the passes they go through.

Each is an IRModule or a function that makes one: the rarer things take a while.
"""

from collections.abc import Callable

from tvm import IRModule

from .calls import CALLS
from .control import CONTROL
from .described_graph import DescribedGraph
from .devices import DEVICES
from .drawing import random_modules
from .lowered import LOWERED, PIPELINES
from .malformed import MALFORMED, deep_branches
from .values import VALUES

__all__ = [
    "CONSTRUCTS",
    "PIPELINES",
    "WELL_FORMED",
    "DescribedGraph",
    "construct",
    "deep_branches",
    "random_modules",
]

WELL_FORMED: dict[str, IRModule | Callable[[], IRModule]] = {
    **CALLS,
    **CONTROL,
    **DEVICES,
    **VALUES,
    **LOWERED,
}
CONSTRUCTS = {**WELL_FORMED, **MALFORMED}


def construct(name: str) -> IRModule:
    """Return the module of this name."""
    found = CONSTRUCTS[name]
    return found if isinstance(found, IRModule) else found()

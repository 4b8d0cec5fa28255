"""Cache results for functions of stages, for the most recently used stages."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from irviz.transforms.stage import Stage

_MOST_STAGES = 32

_Arguments = ParamSpec("_Arguments")
_Found = TypeVar("_Found")


class kept_by_stage(Generic[_Arguments, _Found]):  # noqa: N801 - a decorator
    """Cache a function's results by stage and further arguments, such as a function's name.

    A stage may have hundreds of functions, and a path between two stages needs those of each. So
    the results of a stage are not limited in number; they are dropped with the stage.
    """

    def __init__(self, find: Callable[Concatenate[Stage, _Arguments], _Found]) -> None:
        self._find = find
        self._of_stage = lru_cache(maxsize=_MOST_STAGES)(_nothing_yet)
        self.cache_clear = self._of_stage.cache_clear

    def __call__(
        self, stage: Stage, *arguments: _Arguments.args, **named: _Arguments.kwargs
    ) -> _Found:
        """Return the cached result, or compute it."""
        assert not named, "it is called by position"
        kept = self._of_stage(stage)
        if arguments not in kept:
            kept[arguments] = self._find(stage, *arguments, **named)
        found: _Found = kept[arguments]
        return found


def _nothing_yet(_: Stage) -> dict[object, Any]:
    return {}

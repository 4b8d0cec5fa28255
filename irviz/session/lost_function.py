"""Explain what became of a function that a stage lacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from irviz.ir.module_functions import drawable_functions, function_named, relax_functions
from irviz.model.diff.diff_result import FunctionDiff
from irviz.session.stage_cache import graph_of
from irviz.session.stage_diff import diff_modules
from irviz.transforms.stage import Stage
from irviz.transforms.stage_tree import StageTree

_MOST_STEPS = 8
"""How many stages are searched for the last one that called the function."""


class LostFunction(NamedTuple):
    """Why a stage lacks a function; `instead` lists functions to show instead."""

    words: str
    instead: tuple[str, ...]


def is_lost(tree: StageTree, stage: Stage, function: str) -> bool:
    """Tell whether a stage lacks a function that another stage of the same root has."""
    return not _has(stage, function) and any(
        tree.lineage(one.id)[0] is tree.lineage(stage.id)[0]
        for one in tree.stages
        if _has(one, function)
    )


def lost_function(tree: StageTree, stage: Stage, function: str) -> LostFunction:
    """Explain what became of a function for which `is_lost` is true."""
    words = f"This stage has no function {function!r}"
    lineage = tree.lineage(stage.id)
    last = next((at for at in reversed(range(len(lineage))) if _has(lineage[at], function)), None)
    if last is None:
        made = next(one for one in tree.stages if _has(one, function))
        words = f"{words}: stage {made.id} ({made.label}) makes it."
        return LostFunction(words, tuple(drawable_functions(stage.module))[:1])
    gone = lineage[last + 1]
    words = f"{words}: stage {gone.id} ({gone.label}) removed it."
    try:
        became = tuple(_became(lineage, last, function))
    except Exception:  # a module cannot be read: it is known all the same that it is lost
        became = ()
    if became:
        words += f" What it computed is in {' and '.join(map(repr, became))}."
    return LostFunction(words, became or tuple(drawable_functions(stage.module))[:1])


def _has(stage: Stage, function: str) -> bool:
    return function_named(stage.module, function) is not None


def _became(
    lineage: Sequence[Stage], last: int, function: str, known: frozenset[str] = frozenset()
) -> list[str]:
    """Return the functions of the last stage that replace one that it lacks."""
    for at in range(last, max(last - _MOST_STEPS, -1), -1):
        found = _in_next(lineage[at], lineage[at + 1], function) - {function} - known
        if found:
            kept = {name for name in found if _has(lineage[-1], name)}
            for name in found - kept:  # fused, and then fused again
                later = max(i for i in range(at + 1, len(lineage)) if _has(lineage[i], name))
                kept.update(_became(lineage, later, name, known | {function}))
            return sorted(kept)
    return []


@lru_cache(maxsize=64)
def _in_next(before: Stage, after: Stage, function: str) -> frozenset[str]:
    """Return the functions of the next stage that replace one of the stage before.

    This is called for each later stage, and needs the diff of two modules.
    """
    callers = [
        name
        for name in relax_functions(before.module)
        if any(node.callee == function for node in graph_of(before, name).nodes)
    ]
    names: set[str] = set()
    for one in diff_modules(before, after).functions:
        if one.before == function and one.after not in ("", function):
            names.add(one.after)
        if one.before in callers and one.after:
            names.update(_called_now(one, function, after))
    return frozenset(names)


def _called_now(caller: FunctionDiff, function: str, after: Stage) -> Iterator[str]:
    """Yield what a caller now calls in place of a function, or the caller if fused into it."""
    mine, theirs = caller.graphs
    if caller.after not in relax_functions(after.module):
        yield caller.after
    elif mine is not None and theirs is not None:
        for change in caller.nodes:
            if any(mine[one].callee == function for one in change.before if one in mine.index):
                callees = (theirs[one].callee for one in change.after if one in theirs.index)
                yield from (name for name in callees if name != function and _has(after, name))

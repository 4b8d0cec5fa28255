"""What a schedule's steps are given, written as Python."""

from __future__ import annotations

import math
from collections.abc import Sequence

from irviz.model.loops import BlockNamed, LoopOf
from irviz.transforms.python import UnwritableError
from irviz.transforms.schedules.index_map import IndexMapText


def written(value: object) -> str:
    """Return the Python for an argument of a step; raise UnwritableError for what has none."""
    match value:
        case BlockNamed(name):
            return f"sch.get_sblock({quoted(name)})"
        case LoopOf(block, depth):
            return f"sch.get_loops({quoted(block)})[{depth}]"
        case IndexMapText(text):
            return text
        case str():
            return quoted(value)
        case None | bool() | int():
            return repr(value)
        case float() if math.isfinite(value):
            return repr(value)
        case list():
            return f"[{', '.join(map(written, value))}]"
        case tuple():
            return f"({', '.join(map(written, value))}{',' * (len(value) == 1)})"
        case dict():
            items = (f"{written(key)}: {written(item)}" for key, item in value.items())
            return f"{{{', '.join(items)}}}"
    raise UnwritableError(f"{value!r} is no value that Python can write in a line")


def quoted(text: str) -> str:
    """Return a text between double quotes where that is possible, as Python reads it."""
    inside = repr(text)
    return f'"{inside[1:-1]}"' if inside[0] == "'" and '"' not in inside else inside


def call(primitive: str, positional: Sequence[object], named: Sequence[tuple[str, object]]) -> str:
    """Return the line of Python that calls a primitive of the schedule `sch`."""
    given = [*map(written, positional), *(f"{name}={written(value)}" for name, value in named)]
    return f"sch.{primitive}({', '.join(given)})"

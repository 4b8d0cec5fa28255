"""Schedule steps and their arguments as Python source."""

from __future__ import annotations

import math
from collections.abc import Sequence

from irviz.model.loops import BlockAddress, LoopAddress
from irviz.transforms.python_script import UnwritableError
from irviz.transforms.schedules.index_map import IndexMapText


def value_source(value: object) -> str:
    """Return the Python for an argument of a step; raise UnwritableError if there is none."""
    match value:
        case BlockAddress(name):
            return f"sch.get_sblock({quoted(name)})"
        case LoopAddress(block, depth):
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
            return f"[{', '.join(map(value_source, value))}]"
        case tuple():
            return f"({', '.join(map(value_source, value))}{',' * (len(value) == 1)})"
        case dict():
            items = (f"{value_source(key)}: {value_source(item)}" for key, item in value.items())
            return f"{{{', '.join(items)}}}"
    raise UnwritableError(f"{value!r} cannot be written as a Python literal")


def quoted(text: str) -> str:
    """Return the Python literal of a text, in double quotes where possible."""
    inside = repr(text)
    return f'"{inside[1:-1]}"' if inside[0] == "'" and '"' not in inside else inside


def step_source(
    primitive: str, positional: Sequence[object], named: Sequence[tuple[str, object]]
) -> str:
    """Return the line of Python that calls a primitive of the schedule `sch`."""
    given = [
        *map(value_source, positional),
        *(f"{name}={value_source(value)}" for name, value in named),
    ]
    return f"sch.{primitive}({', '.join(given)})"

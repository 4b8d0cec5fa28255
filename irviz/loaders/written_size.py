"""Refuse modules whose text would be far larger than they are.

Objects in a module are shared: a tuple of twice the same tuple takes a few bytes, and its type is
written out twice. Thirty of them, one in the other, are a text of gigabytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from irviz.loaders.file_errors import FileError

_MOST, _FOR_EACH = 10_000_000, 100
"""The objects in a text, and how many more for each object in the module; models have 15."""
_NUMBERS = frozenset({"ir.IntImm", "ir.FloatImm", "ir.Span", "int", "bool", "float"})
"""What has integers that refer to no other object."""


def check_written_size(content: Mapping[str, Any]) -> None:
    """Raise FileError if an object in TVM's JSON has too many parts when each is written out.

    Args:
        content: What was parsed; an object is listed after those that it refers to.
    """
    nodes = content["nodes"]
    most = _MOST + _FOR_EACH * len(nodes)
    sizes: list[int] = []
    for node in nodes:
        parts = (sizes[at] for at in _references(node) if 0 <= at < len(sizes))
        sizes.append(1 + sum(parts))
        if sizes[-1] > most and len(sizes) - 1 != content.get("root_index"):
            raise FileError(
                f"has objects that contain each other so often that its text would have more than "
                f"{most:,} parts: give a smaller module"
            )


def _references(node: Mapping[str, Any]) -> Iterator[int]:
    """Yield the indices of the objects that one contains."""
    data = None if node.get("type") in _NUMBERS else node.get("data")
    values: Sequence[object] = list(data.values()) if isinstance(data, dict) else ()
    for value in data if isinstance(data, list) else values:
        if type(value) is int:
            yield value

"""The parts of a node's type, for comparison."""

from __future__ import annotations

from typing import NamedTuple


class TypeParts(NamedTuple):
    """A type as text without abbreviations; only tensors have the parts.

    Attributes:
        symbols: The names of the symbolic sizes in it.
    """

    text: str
    shape: str = ""
    dtype: str = ""
    device: str = ""
    symbols: frozenset[str] = frozenset()

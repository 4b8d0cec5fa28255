"""What a module holds, as plain data."""

from __future__ import annotations

from typing import NamedTuple


class FunctionFacts(NamedTuple):
    """A function of a module; a private one has no name outside of it."""

    name: str
    kind: str
    is_private: bool
    attributes: tuple[tuple[str, str], ...]


class Contents(NamedTuple):
    """The functions and the attributes of a module."""

    functions: tuple[FunctionFacts, ...]
    attributes: tuple[tuple[str, str], ...]

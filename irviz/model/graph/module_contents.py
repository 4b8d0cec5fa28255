"""The contents of a module, as plain data."""

from __future__ import annotations

from typing import NamedTuple


class FunctionInfo(NamedTuple):
    """A function of a module; a private one is not visible outside the module."""

    name: str
    kind: str
    is_private: bool
    attributes: tuple[tuple[str, str], ...]


class ModuleContents(NamedTuple):
    """The functions and the attributes of a module."""

    functions: tuple[FunctionInfo, ...]
    attributes: tuple[tuple[str, str], ...]

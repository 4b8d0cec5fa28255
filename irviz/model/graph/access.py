"""What a node does with the memory of its arguments."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

Positions: TypeAlias = "tuple[int, ...] | None"
"""Positions of arguments, where fields of a tuple of arguments are arguments; None for all."""


class Access(NamedTuple):
    """What a node reads, writes and frees, and what memory its value is in.

    Attributes:
        reads: The arguments whose contents it reads; it only uses the others as objects.
        writes: The arguments whose contents it writes.
        frees: The arguments that nothing may use afterwards.
        shares: The arguments whose memory its value, or a part of it, may be in.
        fields: Where the value is a tuple, the field that each argument of `shares` is, if known.
        has_effect: Whether it reads and writes anything that is not an argument.
        span: The bytes of its argument that its value is, from the first one up to the last.
    """

    reads: Positions = None
    writes: Positions = ()
    frees: Positions = ()
    shares: Positions = ()
    fields: tuple[int, ...] = ()
    has_effect: bool = False
    span: tuple[float, float] | None = None

    @property
    def is_ordered(self) -> bool:
        """Whether other nodes can tell when it is run."""
        return self.writes != () or self.frees != () or self.has_effect


VIEW = Access(reads=(), shares=(0,))
"""The value is the first argument, or another view of its memory."""
UNKNOWN = Access(writes=None, shares=None, has_effect=True)
"""Anything may happen, as in a call of an impure function that is not in the module."""
PURE_UNKNOWN = Access(shares=None)
"""Nothing is written, and the value may be an argument."""

"""Fill new memory, so that a read of what nothing wrote is noticed, and is the same each time."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator

PERTURB = -6
"""`M_PERTURB` of glibc's mallopt: what `malloc` returns is filled with the complement of a byte."""


@contextlib.contextmanager
def filled_memory(byte: int | None) -> Iterator[None]:
    """Fill memory that is allocated inside of the block, where the C library can: glibc.

    None leaves memory as it is.
    """
    set_option = None
    if byte is not None:
        with contextlib.suppress(OSError, TypeError):  # there is no C library to ask
            set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is None:
        yield
        return
    set_option(PERTURB, perturb_value(byte or 0))
    try:
        yield
    finally:
        set_option(PERTURB, 0)


def perturb_value(byte: int) -> int:
    """Return the value of `M_PERTURB` for a byte; 0 would turn it off, so a higher bit is set."""
    return (byte ^ 0xFF) | 0x100

"""A hash by which the content of a file is known again."""

from __future__ import annotations

import hashlib


def digest_of(content: bytes) -> bytes:
    """Return a hash of a file's content."""
    return hashlib.sha256(content).digest()

"""The file that a module was imported from, to be read again when the original is run."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from irviz.errors import RunError


@dataclass(frozen=True)
class OriginFile:
    """A file, as its path and a hash of its content, or the content itself if there is no path."""

    path: Path | None
    digest: bytes
    content: bytes = b""

    @classmethod
    def of(cls, content: bytes, path: Path | None) -> OriginFile:
        """Return the file at a path, or the content if there is no path."""
        return cls(path, _digest(content)) if path else cls(None, b"", content)

    def read(self) -> bytes:
        """Return the content; raise RunError if the file has been changed."""
        if self.path is None:
            return self.content
        content = self.path.read_bytes()
        if _digest(content) != self.digest:
            raise RunError(f"{str(self.path)!r} has changed since it was opened")
        return content


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()

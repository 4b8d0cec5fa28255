"""The frames that a worker sends to its parent: progress messages, and finally the answer."""

from __future__ import annotations

import contextlib
import struct
import threading
from typing import BinaryIO

PROGRESS, ANSWER = b"p", b"a"
MOST_BYTES = 1 << 30
"""The size limit of an answer, without its large arrays."""
_MAX_CHARACTERS = 256
_HEADER = struct.Struct("<cQ")
_MOST = {PROGRESS: 4 * _MAX_CHARACTERS, ANSWER: MOST_BYTES}
_answers: BinaryIO | None = None
"""The pipe to the parent, if this process is a worker."""
_lock = threading.Lock()


def set_answers(answers: BinaryIO | None) -> None:
    """Make this process a worker that answers through a pipe, or none."""
    global _answers
    _answers = answers


def number() -> int | None:
    """Return the descriptor of that pipe, None if this process is no worker."""
    return None if _answers is None else _answers.fileno()


def send(kind: bytes, content: bytes) -> None:
    """Send a progress message or an answer."""
    assert _answers is not None, "only a worker sends"
    with _lock:
        _answers.write(_HEADER.pack(kind, len(content)))
        _answers.write(content)
        _answers.flush()


def receive(answers: BinaryIO) -> tuple[bytes, bytes]:
    """Read the kind and the content of a frame; raise EOFError at the end, ValueError for none."""
    kind, size = _HEADER.unpack(_read(answers, _HEADER.size))
    if size > _MOST.get(kind, -1):
        raise ValueError(f"{kind!r} of {size} bytes is no frame of a worker")
    return kind, _read(answers, size)


def report_progress(message: str) -> None:
    """Set the progress message, if this process is a worker."""
    if _answers is not None:
        words = message[:_MAX_CHARACTERS].replace("\n", " ")
        with contextlib.suppress(OSError):  # the parent is gone
            send(PROGRESS, words.encode(errors="backslashreplace")[: _MOST[PROGRESS]])


def _read(answers: BinaryIO, size: int) -> bytes:
    parts, left = list[bytes](), size
    while left:
        parts.append(answers.read(left))  # a raw file may give fewer
        if not parts[-1]:
            raise EOFError
        left -= len(parts[-1])
    return b"".join(parts)

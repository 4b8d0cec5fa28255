"""Pictures as files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from irviz.model.whole_file import whole_file


def saved(path: str | os.PathLike[str], texts: Mapping[str, str]) -> Path:
    """Write the text for the path's suffix to the file, whole or not at all; return the path.

    Raises ValueError for another suffix than those of `texts` or no such directory, OSError where
    the place cannot be written.
    """
    target = Path(path)
    text = texts.get(target.suffix.lower())
    if text is None:
        raise ValueError(f"cannot save {str(target)!r}: give a name ending in {' or '.join(texts)}")
    if not target.parent.is_dir():
        raise ValueError(
            f"cannot save {str(target)!r}: there is no directory {str(target.parent)!r}"
        )
    with whole_file(target) as partial:
        partial.write_text(text, encoding="utf-8")
    return target

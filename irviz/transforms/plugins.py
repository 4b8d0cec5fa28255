"""Load passes and kernels of other installed packages."""

from __future__ import annotations

import warnings
from functools import cache
from importlib import metadata

PASSES, KERNELS = "irviz.passes", "irviz.kernels"


@cache
def load_entry_points(group: str) -> None:
    """Import the modules that installed packages name in an entry point group, once.

    These modules register passes by `irviz.register_pass` and kernels by `irviz.library.register`.
    If an import fails, a warning names the package.
    """
    for entry in metadata.entry_points(group=group):
        try:
            entry.load()
        except Exception as failure:  # noqa: PERF203 - whatever it does, irviz can be used
            package = entry.dist.name if entry.dist else entry.value
            warnings.warn(
                f"the entry point {entry.name!r} of {package!r} in {entry.group!r} could not be "
                f"loaded: {type(failure).__name__}: {failure}",
                stacklevel=2,
            )

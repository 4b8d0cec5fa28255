"""What a worker inherits from its parent, even through a fork server."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path

# Workers search the user's folder for modules last, so that nothing there shadows a library.
_SETTINGS = {
    "PYTHONSAFEPATH": "1",  # else a file in the user's folder could shadow a module
    "TVM_FFI_DISABLE_TORCH_C_DLPACK": "1",  # which would load torch
}


@dataclass(frozen=True)
class Surroundings:
    """The module path, the current directory (None if deleted) and the environment variables."""

    path: list[str]
    folder: str | None
    environment: dict[str, str]

    @classmethod
    def of_a_worker(cls) -> Surroundings:
        """Return what a worker started by this process would get now."""
        path, folder = [one for one in sys.path if one], None
        with contextlib.suppress(OSError):
            folder = str(Path.cwd())
        if "" in sys.path and folder is not None:
            path.append(folder)  # last: its modules can be imported, but shadow no others
        return cls(path, folder, {**os.environ, **_SETTINGS})

    def adopt(self) -> None:
        """Apply them to this process."""
        sys.path[:] = self.path
        if self.folder is not None:
            with contextlib.suppress(OSError):
                os.chdir(self.folder)
        if os.environ != self.environment:
            os.environ.clear()
            os.environ.update(self.environment)

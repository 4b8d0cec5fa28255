"""See, transform and rerun Apache TVM's IRModules.

`explore`, `draw` and `load` take a module, a model or a file; a `Session` holds the stages.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING

import lazy_loader

from irviz.gc_pause import gc_paused
from irviz.version import __version__ as __version__

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

if os.path.expanduser("~") == "~":  # noqa: PTH111 - pathlib raises here, and so would TVM's import
    os.environ["HOME"] = "/"  # as containers set it, where nothing can be kept

# the names are in `__init__.pyi`: TVM takes a second to load, so each is imported at its first use
_import, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    with gc_paused():  # an import makes much that lasts, and hardly any garbage
        return _import(name)


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the cell magic `%%tvmscript`; IPython calls this for `%load_ext irviz`."""
    importlib.import_module("irviz.explorer.cell_magic").register(shell)

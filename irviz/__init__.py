"""irviz: see, transform and rerun Apache TVM's IRModules."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from irviz.app.draw import draw as draw
    from irviz.app.draw import graph as graph
    from irviz.app.explorer import explore as explore
    from irviz.app.load import load as load
    from irviz.app.recorded import record as record
    from irviz.app.session import Session as Session
    from irviz.transforms.kernels import library as library
    from irviz.transforms.passes.own_passes import register_pass as register_pass
    from irviz.transforms.passes.own_passes import register_rewrite as register_rewrite

__version__ = "0.1.0"

# TVM takes a second to load: each name is fetched when it is first used.
_HOMES = {
    "Session": "irviz.app.session",
    "draw": "irviz.app.draw",
    "explore": "irviz.app.explorer",
    "graph": "irviz.app.draw",
    "load": "irviz.app.load",
    "record": "irviz.app.recorded",
    "register_pass": "irviz.transforms.passes.own_passes",
    "register_rewrite": "irviz.transforms.passes.own_passes",
}

__all__ = [
    "Session",
    "draw",
    "explore",
    "graph",
    "library",
    "load",
    "record",
    "register_pass",
    "register_rewrite",
]


def __getattr__(name: str) -> object:
    if name == "library":
        return importlib.import_module("irviz.transforms.kernels.library")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'irviz' has no attribute {name!r}")


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Give a notebook `%%tvmscript`; IPython calls this for `%load_ext irviz`."""
    importlib.import_module("irviz.app.magic").register(shell)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

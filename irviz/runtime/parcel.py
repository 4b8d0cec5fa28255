"""Python functions as bytes, with the reader's own modules in them.

Another process may not find these modules, or has read them before they were changed.
"""

from __future__ import annotations

import contextlib
import site
import sys
import sysconfig
import threading
from collections.abc import Iterator
from types import ModuleType

import cloudpickle

_OURS = ("irviz", "tvm", "tvm_ffi")
_lock = threading.Lock()


def by_value(function: object) -> bytes:
    """Return a function with all that it needs of modules that are not installed.

    Where what they hold cannot be sent, they are named only. Raises what pickling raises.
    """
    with contextlib.suppress(Exception), _sent_whole():
        whole: bytes = cloudpickle.dumps(function)
        return whole
    named: bytes = cloudpickle.dumps(function)
    return named


@contextlib.contextmanager
def _sent_whole() -> Iterator[None]:
    """Let modules that are not installed be sent and not named meanwhile."""
    with _lock:
        already = cloudpickle.list_registry_pickle_by_value()
        chosen = [one for one in _own_modules() if one.__name__ not in already]
        for module in chosen:
            cloudpickle.register_pickle_by_value(module)
        try:
            yield
        finally:
            for module in chosen:
                cloudpickle.unregister_pickle_by_value(module)


def _own_modules() -> list[ModuleType]:
    """Return the modules that are neither installed, nor Python's or TVM's, nor made here."""
    kinds = ("stdlib", "platstdlib", "purelib", "platlib")
    homes = {sysconfig.get_path(kind) for kind in kinds}
    homes |= {*site.getsitepackages(), site.getusersitepackages()}
    installed = tuple(home for home in homes if home)
    found = []
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        is_own = isinstance(path, str) and not path.startswith(installed)
        is_known = getattr(module, "__name__", None) == name  # and is found again by it
        if is_own and is_known and name.partition(".")[0] not in (*_OURS, "__main__"):
            found.append(module)
    return found

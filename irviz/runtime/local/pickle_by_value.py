"""Python functions as bytes, including the code of the user's own modules.

Another process may be unable to import these modules, or may have imported an older version.
"""

from __future__ import annotations

import contextlib
import site
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType

import cloudpickle

_BY_REFERENCE = ("irviz", "tvm", "tvm_ffi", "__main__")
_lock = threading.Lock()


def by_value(function: object) -> bytes:
    """Pickle a function with everything it uses from modules that are not installed.

    Where that cannot be pickled, functions of these modules are pickled by name. Raises what
    pickling raises.
    """
    with contextlib.suppress(Exception), _own_modules_by_value():
        with_code: bytes = cloudpickle.dumps(function)
        return with_code
    by_name: bytes = cloudpickle.dumps(function)
    return by_name


@dataclass(frozen=True)
class PortableFunction:
    """A function that can be unpickled where its module cannot be imported."""

    function: Callable[..., object]

    def __call__(self, *arguments: object, **named: object) -> object:
        """Call the function."""
        return self.function(*arguments, **named)

    def __reduce__(self) -> tuple[Callable[[bytes], PortableFunction], tuple[bytes]]:
        """Pickle the function with its code; raise what pickling raises when that fails."""
        return _unpickled, (by_value(self.function),)


def _unpickled(packed: bytes) -> PortableFunction:
    return PortableFunction(cloudpickle.loads(packed))


@contextlib.contextmanager
def _own_modules_by_value() -> Iterator[None]:
    with _lock:
        already = cloudpickle.list_registry_pickle_by_value()
        chosen = [module for module in _own_modules() if module.__name__ not in already]
        for module in chosen:
            cloudpickle.register_pickle_by_value(module)
        try:
            yield
        finally:
            for module in chosen:
                cloudpickle.unregister_pickle_by_value(module)


def _own_modules() -> list[ModuleType]:
    """Return the user's modules: from outside of the installed packages, or created by code."""
    kinds = ("stdlib", "platstdlib", "purelib", "platlib")
    homes = {sysconfig.get_path(kind) for kind in kinds}
    homes |= {*site.getsitepackages(), site.getusersitepackages()}
    installed = tuple(home for home in homes if home)
    found = []
    for name, module in list(sys.modules.items()):
        if not isinstance(module, ModuleType) or module.__name__ != name:
            continue  # it could not be found again by its name
        path = getattr(module, "__file__", None)
        is_own = module.__spec__ is None if path is None else not path.startswith(installed)
        if is_own and name.partition(".")[0] not in _BY_REFERENCE:
            found.append(module)
    return found

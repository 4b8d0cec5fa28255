"""A user's function as it travels to another process: with its code, not by its name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import cloudpickle

_EVERYWHERE = ("irviz", "numpy", "tvm", "tvm_ffi")
"""What every process has; anything else may lie in a folder that the worker does not see."""


@dataclass(frozen=True)
class Carried:
    """A function that arrives whole where its module cannot be imported."""

    function: Callable[..., object]

    def __call__(self, *arguments: object, **named: object) -> object:
        """Call the function."""
        return self.function(*arguments, **named)

    def __reduce__(self) -> tuple[Callable[[bytes], Carried], tuple[bytes]]:
        """Give the function with its code; raise what pickling raises when that cannot be."""
        module = sys.modules.get(self.function.__module__)
        if (
            module is None
            or module.__name__.partition(".")[0] in _EVERYWHERE
            or module.__name__ in cloudpickle.list_registry_pickle_by_value()
        ):
            return _arrived, (cloudpickle.dumps(self.function),)
        cloudpickle.register_pickle_by_value(module)
        try:
            return _arrived, (cloudpickle.dumps(self.function),)
        finally:
            cloudpickle.unregister_pickle_by_value(module)


def _arrived(sent: bytes) -> Carried:
    return Carried(cloudpickle.loads(sent))

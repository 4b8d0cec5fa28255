"""Build modules for a CPU, and call them on Relax's virtual machine in this process."""

from __future__ import annotations

import contextlib
import ctypes
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np
import tvm
from tvm import ir, relax

from irviz.errors import RunError, memory_errors, run_errors
from irviz.ir.parameter_values import ShapeValue, shared_tensor, tensor_array
from irviz.model.runs.execution_trace import Array
from irviz.runtime import build_module
from irviz.runtime.compute_framework_calls import register_framework_functions
from irviz.runtime.kv_caches import cache_in, caches_of, described, is_cache, live_cache, with_cache
from irviz.runtime.module_serialization import called_names
from irviz.runtime.run_config import RunConfig
from irviz.worker.shared_arrays import is_mapped

_MOST_BUILT = 16
_MOST_CACHES = 10
"""How many calls that need a new cache each are timed together."""

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def remembered(
    cache: OrderedDict[Key, object], key: Key, make: Callable[[], Value], most: int = _MOST_BUILT
) -> Value:
    """Return the value cached for a key, or create it; the last `most` are kept."""
    if key not in cache:
        cache[key] = make()
    cache.move_to_end(key)
    while len(cache) > most:
        cache.popitem(last=False)
    found: Value = cache[key]  # type: ignore[assignment] # it was made for this key
    return found


class Called(NamedTuple):
    """The outputs of a call, its seconds, and its caches in words."""

    outputs: list[Array]
    seconds: float
    caches: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class LocalModule:
    """Relax functions on a virtual machine, or a library of PrimFuncs, and the device that runs it.

    Loading them may run code of the module, so `load` does that when they are needed first, unless
    it is known to run none. `written` are the indices of the arguments that a PrimFunc writes,
    which are its outputs, None for Relax functions. `symbols` are the names of PrimFuncs there, if
    they are others.
    """

    load: Callable[[], relax.VirtualMachine | tvm.runtime.Module]
    device: tvm.runtime.Device
    written: Sequence[int] | None
    symbols: Mapping[str, str] = field(default_factory=dict)
    what: str = "the module"

    @cached_property
    def functions(self) -> relax.VirtualMachine | tvm.runtime.Module:
        """The loaded functions; raises RunError."""
        with run_errors(f"{self.what} could not be built"):
            return self.load()

    @classmethod
    def build(
        cls,
        mod: ir.IRModule,
        config: RunConfig,
        written: Sequence[int] | None,
        what: str = "the module",
    ) -> LocalModule:
        """Build a module for this machine, `what` in errors; raise RunError.

        The memory of one call is used again in the next, unless it is to be filled. If the module
        is to be confined, nothing of it is run here, and it is refused if building it would.
        """
        with run_errors(f"{what} could not be built"):
            if config.confine and (reason := build_module.why_not_confined(mod, config.build)):
                raise RunError(
                    f"{reason}, so it is not built for the sandbox: if you trust where the file "
                    "comes from, open it with trust=True, or go on with session.trust()"
                )
            register_framework_functions(called_names(mod))
            build = build_module.build_relax if written is None else build_module.build_prim_funcs
            device, target = tvm.cpu(), build_module.tvm_target(config.target_json)
            if written is None:
                mod = build_module.optimised(mod, target, config.build, config.database)
            module, symbols, constants, is_closed = build(mod, target)
            memory = None if config.fill is None else "naive"

            def load() -> relax.VirtualMachine | tvm.runtime.Module:
                return relax.VirtualMachine(module, device, memory) if written is None else module

            made = cls(load, device, written, symbols, what)
            weakref.finalize(made, build_module.release_constants, constants)
        if is_closed or not config.confine:
            _ = made.functions
        return made

    def copy_arguments(self, arguments: Sequence[object]) -> Sequence[object]:
        """Copy arguments to the device."""
        return [to_device(argument, self.device) for argument in arguments]

    def call(self, function: str, placed: Sequence[object]) -> Called:
        """Call a function; return its outputs and the seconds. Raise RunError."""
        made = self.with_cache(placed)
        value, taken = self.timed(function, made)
        if self.written is not None:
            value = [placed[number] for number in self.written]
        caches = caches_of(made) or caches_of(value)
        return Called(to_arrays(value), taken, described(caches, cache_in(placed)))

    def with_cache(self, placed: Sequence[object]) -> Sequence[object]:
        """Return the arguments with their cache made and filled, which one call may use.

        Raises RunError.
        """
        cache = cache_in(placed)
        if cache is None:
            return placed

        def call(function: str, arguments: Sequence[object]) -> object:
            return self.timed(function, self.copy_arguments(arguments))[0]

        return with_cache(placed, live_cache(cache, call))

    def timed(
        self, function: str, placed: Sequence[object], count: int = 1
    ) -> tuple[object, float]:
        """Call a function `count` times; return its value and a call's seconds. Raise RunError."""
        placed = self.with_cache(placed)
        value = None
        with self._running(function):
            call = self.functions[self.symbols.get(function, function)]
            start = time.perf_counter()
            for _ in range(count):
                value = call(*placed)
            return value, (time.perf_counter() - start) / count

    def seconds(self, function: str, placed: Sequence[object], count: int) -> float:
        """Call a function `count` times; return the seconds of one call. Raise RunError."""
        if cache_in(placed) is not None:
            count = min(count, _MOST_CACHES)
            return sum(self.timed(function, placed)[1] for _ in range(count)) / count
        if self.written is not None and count > 1:  # one may be long, and TVM would warm up
            return self.evaluated(function, placed, count)
        return self.timed(function, placed, count)[1]

    def evaluated(self, function: str, placed: Sequence[object], count: int) -> float:
        """Call a PrimFunc `count` times after a warm-up; return the device's seconds per call."""
        with self._running(function):
            name = self.symbols.get(function, function)
            timer = self.functions.time_evaluator(name, self.device, number=count)
            return float(timer(*placed).mean)

    @contextlib.contextmanager
    def _running(self, function: str) -> Iterator[None]:
        """Raise RunError for any error of a running function, with the names of the module."""
        try:
            with running(function):
                yield
        except RunError as failure:
            words = str(failure)
            for name, symbol in self.symbols.items():
                words = words.replace(symbol, name)
            raise RunError(words) from failure.__cause__


def running(function: str) -> contextlib.AbstractContextManager[None]:
    """Return `run_errors` for a call of a function."""
    return run_errors(f"{function!r} failed as it ran")


def to_device(argument: object, device: tvm.runtime.Device) -> object:
    """Copy an argument to a device."""
    if isinstance(argument, np.ndarray | np.generic):
        array = np.asarray(argument, order="C")
        with memory_errors():
            is_own = is_mapped(array) and device == tvm.cpu()  # this process's own copy
            return shared_tensor(array) if is_own else tvm.runtime.tensor(array, device)
    if isinstance(argument, tuple):
        return tuple(to_device(item, device) for item in argument)
    if isinstance(argument, ShapeValue):
        return tvm.runtime.ShapeTuple(argument.dims)
    return argument


def to_arrays(value: object) -> list[Array]:
    """Return the tensors and numbers in a value as arrays, without caches.

    Raises RunError for anything else.
    """
    if value is None or is_cache(value):
        return []
    if isinstance(value, tvm.runtime.Tensor):
        return [np.array(tensor_array(value))]
    if isinstance(value, tuple | list | tvm.ir.Array):
        return [array for item in value for array in to_arrays(item)]
    array = np.asarray(value)
    if array.dtype.hasobject:  # unpickling such an object could run code
        raise RunError(f"an output is a {type(value).__name__}: give tensors and numbers only")
    return [array]


def stack_cases(outputs: Sequence[Sequence[Array]]) -> tuple[Array, ...]:
    """Stack the cases of each output along a new first axis; raise RunError if shapes differ."""
    columns = list(zip(*outputs, strict=True))
    for index, column in enumerate(columns):
        shapes = list(dict.fromkeys(array.shape for array in column))
        if len(shapes) > 1:
            raise RunError(
                f"output {index} has shape {shapes[0]} in one case and {shapes[1]} in another: "
                "give one case at a time"
            )
    return tuple(map(np.stack, columns))


# --- Fill new memory, so that reads of unwritten memory are noticed, and always give the same -----


PERTURB = -6
"""`M_PERTURB` of glibc's mallopt: what `malloc` returns is filled with the complement of a byte."""


@contextlib.contextmanager
def filled_memory(byte: int | None) -> Iterator[None]:
    """Fill memory that is allocated inside of the block, where the C library can: glibc.

    None leaves memory as it is.
    """
    with contextlib.ExitStack() as after:
        if byte is not None:
            # there may be no C library to ask, or another one
            with contextlib.suppress(OSError, TypeError, AttributeError):
                set_option = ctypes.CDLL(None).mallopt
                after.callback(set_option, PERTURB, 0)
                set_option(PERTURB, perturb_value(byte))
        yield


def perturb_value(byte: int) -> int:
    """Return the value of `M_PERTURB` for a byte; 0 would turn it off, so a higher bit is set."""
    return (byte ^ 0xFF) | 0x100

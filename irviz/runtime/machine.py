"""Build modules for a CPU and call them on Relax's virtual machine, in this process."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import tvm
from tvm import ir, relax

from irviz.ir.fit import Shape
from irviz.model.trace import Array

_MOST_BUILT = 16
_built: OrderedDict[Hashable, object] = OrderedDict()

Built = TypeVar("Built")


class RunError(RuntimeError):
    """A module that could not be built or run; the message says what TVM said."""


class Timer(Protocol):
    """What is built and can be timed, wherever it is."""

    def placed(self, arguments: Sequence[object]) -> Sequence[object]:
        """Return arguments as they are where it runs."""

    def seconds(self, function: str, placed: Sequence[object], count: int) -> float:
        """Call a function so many times; return the seconds of a call. Raise RunError."""


class Caller(Timer, Protocol):
    """What is built and can be called, wherever it is."""

    def call(self, function: str, placed: Sequence[object]) -> tuple[list[Array], float]:
        """Call a function; return its outputs and the seconds that took. Raise RunError."""


class KernelCaller(Timer, Protocol):
    """A PrimFunc that is built and can be called, wherever it is."""

    def call(
        self, function: str, placed: Sequence[object], written: Sequence[int]
    ) -> tuple[list[Array], float]:
        """Call a function; return what it wrote, by the numbers of its arguments, and the seconds.

        Raises RunError.
        """


@dataclass(frozen=True, eq=False)
class Machine:
    """A module on the virtual machine of this process."""

    vm: relax.VirtualMachine

    def placed(self, arguments: Sequence[object]) -> Sequence[object]:
        """Return arguments as the machine takes them."""
        return [on_device(argument, tvm.cpu()) for argument in arguments]

    def call(self, function: str, placed: Sequence[object]) -> tuple[list[Array], float]:
        """Call a function; return its outputs and the seconds that took. Raise RunError."""
        value, taken = called(self.vm, function, placed)
        return arrays(value), taken

    def seconds(self, function: str, placed: Sequence[object], count: int) -> float:
        """Call a function so many times; return the seconds of a call. Raise RunError."""

        def times() -> float:
            call = self.vm[function]
            start = time.perf_counter()
            for _ in range(count):
                call(*placed)
            return (time.perf_counter() - start) / count

        return tried(function, times)


@dataclass(frozen=True, eq=False)
class Kernel:
    """A library of PrimFuncs on the device that it runs on."""

    library: tvm.runtime.Module
    device: tvm.runtime.Device

    def placed(self, arguments: Sequence[object]) -> Sequence[object]:
        """Return arguments as its functions take them."""
        return [on_device(argument, self.device) for argument in arguments]

    def call(
        self, function: str, placed: Sequence[object], written: Sequence[int]
    ) -> tuple[list[Array], float]:
        """Call a function; return what it wrote and the seconds. Raise RunError."""

        def once() -> tuple[list[Array], float]:
            taken = self._once(function, placed)
            return [placed[number].numpy() for number in written], taken  # type: ignore[attr-defined]

        return tried(function, once)

    def seconds(self, function: str, placed: Sequence[object], count: int) -> float:
        """Call a function so many times; return the seconds of a call. Raise RunError."""
        if count == 1:  # which may be long: TVM would call it once more, to warm up
            return tried(function, lambda: self._once(function, placed))
        return self.evaluated(function, placed, count)

    def evaluated(self, function: str, placed: Sequence[object], count: int) -> float:
        """Call a function so many times, and once before; return the device's seconds of a call."""

        def times() -> float:
            timer = self.library.time_evaluator(function, self.device, number=count)
            return float(timer(*placed).mean)

        return tried(function, times)

    def _once(self, function: str, placed: Sequence[object]) -> float:
        call = self.library[function]
        start = time.perf_counter()
        call(*placed)
        return time.perf_counter() - start


def machine(key: Hashable, made: Callable[[], ir.IRModule], target: object = "llvm") -> Machine:
    """Return the machine of a module, built once and kept while it is among the last sixteen.

    Raises RunError when TVM cannot build it.
    """

    def build(mod: ir.IRModule) -> Machine:
        return Machine(relax.VirtualMachine(tvm.compile(mod, target=target), tvm.cpu()))

    return _kept((key, str(target)), made, build)


def kernel(
    key: Hashable, function: str, made: Callable[[], ir.IRModule], target: object = "llvm"
) -> Kernel:
    """Return the library of a PrimFunc and those it calls, built and kept as machines are."""

    def build(mod: ir.IRModule) -> Kernel:
        return Kernel(tvm.compile(mod, target=target).jit(), tvm.cpu())

    return _kept(("kernel", key, str(target)), made, build, repr(function))


def _kept(
    key: Hashable,
    made: Callable[[], ir.IRModule],
    build: Callable[[ir.IRModule], Built],
    what: str = "the module",
) -> Built:
    if key not in _built:
        mod = made()
        _built[key] = building(lambda: build(mod), what)
    _built.move_to_end(key)
    while len(_built) > _MOST_BUILT:
        _built.popitem(last=False)
    found: Built = _built[key]  # type: ignore[assignment] # it was put there under this key
    return found


def building(build: Callable[[], Built], what: str = "the module") -> Built:
    """Do what builds a module, or `what` is said; raise RunError with what TVM said."""
    try:
        return build()
    except (MemoryError, RunError):
        raise
    except Exception as failure:  # TVM raises what its C++ side threw, of any class
        if "bad_alloc" in str(failure):
            raise MemoryError(str(failure)) from failure
        raise RunError(f"{what} could not be built: {said(failure)}") from failure


def on_device(argument: object, device: tvm.runtime.Device) -> object:
    """Return an argument as the machine takes it."""
    if isinstance(argument, np.ndarray | np.generic):
        return _copied(np.asarray(argument, order="C"), device)
    if isinstance(argument, tuple):
        return tuple(on_device(item, device) for item in argument)
    if isinstance(argument, Shape):
        return tvm.runtime.ShapeTuple(argument.dims)
    return argument


def _copied(array: Array, device: tvm.runtime.Device) -> tvm.runtime.Tensor:
    try:
        return tvm.runtime.tensor(array, device)
    except Exception as failure:  # TVM raises what its C++ side threw, of any class
        if "bad_alloc" in str(failure):
            raise MemoryError(str(failure)) from failure
        raise


def called(
    vm: relax.VirtualMachine, function: str, arguments: Sequence[object]
) -> tuple[object, float]:
    """Call a function; return what it gives, and the seconds that took. Raise RunError."""
    start = time.perf_counter()
    value = tried(function, lambda: vm[function](*arguments))
    return value, time.perf_counter() - start


def tried(function: str, call: Callable[[], Built]) -> Built:
    """Do what calls a function; raise RunError with what was said, or MemoryError."""
    try:
        return call()
    except (MemoryError, RunError):
        raise
    except Exception as failure:  # a kernel written in Python raises what it likes
        if "bad_alloc" in str(failure):
            raise MemoryError(str(failure)) from failure
        raise RunError(f"{function!r} failed as it ran: {said(failure)}") from failure


def arrays(value: object) -> list[Array]:
    """Return the tensors in a value, and its numbers, as arrays; raise RunError for others."""
    if isinstance(value, tvm.runtime.Tensor):
        return [value.numpy()]
    if isinstance(value, tuple | list | tvm.ir.Array):
        return [array for item in value for array in arrays(item)]
    array = np.asarray(value)
    if array.dtype.hasobject:  # what unpacks such a thing does what it likes
        raise RunError(f"an output is a {type(value).__name__}: give tensors and numbers only")
    return [array]


def joined(outputs: Sequence[Sequence[Array]]) -> tuple[Array, ...]:
    """Return an array for each output, the cases along its first axis; raise RunError."""
    columns = list(zip(*outputs, strict=True))
    for index, column in enumerate(columns):
        shapes = list(dict.fromkeys(array.shape for array in column))
        if len(shapes) > 1:
            raise RunError(
                f"output {index} has shape {shapes[0]} in one case and {shapes[1]} in another: "
                "give one case at a time"
            )
    return tuple(map(np.stack, columns))


def said(failure: Exception) -> str:
    """Return an exception's class and the last line of its words."""
    lines = [line for line in str(failure).splitlines() if line.strip()]
    return f"{type(failure).__name__}: {lines[-1].strip()}" if lines else type(failure).__name__

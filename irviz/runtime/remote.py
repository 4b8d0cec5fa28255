"""Run what is built here on another machine, through TVM's own RPC server."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import tvm
import tvm_ffi
from tvm import ir, relax

from irviz.ir.fit import Shape
from irviz.ir.identity import relax_functions
from irviz.model.trace import Array
from irviz.runtime.address import Remote, Where, architecture, built_for, here
from irviz.runtime.apart import apart, leaves
from irviz.runtime.callees import python_callees
from irviz.runtime.link import Link, linked
from irviz.runtime.machine import Kernel, RunError, building, on_device, said, tried
from irviz.worker.progress import tell

Result = TypeVar("Result")

_SHORT_SECONDS = 0.1
"""Of a call that takes less, a noticeable part may be the way there and back."""
_MOST_LOADED = 16


@dataclass(frozen=True, eq=False)
class RemoteMachine:
    """A module on the virtual machine of another process, which may be on another machine.

    `apart` are the functions to call for those that take tuples; `impure` those that may do
    something else at each call.
    """

    link: Link
    vm: relax.VirtualMachine
    apart: Mapping[str, str]
    impure: frozenset[str]

    def placed(self, arguments: Sequence[object]) -> Sequence[object]:
        """Send arguments there; what is in tuples goes one by one."""
        make = self.link.session.get_function("ffi.Shape")
        return self.link.asked(
            "sending the arguments",
            lambda: [
                make(*one.dims) if isinstance(one, Shape) else on_device(one, self.link.device)
                for argument in arguments
                for one in leaves(argument)
            ],
        )

    def call(self, function: str, placed: Sequence[object]) -> tuple[list[Array], float]:
        """Call a function; return its outputs and the seconds that took. Raise RunError.

        The seconds are the server's own, of another call, where the way there and back may
        matter; but not of an impure function, which is called once.
        """
        name = self.apart.get(function, function)

        def ask() -> tuple[list[Array], float]:
            self.vm._set_input(name, *placed)
            start = time.perf_counter()
            self.vm._invoke_stateful(name)
            taken = time.perf_counter() - start
            outputs = self._outputs(name)
            if taken < _SHORT_SECONDS and function not in self.impure:
                taken = self._timed(name, 1)
            return outputs, taken

        doing = f"running {function!r}"
        return tried(function, lambda: self.link.asked(doing, ask))

    def seconds(self, function: str, placed: Sequence[object], count: int) -> float:
        """Call a function so many times, and once before; return the server's seconds of a call."""
        name = self.apart.get(function, function)

        def ask() -> float:
            self.vm._set_input(name, *placed)
            return self._timed(name, count)

        return tried(function, lambda: self.link.asked(f"timing {function!r}", ask))

    def _timed(self, name: str, count: int) -> float:
        timer = self.vm.time_evaluator("invoke_stateful", self.link.device, number=count)
        return float(timer(name).mean)

    def _outputs(self, name: str, *path: int) -> list[Array]:
        many = self.vm._get_output_arity(name, *path)
        if many >= 0:
            return [one for index in range(many) for one in self._outputs(name, *path, index)]
        value = self.vm._get_output(name, *path)
        if isinstance(value, tvm.runtime.Tensor):
            return [value.numpy()]
        if isinstance(value, bool | int | float):
            return [np.asarray(value)]
        return self._sizes(value)

    def _sizes(self, value: object) -> list[Array]:
        """Return the sizes of a shape, each an output as it is on this machine."""
        size, item = map(
            self.link.session.get_function, ("rpc.testing.GetShapeSize", "rpc.testing.GetShapeElem")
        )
        try:
            return [np.asarray(item(value, index)) for index in range(size(value))]
        except tvm.error.RPCError as failure:
            raise RunError(
                f"an output is no array, number or shape, and cannot be fetched from "
                f"{self.link.remote}: run without device ({said(failure)})"
            ) from failure


@dataclass(frozen=True, eq=False)
class RemoteKernel:
    """A library of PrimFuncs in another process."""

    link: Link
    kernel: Kernel

    def placed(self, arguments: Sequence[object]) -> Sequence[object]:
        """Send arguments there."""
        return self.link.asked("sending the arguments", lambda: self.kernel.placed(arguments))

    def call(
        self, function: str, placed: Sequence[object], written: Sequence[int]
    ) -> tuple[list[Array], float]:
        """Call a function; return what it wrote and the seconds, with the way there and back."""
        return self.link.asked(
            f"running {function!r}", lambda: self.kernel.call(function, placed, written)
        )

    def seconds(self, function: str, placed: Sequence[object], count: int) -> float:
        """Call a function so many times, and once before; return the server's seconds of a call."""
        return self.link.asked(
            f"timing {function!r}", lambda: self.kernel.evaluated(function, placed, count)
        )


def remote_machine(where: Where, key: str, made: Callable[[], ir.IRModule]) -> RemoteMachine:
    """Return the machine of a module there, built and sent once, and kept as long as the link.

    Raises RunError when there is no server, or it cannot load the module.
    """

    def load(link: Link, mod: ir.IRModule) -> RemoteMachine:
        flat, names = apart(mod)
        impure = {name for name in relax_functions(mod) if not mod[name].is_pure}
        library = _sent(link, flat, where)
        vm = relax.VirtualMachine(library, link.device)
        return RemoteMachine(link, vm, names, frozenset(impure))

    return _loaded(where, key, made, load)


def remote_kernel(
    where: Where, key: str, function: str, made: Callable[[], ir.IRModule]
) -> RemoteKernel:
    """Return the library of a PrimFunc and those it calls there, as machines are made."""

    def load(link: Link, mod: ir.IRModule) -> RemoteKernel:
        return RemoteKernel(link, Kernel(_sent(link, mod, where, repr(function)), link.device))

    return _loaded(where, key, made, load)


def _loaded(
    where: Where,
    key: Hashable,
    made: Callable[[], ir.IRModule],
    load: Callable[[Link, ir.IRModule], Result],
) -> Result:
    assert where.remote is not None, "this machine needs no connection"
    link = linked(where.remote, where.seconds)
    full = (key, where.target, load.__qualname__)
    if full not in link.loaded:
        mod = made()
        link.asked("looking for functions", lambda: _check_callees(link, mod))
        link.loaded[full] = load(link, mod)
    link.loaded.move_to_end(full)
    while len(link.loaded) > _MOST_LOADED:
        link.loaded.popitem(last=False)
    found: Result = link.loaded[full]  # type: ignore[assignment] # it was put there by this key
    return found


def _check_callees(link: Link, mod: ir.IRModule) -> None:
    """Raise RunError for a function that is called by name and is not registered there."""
    for name in dict.fromkeys([*python_callees(mod), *_external(mod)]):
        if not link.has(name):
            raise RunError(
                f"{name!r} is not registered at {link.remote}, and a function in Python does not "
                "travel there: let the server register it (server_init_callback of "
                "tvm.rpc.Server), or swap it for a PrimFunc"
            )


def _external(mod: ir.IRModule) -> list[str]:
    """Return the functions that Relax calls by name and that the module does not have."""
    names: dict[str, None] = {}
    for name in relax_functions(mod):
        tvm_ffi.structural_walk(
            mod[name],
            (relax.ExternFunc, lambda one: names.setdefault(str(one.global_symbol))),
        )
    own = {gvar.name_hint for gvar in mod.functions}
    return [name for name in names if name not in own]


def _sent(
    link: Link, mod: ir.IRModule, where: Where, what: str = "the module"
) -> tvm.runtime.Module:
    """Build a module and load it there; no file is left behind, here or there."""
    target = built_for(where.target)
    is_linked = architecture(where.target) == here() and _has_compiler()
    name = f"irviz{next(link.files)}.{'so' if is_linked else 'tar'}"
    with tempfile.TemporaryDirectory(prefix="irviz-") as folder:
        path = Path(folder, name)
        tell("building")
        building(lambda: tvm.compile(mod, target=target).export_library(str(path)), what)
        library = bytearray(path.read_bytes())
    tell(f"uploading {len(library) / 1e6:.2g} MB")
    link.asked("uploading", lambda: link.session.upload(library, name))
    tell("loading")
    try:
        return link.asked("loading", lambda: link.session.load_module(name))
    except RunError:
        raise
    except Exception as failure:  # TVM raises what its C++ side threw, of any class
        raise RunError(_unloaded(link.remote, where, is_linked) + f" ({said(failure)})") from None
    finally:
        _remove(link, [name] if is_linked else [name, f"{name}.so"])


def _unloaded(remote: Remote, where: Where, is_linked: bool) -> str:
    if is_linked:
        return (
            f"{remote} could not load the module: it may be no {architecture(where.target)} "
            "machine (give its target, such as 'llvm -mtriple=aarch64-linux-gnu'), or run another "
            f"version of TVM than {tvm.__version__}"
        )
    here_ = "" if _has_compiler() else " (or here, for a machine of the same kind)"
    return (
        f"{remote} could not link the module, which was built for {architecture(where.target)}: "
        f"it needs a C++ compiler{here_}, and to be such a machine"
    )


def _has_compiler() -> bool:
    return any(map(shutil.which, ("g++", "gcc", "clang++", "clang", "c++", "cc")))


def _remove(link: Link, names: Sequence[str]) -> None:
    """Remove files there, where there still is a server."""
    if link.is_known:
        for name in names:
            link.asked("removing the file", lambda name=name: link.session.remove(name))  # type: ignore[misc]

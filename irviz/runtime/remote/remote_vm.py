"""Run modules that are built here on another machine, through TVM's RPC server."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import tvm
import tvm_ffi
from tvm import ir, relax

from irviz.errors import RunError
from irviz.ir.module_functions import relax_functions
from irviz.ir.shapes.check_arguments import ShapeValue
from irviz.model.runs.trace import Array
from irviz.runtime.local.python_callees import python_callees
from irviz.runtime.local.run_errors import error_summary, run_errors
from irviz.runtime.local.vm import (
    LocalModule,
    remembered,
    running,
    to_device,
    tvm_target,
)
from irviz.runtime.remote.connection import Connection, connect
from irviz.runtime.remote.flatten_tuples import flatten_tuple_params, tuple_leaves
from irviz.runtime.run_target import (
    RemoteAddress,
    RunTarget,
    architecture,
)
from irviz.worker.progress import report_progress

_SHORT_SECONDS = 0.1
"""In shorter calls the transfer may be a noticeable part."""


@dataclass(frozen=True, eq=False)
class RemoteVM:
    """A module on the virtual machine of an RPC server.

    `flattened` maps a function that takes tuples to its version that takes their fields one by
    one; `impure` are the functions that may behave differently at each call.
    """

    link: Connection
    vm: relax.VirtualMachine
    flattened: Mapping[str, str]
    impure: frozenset[str]

    def copy_arguments(self, arguments: Sequence[object]) -> Sequence[object]:
        """Send the arguments to the server, with tuples flattened."""
        make = self.link.session.get_function("ffi.Shape")
        return self.link.request(
            "sending the arguments",
            lambda: [
                make(*one.dims) if isinstance(one, ShapeValue) else to_device(one, self.link.device)
                for argument in arguments
                for one in tuple_leaves(argument)
            ],
        )

    def call(self, function: str, placed: Sequence[object]) -> tuple[list[Array], float]:
        """Call a function; return its outputs and the seconds. Raise RunError.

        The seconds of a short call are the server's own, of a second call; an impure function
        is called only once.
        """
        name = self.flattened.get(function, function)

        def request() -> tuple[list[Array], float]:
            self.vm._set_input(name, *placed)
            start = time.perf_counter()
            self.vm._invoke_stateful(name)
            taken = time.perf_counter() - start
            outputs = self._outputs(name)
            if taken < _SHORT_SECONDS and function not in self.impure:
                taken = self._timed(name, 1)
            return outputs, taken

        with running(function):
            return self.link.request(f"running {function!r}", request)

    def seconds(self, function: str, placed: Sequence[object], count: int) -> float:
        """Call a function `count` times after a warm-up; return the server's seconds per call."""
        name = self.flattened.get(function, function)

        def request() -> float:
            self.vm._set_input(name, *placed)
            return self._timed(name, count)

        with running(function):
            return self.link.request(f"timing {function!r}", request)

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
        """Return the sizes of a shape, each as an output, as on this machine."""
        size, item = map(
            self.link.session.get_function, ("rpc.testing.GetShapeSize", "rpc.testing.GetShapeElem")
        )
        try:
            return [np.asarray(item(value, index)) for index in range(size(value))]
        except tvm.error.RPCError as failure:
            raise RunError(
                f"an output is not an array, number or shape, and cannot be fetched from "
                f"{self.link.remote}: run without device ({error_summary(failure)})"
            ) from failure


@dataclass(frozen=True, eq=False)
class RemoteLibrary:
    """A library of PrimFuncs on an RPC server.

    Times include the transfer, except those of `seconds`, which are the server's.
    """

    link: Connection
    library: LocalModule

    def copy_arguments(self, arguments: Sequence[object]) -> Sequence[object]:
        """Copy arguments to the machine that runs it."""
        return self.link.request(
            "sending the arguments", lambda: self.library.copy_arguments(arguments)
        )

    def call(self, function: str, placed: Sequence[object]) -> tuple[list[Array], float]:
        """Call a function; return its outputs and the seconds. Raise RunError."""
        return self.link.request(
            f"running {function!r}", lambda: self.library.call(function, placed)
        )

    def seconds(self, function: str, placed: Sequence[object], count: int) -> float:
        """Call a function `count` times; return the seconds of one call. Raise RunError."""
        return self.link.request(
            f"timing {function!r}", lambda: self.library.evaluated(function, placed, count)
        )


BuiltModule: TypeAlias = LocalModule | RemoteVM | RemoteLibrary
"""A built module whose functions can be called, on any machine."""


def remote_module(
    where: RunTarget,
    key: str,
    module: Callable[[], ir.IRModule],
    written: Sequence[int] | None,
    what: str,
) -> BuiltModule:
    """Return a module on a server, kept as long as the connection; `what` names it in errors.

    `written` are the arguments that a PrimFunc writes, None for Relax functions. Raises RunError
    when there is no server, or it cannot load the module.
    """
    assert where.remote is not None, "the device is another machine"
    link = connect(where.remote, where.seconds)

    def load() -> BuiltModule:
        mod = module()
        link.request("looking for functions", lambda: _check_callees(link, mod))
        if written is not None:
            library = _load(link, mod, where, what)
            return RemoteLibrary(link, LocalModule(lambda: library, link.device, written))
        flat, names = flatten_tuple_params(mod)
        impure = {name for name in relax_functions(mod) if not mod[name].is_pure}
        vm = relax.VirtualMachine(_load(link, flat, where, what), link.device)
        return RemoteVM(link, vm, names, frozenset(impure))

    return remembered(link.loaded, (key, where.target, where.recipe, written), load)


def _check_callees(link: Connection, mod: ir.IRModule) -> None:
    """Raise RunError for a function that is called by name and not registered on the server."""
    for name in dict.fromkeys([*python_callees(mod), *_external(mod)]):
        if not link.has(name):
            raise RunError(
                f"{name!r} is not registered at {link.remote}, and Python functions cannot be "
                "sent there: let the server register it (server_init_callback of "
                "tvm.rpc.Server), or swap it for a PrimFunc"
            )


def _external(mod: ir.IRModule) -> list[str]:
    """Return the names that Relax functions call and that the module does not define."""
    names: dict[str, None] = {}
    for name in relax_functions(mod):
        tvm_ffi.structural_walk(
            mod[name],
            (relax.ExternFunc, lambda one: names.setdefault(str(one.global_symbol))),
        )
    own = {gvar.name_hint for gvar in mod.functions}
    return [name for name in names if name not in own]


def _load(link: Connection, mod: ir.IRModule, where: RunTarget, what: str) -> tvm.runtime.Module:
    """Build a module and load it on the server; no file is left behind on either machine."""
    target = tvm_target(where.target)
    is_linked = architecture(where.target) == architecture() and _has_compiler()
    name = f"irviz{next(link.files)}.{'so' if is_linked else 'tar'}"
    with tempfile.TemporaryDirectory(prefix="irviz-") as folder:
        path = Path(folder, name)
        report_progress("building")
        with run_errors(f"{what} could not be built"):
            chosen = where.recipe.optimised(mod, target) if relax_functions(mod) else mod
            tvm.compile(chosen, target=target).export_library(str(path))
        library = bytearray(path.read_bytes())
    report_progress(f"uploading {len(library) / 1e6:.2g} MB")
    link.request("uploading", lambda: link.session.upload(library, name))
    report_progress("loading")
    try:
        return link.request("loading", lambda: link.session.load_module(name))
    except RunError:
        raise
    except Exception as failure:  # TVM raises what its C++ side threw, of any class
        raise RunError(
            _load_error(link.remote, where, is_linked) + f" ({error_summary(failure)})"
        ) from None
    finally:
        _remove(link, [name] if is_linked else [name, f"{name}.so"])


def _load_error(remote: RemoteAddress, where: RunTarget, is_linked: bool) -> str:
    if is_linked:
        return (
            f"{remote} could not load the module: it may not be a {architecture(where.target)} "
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


def _remove(link: Connection, names: Sequence[str]) -> None:
    """Remove files there, where there still is a server."""
    if link.is_known:
        for name in names:
            link.request("removing the file", lambda name=name: link.session.remove(name))  # type: ignore[misc]

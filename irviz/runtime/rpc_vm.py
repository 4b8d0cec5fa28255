"""Run modules that are built here on another machine, through TVM's RPC server."""

from __future__ import annotations

import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import tvm
from tvm import ir, relax, rpc
from tvm.support import cc

from irviz.errors import RunError, error_summary, run_errors
from irviz.ir.module_functions import relax_functions
from irviz.ir.parameter_values import ShapeValue
from irviz.ir.tir_statements import parts_of
from irviz.model.runs.execution_trace import Array
from irviz.runtime.build_module import optimised, tvm_target
from irviz.runtime.local_vm import Called, LocalModule, remembered, running, to_device
from irviz.runtime.module_serialization import python_callees
from irviz.runtime.run_config import RemoteAddress, RunConfig, architecture
from irviz.worker.responses import report_progress

_SHORT_SECONDS = 0.1
"""In shorter calls the transfer may be a noticeable part."""


@dataclass(frozen=True, eq=False)
class RemoteVM:
    """The Relax functions of a module on the virtual machine of an RPC server.

    `flattened` maps a function that takes tuples to its version that takes their fields one by
    one; `impure` are the functions that may behave differently at each call.
    """

    link: Connection
    vm: relax.VirtualMachine
    flattened: Mapping[str, str]
    impure: frozenset[str]

    def copy_arguments(self, arguments: Sequence[object]) -> Sequence[object]:
        """Copy the arguments to the server, with tuples flattened."""
        make = self.link.session.get_function("ffi.Shape")
        return [
            make(*one.dims) if isinstance(one, ShapeValue) else to_device(one, self.link.device)
            for argument in arguments
            for one in tuple_leaves(argument)
        ]

    def call(self, function: str, placed: Sequence[object]) -> Called:
        """Call a function; return its outputs and the seconds. Raise RunError.

        The seconds of a short call are the server's own, of a second call; an impure function
        is called only once.
        """
        name = self.flattened.get(function, function)
        with running(function):
            self.vm._set_input(name, *placed)
            start = time.perf_counter()
            self.vm._invoke_stateful(name)
            taken = time.perf_counter() - start
            outputs = self._outputs(name)
            if taken < _SHORT_SECONDS and function not in self.impure:
                taken = self._timed(name, 1)
            return Called(outputs, taken)

    def evaluated(self, function: str, placed: Sequence[object], count: int) -> float:
        """Call a function `count` times after a warm-up; return the server's seconds per call."""
        name = self.flattened.get(function, function)
        with running(function):
            self.vm._set_input(name, *placed)
            return self._timed(name, count)

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
class RemoteModule:
    """Relax functions or a library of PrimFuncs on an RPC server, which are called by requests.

    Times of PrimFuncs include the transfer, except those of `seconds`, which are the server's.
    """

    link: Connection
    module: RemoteVM | LocalModule

    def copy_arguments(self, arguments: Sequence[object]) -> Sequence[object]:
        """Copy arguments to the machine that runs it. Raise RunError."""
        return self.link.request(
            "sending the arguments", lambda: self.module.copy_arguments(arguments)
        )

    def call(self, function: str, placed: Sequence[object]) -> Called:
        """Call a function; return its outputs and the seconds. Raise RunError."""
        return self.link.request(
            f"running {function!r}", lambda: self.module.call(function, placed)
        )

    def seconds(self, function: str, placed: Sequence[object], count: int) -> float:
        """Call a function `count` times; return the seconds of one call. Raise RunError."""
        return self.link.request(
            f"timing {function!r}", lambda: self.module.evaluated(function, placed, count)
        )


BuiltModule: TypeAlias = LocalModule | RemoteModule
"""A built module whose functions can be called, on any machine."""


def remote_module(
    config: RunConfig,
    key: str,
    module: Callable[[], ir.IRModule],
    written: Sequence[int] | None,
    what: str,
) -> BuiltModule:
    """Return a module on a server, kept as long as the connection; `what` names it in errors.

    `written` are the arguments that a PrimFunc writes, None for Relax functions. Raises RunError
    when there is no server, or it cannot load the module.
    """
    assert config.remote is not None, "the device is another machine"
    link = connect(config.remote, config.seconds if config.isolate else None)

    def load() -> BuiltModule:
        mod = module()
        link.request("looking for functions", lambda: _check_callees(link, mod))
        if written is not None:
            library = _load(link, mod, config, what)
            return RemoteModule(link, LocalModule(lambda: library, link.device, written))
        flat, names = flatten_tuple_params(mod)
        impure = {name for name in relax_functions(mod) if not mod[name].is_pure}
        vm = relax.VirtualMachine(_load(link, flat, config, what), link.device)
        return RemoteModule(link, RemoteVM(link, vm, names, frozenset(impure)))

    return remembered(link.loaded, (key, config.built_as, written), load)


def _check_callees(link: Connection, mod: ir.IRModule) -> None:
    """Raise RunError for a function that is called by name and not registered on the server."""
    functions = relax_functions(mod).values()
    externs = (part for one in functions for part in parts_of(one, relax.ExternFunc))
    own = {gvar.name_hint for gvar in mod.functions}
    called = [name for one in externs if (name := str(one.global_symbol)) not in own]
    for name in dict.fromkeys([*python_callees(mod), *called]):
        if not link.has(name):
            raise RunError(
                f"{name!r} is not registered at {link.remote}, and Python functions cannot be "
                "sent there: let the server register it (server_init_callback of "
                "tvm.rpc.Server), or swap it for a PrimFunc"
            )


def _load(link: Connection, mod: ir.IRModule, config: RunConfig, what: str) -> tvm.runtime.Module:
    """Build a module and load it on the server; no file is left behind on either machine."""
    target, kind = tvm_target(config.target_json), architecture(config.target_json)
    is_linked = kind == architecture() and cc.get_cc() is not None
    name = f"irviz{next(link.files)}.{'so' if is_linked else 'tar'}"
    with tempfile.TemporaryDirectory(prefix="irviz-") as folder:
        path = Path(folder, name)
        report_progress("building")
        with run_errors(f"{what} could not be built"):
            if relax_functions(mod):
                mod = optimised(mod, target, config.build, config.database)
            tvm.compile(mod, target=target).export_library(str(path))
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
            _load_error(link.remote, kind, is_linked) + f" ({error_summary(failure)})"
        ) from None
    finally:
        for file in [name] if is_linked else [name, f"{name}.so"]:
            if link.is_known:  # there still is a server
                link.request("removing the file", partial(link.session.remove, file))


def _load_error(remote: RemoteAddress, kind: str, is_linked: bool) -> str:
    if is_linked:
        return (
            f"{remote} could not load the module: it may not be a {kind} machine (give its "
            "target, such as 'llvm -mtriple=aarch64-linux-gnu'), or run another version of TVM "
            f"than {tvm.__version__}"
        )
    here_ = "" if cc.get_cc() else " (or here, for a machine of the same kind)"
    return (
        f"{remote} could not link the module, which was built for {kind}: "
        f"it needs a C++ compiler{here_}, and to be such a machine"
    )


# --- Connections to TVM's RPC servers: opened, kept, and opened again when they are lost ---------


Result = TypeVar("Result")

CONNECT_SECONDS = 10.0
"""The time limit for an answer of a server."""
_LIFE_SECONDS = 60.0
"""How long a server keeps an idle session before it serves others."""


@dataclass(eq=False)
class Connection:
    """A connection to a server, which the server ends at `until`, and what was loaded there."""

    remote: RemoteAddress
    session: rpc.RPCSession
    until: float
    loaded: OrderedDict[Hashable, object] = field(default_factory=OrderedDict)
    waiting: Future[bool] | None = None
    files: count[int] = field(default_factory=count)

    @property
    def device(self) -> tvm.runtime.Device:
        """The server's CPU."""
        return self.session.cpu()

    @property
    def is_known(self) -> bool:
        """Whether this connection is the one to use for its server."""
        return connections.get(self.remote) is self

    def has(self, name: str) -> bool:
        """Tell whether the server has a function of this name."""
        try:
            return self.session.get_function(name) is not None
        except AttributeError:
            return False

    def answers(self) -> bool:
        """Tell whether the server still answers."""
        answer = _begun(lambda: self.has("ffi.Shape"))
        if not answer.done():
            self.waiting = answer
            return False
        return answer.exception() is None and answer.result()  # any error means that there is none

    def close(self) -> None:
        """End the connection and release what was loaded, which keeps it open.

        Releasing sends requests, so for a server that hangs it waits until the server answers.
        """
        if self.is_known:
            del connections[self.remote]
        if self.waiting is not None and not self.waiting.done():
            _hanging.append(self)
        else:
            self.loaded.clear()

    def request(self, doing: str, send: Callable[[], Result]) -> Result:
        """Send a request; raise RunError when the connection is lost by that."""
        try:
            return send()
        except Exception as failure:
            if self.answers():
                raise
            self.close()
            raise RunError(
                f"the connection to {self.remote} was lost while {doing}: the server ended, or its "
                "process crashed, as by a function that writes outside of its buffers. Start it "
                "again if it is not there, and run again"
            ) from failure


connections: dict[RemoteAddress, Connection] = {}
"""A server serves others when its connection and all that was loaded there are gone."""
_hanging: list[Connection] = []
"""Connections to servers that hang; releasing them would block all threads until they answer."""


def connect(remote: RemoteAddress, seconds: float | None) -> Connection:
    """Return an open connection or a new one, which lasts as long as the work may take.

    The server gets a session timeout, because it serves one session at a time, and would be
    blocked forever by a function that does not end.
    """
    known = connections.get(remote)
    needed = time.monotonic() + (seconds or 0.0)
    if known is not None and needed < known.until and known.answers():
        return known
    if known is not None:
        known.close()
        del known  # a server serves the next session when the last reference is gone
    _close_hanging()
    report_progress(f"connecting to {remote}")
    life = 0.0 if seconds is None else seconds + _LIFE_SECONDS
    until = time.monotonic() + life if life else float("inf")
    connections[remote] = Connection(remote, _open_session(remote, life), until)
    return connections[remote]


def _close_hanging() -> None:
    """Close the connections to servers that have answered meanwhile, and forget them on return."""
    waiting = _hanging[:]
    _hanging.clear()
    for one in waiting:
        one.close()


def _open_session(remote: RemoteAddress, life: float) -> rpc.RPCSession:
    address = (remote.host, remote.port, remote.key)
    answer = _begun(lambda: rpc.connect(*address, session_timeout=life))
    if not answer.done():
        raise RunError(
            f"{remote} does not answer within {CONNECT_SECONDS:g} s: it may serve another session, "
            "of which a server has one at a time, or have ended after one that crashed (start it "
            "again), or not be a server of TVM"
        )
    try:
        return answer.result()
    except Exception as failure:  # TVM raises what its C++ side threw, of any class
        raise RunError(
            _connection_error(remote, str(failure)) + f" ({error_summary(failure)})"
        ) from None


def _connection_error(remote: RemoteAddress, message: str) -> str:
    command = f"python -m tvm.exec.rpc_server --host 0.0.0.0 --port {remote.port}"
    start = f"start one there with {command}"
    if "cannot find server that matches key" in message:
        given = f"the key {remote.key!r}" if remote.key else "no key"
        return (
            f"the server at {remote.host}:{remote.port} has another key than was given, which is "
            f"{given}: give the key that it was started with, as host:port/key"
        )
    if "version mismatch" in message:
        return (
            f"the server at {remote} runs another version of TVM, and here is {tvm.__version__}: "
            "install the same there"
        )
    if "cannot obtain address" in message:
        return f"no machine is known as {remote.host!r}: give its address, such as 192.168.0.7"
    if "Connect to" in message:
        return f"there is no server at {remote}: {start}"
    return f"what answers at {remote} is not a server of TVM: {start}"


def _begun(send: Callable[[], Result]) -> Future[Result]:
    """Call a function in a thread, as a wait in C++ cannot be interrupted; it may go on after that.

    Waits for the answer, but no longer than the time limit.
    """
    answer: Future[Result] = Future()

    def work() -> None:
        try:
            answer.set_result(send())
        except Exception as failure:
            answer.set_exception(failure)

    threading.Thread(target=work, daemon=True).start()
    wait([answer], CONNECT_SECONDS)
    return answer


# --- Versions of functions that take the fields of tuples: tuples cannot be sent over RPC --------


def flatten_tuple_params(mod: ir.IRModule) -> tuple[ir.IRModule, Mapping[str, str]]:
    """Add such a version for each function that takes tuples; return their names by its name.

    A version builds the tuples and calls the function.
    """
    added: dict[ir.GlobalVar, relax.Function] = {}
    names: dict[str, str] = {}
    taken = {gvar.name_hint for gvar in mod.functions}
    for name in relax_functions(mod):
        gvar = mod.get_global_var(name)
        function = mod[gvar]
        if any(isinstance(param.ty, ir.TupleType) for param in function.params):
            names[name] = f"irviz_flat_{name}"
            while names[name] in taken:
                names[name] += "_"
            taken.add(names[name])
            added[ir.GlobalVar(names[name])] = _flattened(mod, gvar, names[name])
    if not added:
        return mod, names
    return ir.IRModule({**mod.functions, **added}, attrs=mod.attrs), names


def tuple_leaves(argument: object) -> list[Any]:
    """Return the leaves of nested tuples."""
    if isinstance(argument, tuple):
        return [leaf for item in argument for leaf in tuple_leaves(item)]
    return [argument]


def _flattened(mod: ir.IRModule, gvar: ir.GlobalVar, name: str) -> relax.Function:
    copied = relax.utils.copy_with_new_vars(mod[gvar])  # it needs symbolic sizes of its own
    params: list[relax.Var] = []

    def argument(type_: ir.Type, hint: str) -> ir.Expr:
        if isinstance(type_, ir.TupleType):
            fields = enumerate(type_.fields)
            return relax.Tuple([argument(field, f"{hint}_{index}") for index, field in fields])
        params.append(relax.Var(hint, type_))
        return params[-1]

    arguments: list[ir.Expr] = []
    for param in copied.params:
        if isinstance(param.ty, ir.TupleType):
            arguments.append(argument(param.ty, param.name))
        else:  # the types of others may refer to this variable
            params.append(param)
            arguments.append(param)
    builder = relax.BlockBuilder(mod)
    with builder.function(name, params, pure=bool(copied.is_pure)):
        builder.emit_func_output(builder.emit(ir.Call(gvar, arguments)))
    return builder.get()[name]

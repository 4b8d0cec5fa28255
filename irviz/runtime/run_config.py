"""Where functions run, and the limits of a run with their defaults."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from irviz.errors import InputError, RunError, run_errors
from irviz.limits import RUN_SECONDS
from irviz.runtime.build_module import BUILDS, PLAIN, tvm_target
from irviz.worker.sandbox import VARIABLE, can_confine

_LEAST_MEMORY = 32 * 2**20
"""With less memory LLVM may hang instead of raising an error."""


@dataclass(frozen=True)
class RunConfig:
    """Where functions run, and the limits of a run.

    Attributes:
        isolate: Whether to run in a worker process. If not, functions run in this process, without
            limits, and a fault crashes it.
        seconds: The time limit in seconds.
        memory: The memory limit in bytes; None for four fifths of the free memory.
        device: "cpu" or "" for this machine; "host:port" or "host:port/key" for a machine with
            TVM's RPC server.
        target: The target of the device, as JSON or as in "llvm -mtriple=aarch64-linux-gnu".
        build: How Relax functions are optimised before they are built: "plain" not at all,
            "default" with TVM's default pipeline for CPUs, "dlight" with DLight's CPU schedules as
            well, "tuned" with the schedules of a database.
        database: The folder of that database, as written by TVM's tuning.
        fill: A byte that fills memory before a run of Relax functions writes to it, so that reading
            unwritten memory reads the same each time; None leaves it as it is. This needs glibc.
        confine: Whether functions may only compute: without files, network and other processes.
            This needs a process of its own, and what `irviz.worker.sandbox` says.
    """

    isolate: bool = True
    seconds: float = RUN_SECONDS
    memory: int | None = None
    device: str = ""
    target: str = ""
    build: str = PLAIN
    database: str = ""
    fill: int | None = None
    confine: bool = False

    @property
    def remote(self) -> RemoteAddress | None:
        """The other machine, None for this one; raises RunError for an invalid device."""
        return parse_device(self.device)

    @property
    def target_json(self) -> str:
        """The target as JSON, which TVM needs, or "llvm" for none; raises RunError."""
        return _json(self.target)

    @property
    def built_as(self) -> tuple[object, ...]:
        """What a built module depends on, beside the module itself."""
        return self.target_json, self.build, self.database, self.fill is None, self.confine

    @property
    def clock(self) -> str:
        """The machine whose clock measures: "this machine" or an address."""
        return str(self.remote or "this machine")


def check_place(config: RunConfig) -> None:
    """Raise RunError or InputError for an invalid machine, target or build."""
    if config.build not in BUILDS:
        known = ", ".join(map(repr, BUILDS))
        raise InputError(f"there is no build {config.build!r}: choose one of {known}")
    if bool(config.database) != (config.build == "tuned"):
        raise InputError(
            f"build={config.build!r} with database={config.database!r}: give the folder of a "
            "database with build='tuned', and no other"
        )
    remote, target = config.remote, config.target_json
    with run_errors(f"{config.target!r} is not a target"):
        kind = architecture(target)
    if remote is None and kind != architecture():
        raise RunError(
            f"{config.target!r} is for {kind}, and this machine is {architecture()}: give the "
            "machine that it is for as device, or no target"
        )


def check_limits(config: RunConfig) -> None:
    """Raise InputError for impossible limits."""
    if config.memory is not None and config.memory < _LEAST_MEMORY:
        raise InputError(
            f"memory={config.memory!r} is too little to build anything: give at least "
            f"{_LEAST_MEMORY:,}, in bytes, or None for most of what is free"
        )
    if config.confine and not can_confine():
        raise InputError(
            "confine=True needs Linux with Landlock and seccomp, on x86-64 or aarch64, and "
            f"{VARIABLE} not 0: run it elsewhere, or with confine=False if you trust it"
        )
    if not config.seconds > 0:
        raise InputError(f"seconds={config.seconds!r} is not a time limit: give more than 0")


# --- Parse the device where functions run, and the target to build for it ------------------------


LOCAL = ("", "cpu")
"""The names of this machine's CPU."""
_FORM = re.compile(
    r"(?P<host>\[[^\[\]]+\]|[^\[\]\s:/]+):(?P<port>[0-9]+)(?:/(?P<key>\S*))?", re.ASCII
)
_MOST_PORT = 2**16 - 1
_LISTS = ("mattr", "libs")


@dataclass(frozen=True)
class RemoteAddress:
    """A machine that runs `python -m tvm.exec.rpc_server`, and the key of that server."""

    host: str
    port: int
    key: str = ""

    def __str__(self) -> str:
        """Return the address as text."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}" + (f"/{self.key}" if self.key else "")


def parse_device(device: str) -> RemoteAddress | None:
    """Parse a device; return None for this machine, and raise RunError if it is invalid.

    "" and "cpu" are this machine, "host:port" or "host:port/key" is another one. The host is a
    name or an address, an IPv6 address in brackets.
    """
    if device.strip() in LOCAL:
        return None
    found = _FORM.fullmatch(device.strip())
    if found is None:
        raise RunError(
            f"{device!r} is not a device: give 'cpu' for this machine, or the address of an RPC "
            "server as host:port or host:port/key, such as '192.168.0.7:9090' or '[::1]:9090'"
        )
    port = int(found["port"])
    if not 0 < port <= _MOST_PORT:
        raise RunError(f"{device!r} has port {port}: give one of 1 to {_MOST_PORT}")
    return RemoteAddress(found["host"].strip("[]"), port, found["key"] or "")


def architecture(target: str = "llvm") -> str:
    """Return the architecture of a target, such as "x86_64"; of this machine by default."""
    triple: str = tvm_target(target).attrs.get("mtriple") or tvm_target("llvm").attrs["mtriple"]
    return triple.partition("-")[0]


def _json(target: str) -> str:
    """Return a target as JSON, which TVM needs, or "llvm" for none."""
    words = target.split()
    if not words:
        return "llvm"
    if words[0].startswith("{"):
        try:
            options = json.loads(target)
        except ValueError as failure:
            raise RunError(f"{target!r} is neither a target nor JSON: {failure}") from None
    else:
        options = {"kind": words[0]}
        for word in words[1:]:
            name, equals, value = word.lstrip("-").partition("=")
            if not (word.startswith("-") and equals and value):
                raise RunError(
                    f"{word!r} in the target {target!r} is not an option: write them as in 'llvm "
                    "-mtriple=aarch64-linux-gnu -mcpu=cortex-a72'"
                )
            options[name] = value.split(",") if name in _LISTS else value
    if not isinstance(options, dict) or options.get("kind") != "llvm":
        raise RunError(
            f"{target!r} is not a target for a CPU: give one of kind llvm, such as 'llvm "
            "-mtriple=aarch64-linux-gnu'"
        )
    return json.dumps(options, sort_keys=True)

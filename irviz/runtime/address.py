"""Where a stage runs, as a reader writes it: a device, and the target that is built for it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import tvm

from irviz.runtime.machine import RunError, said

LOCAL = ("", "cpu")
"""The words for this machine's CPU."""
_FORM = re.compile(
    r"(?P<host>\[[^\[\]]+\]|[^\[\]\s:/]+):(?P<port>[0-9]+)(?:/(?P<key>\S*))?", re.ASCII
)
_MOST_PORT = 2**16 - 1
_LISTS = ("mattr", "libs")


@dataclass(frozen=True)
class Remote:
    """A machine that runs `python -m tvm.exec.rpc_server`, and the key that its server has."""

    host: str
    port: int
    key: str = ""

    def __str__(self) -> str:
        """Return the address as it is written."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}" + (f"/{self.key}" if self.key else "")


@dataclass(frozen=True)
class Where:
    """A machine, this one when it is no other, and the target as JSON.

    `seconds` is how long the work may take; None is for no limit.
    """

    remote: Remote | None = None
    target: str = "llvm"
    seconds: float | None = None


HERE = Where()
"""This machine, without a limit."""


def remote(device: str) -> Remote | None:
    """Return the machine that a device stands for, None for this one; raise RunError.

    "" and "cpu" are this machine's CPU, "host:port" or "host:port/key" is another one's. A host
    is a name or an address, an IPv6 address in brackets.
    """
    if device.strip() in LOCAL:
        return None
    found = _FORM.fullmatch(device.strip())
    if found is None:
        raise RunError(
            f"{device!r} is no device: give 'cpu' for this machine, or the address of a server of "
            "TVM's as host:port or host:port/key, such as '192.168.0.7:9090' or '[::1]:9090'"
        )
    port = int(found["port"])
    if not 0 < port <= _MOST_PORT:
        raise RunError(f"{device!r} has port {port}: give one of 1 to {_MOST_PORT}")
    return Remote(found["host"].strip("[]"), port, found["key"] or "")


def where(device: str = "", target: str = "", seconds: float | None = None) -> Where:
    """Return where a stage runs and what is built for it; raise RunError.

    The target is as TVM writes it, in JSON, or "llvm -mtriple=aarch64-linux-gnu -mcpu=…".
    """
    away, written = remote(device), _json(target)
    try:
        chosen = tvm.target.Target(json.loads(written)) if target.strip() else None
    except Exception as failure:  # TVM raises what its C++ side threw, of any class
        raise RunError(f"{target!r} is no target: {said(failure)}") from None
    if chosen is not None and away is None and _architecture(chosen) != here():
        raise RunError(
            f"{target!r} is for {_architecture(chosen)}, and this machine is {here()}: give the "
            "machine that it is for as device, or no target"
        )
    return Where(away, written, seconds)


def here() -> str:
    """Return this machine's architecture, such as "x86_64"."""
    return _architecture(tvm.target.Target("llvm"))


def architecture(target: str) -> str:
    """Return the architecture that a target of `Where` is for."""
    return _architecture(built_for(target))


def built_for(target: str) -> tvm.target.Target:
    """Return the target of a `Where` as TVM has it."""
    return tvm.target.Target(json.loads(target) if target.startswith("{") else target)


def _architecture(target: tvm.target.Target) -> str:
    triple: str = target.attrs.get("mtriple") or tvm.target.Target("llvm").attrs["mtriple"]
    return triple.partition("-")[0]


def _json(target: str) -> str:
    """Return a target as JSON, which TVM wants, when it is not."""
    words = target.split()
    if not words:
        return "llvm"
    if words[0].startswith("{"):
        try:
            options = json.loads(target)
        except ValueError as failure:
            raise RunError(f"{target!r} is no target, nor JSON: {failure}") from None
    else:
        options = {"kind": words[0]}
        for word in words[1:]:
            name, equals, value = word.lstrip("-").partition("=")
            if not (word.startswith("-") and equals and value):
                raise RunError(
                    f"{word!r} in the target {target!r} is no option: write them as in 'llvm "
                    "-mtriple=aarch64-linux-gnu -mcpu=cortex-a72'"
                )
            options[name] = value.split(",") if name in _LISTS else value
    if not isinstance(options, dict) or options.get("kind") != "llvm":
        raise RunError(
            f"{target!r} is no target for a CPU: give one of kind llvm, such as 'llvm "
            "-mtriple=aarch64-linux-gnu'"
        )
    return json.dumps(options, sort_keys=True)

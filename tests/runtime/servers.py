"""TVM's RPC servers for tests, each a process of its own, and what only looks like one."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

_DOCUMENTED = ["-m", "tvm.exec.rpc_server", "--host", "127.0.0.1"]
_QUICK = """
import sys
sys.modules["torch"] = None
import numpy as np
import tvm
from tvm.rpc.server import PopenRPCServerState

@tvm.register_global_func("test.at_the_server")
def twice(x, out):
    out.copyfrom(x.numpy() * 2)

PopenRPCServerState("127.0.0.1", int(sys.argv[1]), int(sys.argv[1]) + 1, key=sys.argv[2])
"""
_START_SECONDS = 60


@dataclass(eq=False)
class Server:
    """A server at a port, which can be ended and started again; its files are in a folder."""

    port: int
    folder: Path
    key: str = ""
    documented: bool = False
    process: subprocess.Popen | None = None

    @property
    def device(self):
        return f"127.0.0.1:{self.port}" + (f"/{self.key}" if self.key else "")

    def start(self):
        ports = ["--port", str(self.port), "--port-end", str(self.port + 1)]
        if self.documented:
            arguments = [*_DOCUMENTED, *ports, *(["--key", self.key] if self.key else [])]
        else:
            arguments = ["-c", _QUICK, str(self.port), self.key]
        self.process = subprocess.Popen(
            [sys.executable, *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that its own processes are ended with it
            env={**os.environ, "TMPDIR": str(self.folder)},
        )
        deadline = time.monotonic() + _START_SECONDS
        while True:
            assert time.monotonic() < deadline, "the server does not start"
            assert self.process.poll() is None, "the server ended"
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port)).close()
                return self
            time.sleep(0.02)

    def end(self):
        """End the server and the processes that it started, whatever they do."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None
            self._wait_for_children()

    def _wait_for_children(self):
        """Wait until no process holds the port: those that a server starts end a moment later."""
        deadline = time.monotonic() + _START_SECONDS
        with contextlib.suppress(ConnectionRefusedError):
            while time.monotonic() < deadline:
                with contextlib.suppress(ConnectionResetError):
                    socket.create_connection(("127.0.0.1", self.port)).close()
                time.sleep(0.02)

    def files(self):
        return sorted(path.name for path in self.folder.rglob("*") if path.is_file())


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def answering(answer):
    """Yield the address of a server that sends `answer` to all that connect, and waits."""
    connections = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    connections.append(connection)
                    connection.recv(64)
                    connection.sendall(answer)
                    if answer:
                        connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
        while thread.is_alive():  # it may have a connection that is not in the list yet
            for connection in connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            thread.join(0.05)
    for connection in connections:
        connection.close()


@contextlib.contextmanager
def between(port, word, other):
    """Yield the address of what passes all on to a server, with a word in it changed."""
    pairs = []

    def relay(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data.replace(word, other))
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    near, _ = listening.accept()
                    far = socket.create_connection(("127.0.0.1", port))
                    pairs.extend([near, far])
                    for ends in ((near, far), (far, near)):
                        threading.Thread(target=relay, args=ends, daemon=True).start()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
    thread.join()
    for one in pairs:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)  # a thread that receives keeps a closed socket open
        one.close()

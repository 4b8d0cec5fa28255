"""What a run of an opened file tries outside of itself has no effect there, and ends in words.

Each attack works where nothing is confined, which its control shows, or it is said why there is
none.
"""

import ctypes
import mmap
import os
import pickle
import platform
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

import cloudpickle
import numpy as np
import psutil
import pytest
import tvm

from irviz.errors import RunError, UntrustedError
from irviz.session.session import Session
from irviz.worker import one_shot_process, responses, sandbox

pytestmark = [
    pytest.mark.worker,
    pytest.mark.skipif(
        platform.machine() != "x86_64" or not sandbox.can_confine(),
        reason="this machine cannot confine, or its system calls have other numbers",
    ),
]

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # a worker need not find it

NAME = "test.sandbox.attack"
CALLS = tvm.script.from_source("""
@I.ir_module
class Calls:
    @R.function
    def main(x: R.Tensor((1,), "float32")):
        with R.dataflow():
            y = R.call_dps_packed("test.sandbox.attack", (x,), R.Tensor((1,), "float32"))
            R.output(y)
        return y
""")
X = np.ones(1, "float32")
SECRET = b"the secret"


class World(NamedTuple):
    """What there is to harm: a home, its library, a process, and who listens."""

    home: str
    library: str
    victim: int
    parent: int
    tcp: int
    udp: int
    name: str


def syscall(number, *arguments):
    """Make a system call; raise OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    given = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    found = libc.syscall(ctypes.c_long(number), *given)
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return found


def written(path, flags=os.O_WRONLY | os.O_CREAT):
    os.write(os.open(path, flags, 0o600), b"harm")


def content(path):
    return Path(path).read_bytes()


def connected(family, kind, address, payload=b"harm"):
    one = socket.socket(family, kind)
    one.connect(address)
    one.send(payload)
    one.close()


def listens():
    one = socket.socket()
    one.bind(("127.0.0.1", 0))
    one.listen()


def forked(then=lambda: None):
    pid = os.fork()
    if pid == 0:
        then()
        os._exit(0)
    os.waitpid(pid, 0)


def survives(world):
    def detached():
        os.setsid()
        if os.fork() == 0:
            written(f"{world.home}/survived")
            time.sleep(60)

    forked(detached)
    while not Path(f"{world.home}/survived").exists():
        time.sleep(0.01)


def bomb():
    for _ in range(20):
        forked(lambda: forked(lambda: None))


def from_memory():
    number = os.memfd_create("code")
    os.write(number, b"\x7fELF")


def memory_of(victim):
    """Read the memory of a process at the first address that it maps."""
    start = int(content(f"/proc/{victim}/maps").split(b"-")[0], 16)
    buffer = ctypes.create_string_buffer(16)
    own = struct.pack("QQ", ctypes.addressof(buffer), 16)
    syscall(310, victim, own, 1, struct.pack("QQ", start, 16), 1, 0)


def shared_memory():
    mapped = mmap.mmap(-1, 1 << 24)
    mapped[:] = bytes(1 << 24)


def other_descriptors():
    for number in range(3, 64):
        if number not in (responses.pipe_number(), responses.answer_file()):
            try:
                os.fstat(number)
            except OSError:
                continue
            return True
    raise OSError("all others are closed")


def no_limit():
    resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


FILES = {
    "make a file": lambda w: written(f"{w.home}/new"),
    "write into a file": lambda w: written(f"{w.home}/note", os.O_WRONLY),
    "append to a file": lambda w: written(f"{w.home}/note", os.O_WRONLY | os.O_APPEND),
    "empty a file": lambda w: os.truncate(f"{w.home}/note", 0),
    "empty a file as it is opened": lambda w: os.open(f"{w.home}/note", os.O_WRONLY | os.O_TRUNC),
    "delete a file": lambda w: Path(f"{w.home}/note").unlink(),
    "rename a file": lambda w: Path(f"{w.home}/note").rename(f"{w.home}/other"),
    "make a folder": lambda w: Path(f"{w.home}/folder").mkdir(),
    "delete a folder": lambda w: Path(f"{w.home}/empty").rmdir(),
    "make a symbolic link": lambda w: Path(f"{w.home}/link").symlink_to("note"),
    "make a hard link": lambda w: Path(f"{w.home}/link").hardlink_to(f"{w.home}/note"),
    "make a pipe": lambda w: os.mkfifo(f"{w.home}/pipe"),
    "change permissions": lambda w: Path(f"{w.home}/note").chmod(0o777),
    "change an owner": lambda w: os.chown(f"{w.home}/note", os.getuid(), os.getgid()),
    "change a date": lambda w: os.utime(f"{w.home}/note", (1, 1)),
    "read a secret": lambda w: content(f"{w.home}/.ssh/id"),
    "list the home": lambda w: list(Path(w.home).iterdir()),
    "read the passwords": lambda _: content("/etc/passwd"),
    "read the environment of its parent": lambda w: content(f"/proc/{w.parent}/environ"),
    "read its own environment again": lambda _: content("/proc/self/environ"),
    "see the memory of its parent": lambda w: content(f"/proc/{w.parent}/maps"),
    "open the memory of its parent": lambda w: os.open(f"/proc/{w.parent}/mem", os.O_RDONLY),
    "open a descriptor of its parent": lambda w: os.open(f"/proc/{w.parent}/fd/0", os.O_RDONLY),
    "poison the kernel store": lambda w: written(f"{w.home}/kernels/{'0' * 64}.so"),
    "write into the folder that it is in": lambda w: written(f"irviz-{w.name}"),
    "go to another folder": lambda w: os.chdir(w.home),
    "fill the disk": lambda w: os.posix_fallocate(
        os.open(f"{w.home}/large", os.O_RDWR | os.O_CREAT), 0, 1 << 24
    ),
    "fill /dev/shm": lambda w: written(f"/dev/shm/irviz-{w.name}"),
    "watch files": lambda _: syscall(294, 0),
}
NETWORK = {
    "connect by TCP": lambda w: connected(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", w.tcp)),
    "send by UDP": lambda w: connected(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", w.udp)),
    "connect to an abstract socket": lambda w: connected(
        socket.AF_UNIX, socket.SOCK_STREAM, f"\0{w.name}"
    ),
    "connect to a socket in the home": lambda w: connected(
        socket.AF_UNIX, socket.SOCK_STREAM, f"{w.home}/s"
    ),
    "listen": lambda _: listens(),
    "make a pair of sockets": lambda _: [one.close() for one in socket.socketpair()],
    "ask the kernel for addresses": lambda _: socket.socket(
        socket.AF_NETLINK, socket.SOCK_RAW, 0
    ).close(),
    "connect to TVM's RPC": lambda w: connected(
        socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", w.tcp), struct.pack("i", 0xFF271)
    ),
}
PROCESSES = {
    "run a command": lambda w: os.system(f"touch {w.home}/new") and [][0],
    "start a program": lambda w: subprocess.run(["touch", f"{w.home}/new"], check=True),
    "spawn a program": lambda w: os.waitpid(
        os.posix_spawn("/bin/touch", ["touch", f"{w.home}/new"], {}), 0
    ),
    "fork": lambda _: forked(),
    "fork again and again": lambda _: bomb(),
    "survive by setsid": survives,
    "leave its session": lambda _: forked(os.setsid),
    "kill a process": lambda w: os.kill(w.victim, signal.SIGKILL),
    "stop a process": lambda w: os.kill(w.victim, signal.SIGSTOP),
    "look whether a process lives": lambda w: os.kill(w.victim, 0),
    "signal a thread of a process": lambda w: syscall(234, w.victim, w.victim, 9),
    "signal a process by a descriptor": lambda w: signal.pidfd_send_signal(
        os.pidfd_open(w.victim), signal.SIGKILL
    ),
    "trace a process": lambda w: syscall(0x65, 16, w.victim, 0, 0),
    "read the memory of a process": lambda w: memory_of(w.victim),
    "change the limits of a process": lambda w: resource.prlimit(
        w.victim, resource.RLIMIT_NOFILE, (7, 7)
    ),
    "change the priority of a process": lambda w: os.setpriority(os.PRIO_PROCESS, w.victim, 19),
    "choose the processors of a process": lambda w: os.sched_setaffinity(
        w.victim, os.sched_getaffinity(0)
    ),
    "have a user namespace": lambda _: forked(lambda: syscall(272, 0x10000000)),
    "change what kills it": lambda _: syscall(157, 1, 0, 0, 0, 0),
}
LIBRARIES = {
    "load a library": lambda w: ctypes.CDLL(w.library),
    "load a library by TVM": lambda w: tvm.runtime.load_module(w.library),
    "make a file of code in memory": lambda _: from_memory(),
}
KERNEL = {
    "share memory that no limit counts": lambda _: shared_memory(),
    "have System V memory": lambda _: syscall(31, syscall(29, 0, 4096, 0o1600), 0, 0),
    "have a System V queue": lambda _: syscall(71, syscall(68, 0, 0o1600), 0, 0),
    "have System V semaphores": lambda _: syscall(66, syscall(64, 0, 1, 0o1600), 0, 0, 0),
    "have a ring for calls": lambda _: os.close(syscall(425, 2, ctypes.create_string_buffer(120))),
    "catch page faults": lambda _: os.close(syscall(323, 1)),
    "change the personality": lambda _: syscall(135, 0),
    "lift the limit of memory": lambda _: no_limit(),
    "use another's descriptors": lambda _: other_descriptors(),
}
ATTACKS = FILES | NETWORK | PROCESSES | LIBRARIES | KERNEL

ALONE = {
    "answer with a pickle": (
        lambda: os.write(responses.pipe_number(), pickle.dumps(Path("/"))),
        "tests/worker/test_answers.py has the control",
        "gave an answer that cannot be read",
    ),
    "say that the answer is endless": (
        lambda: os.write(responses.pipe_number(), struct.pack("<cQ", b"a", 1 << 62)),
        "an answer of that size was never read",
        "gave an answer that cannot be read",
    ),
    "answer with what is none": (
        lambda: os.write(responses.pipe_number(), struct.pack("<cQ", b"a", 4) + b"none"),
        "before, it would have been unpickled",
        "gave an answer that cannot be read",
    ),
    "take 60 GB": (
        lambda: np.zeros(60 << 30, "uint8"),
        "this machine may not have them",
        "Unable to allocate 60",
    ),
    "make its answer too large": (
        lambda: os.posix_fallocate(responses.answer_file(), 0, 1 << 45),
        "no machine has them",
        "SIGXFSZ|File too large",
    ),
    "end itself": (lambda: os.kill(os.getpid(), 9), "it may", "SIGKILL"),
    "never end": (lambda: time.sleep(60), "it may, within its time", "took longer than 3 s"),
}
"""Attacks without a control: what is called, why there is none, and the words of the error."""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Return the bytes of a library of C."""
    folder = tmp_path_factory.mktemp("library")
    (folder / "code.c").write_text("int harm(void) { return 1; }")
    command = ["cc", "-shared", "-o", folder / "code.so", folder / "code.c"]
    subprocess.run(command, check=True)
    return (folder / "code.so").read_bytes()


@pytest.fixture
def world(tmp_path, monkeypatch, library):
    home = tmp_path / "home"
    for name in ("empty", ".ssh", "kernels"):
        (home / name).mkdir(parents=True)
    (home / ".ssh" / "id").write_bytes(SECRET)
    (home / "note").write_text("a note")
    (home / "code.so").write_bytes(library)
    monkeypatch.setenv("IRVIZ_KERNELS", str(home / "kernels"))
    victim = subprocess.Popen(["sleep", "600"])
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as abstract,
        socket.socket(socket.AF_UNIX) as named,
    ):
        udp.bind(("127.0.0.1", 0))
        name = f"irviz-{os.getpid()}-{time.monotonic_ns()}"
        abstract.bind(f"\0{name}")
        named.bind(f"{home}/s")
        listening = (tcp, udp, abstract, named)
        for one in listening:
            one.setblocking(False)
            if one is not udp:
                one.listen()
        ports = tcp.getsockname()[1], udp.getsockname()[1]
        yield World(str(home), f"{home}/code.so", victim.pid, os.getpid(), *ports, name), listening
    victim.kill()
    victim.wait()
    for path in (Path(f"/dev/shm/irviz-{name}"), Path(f"irviz-{name}")):
        path.unlink(missing_ok=True)


def harm(world, listening):
    """Return what can be seen of the world outside of a run."""
    found = {}
    for path in sorted(Path(world.home).rglob("*")):
        info = path.lstat()
        text = path.read_bytes() if path.is_file() else b""
        found[str(path)] = info.st_mode, info.st_nlink, info.st_mtime_ns, info.st_ctime_ns, text
    victim = psutil.Process(world.victim)
    is_well = victim.status() not in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE)
    found["victim"] = is_well, victim.nice(), victim.rlimit(psutil.RLIMIT_NOFILE)
    for one in listening:
        try:
            found[one] = one.recv(9) if one.type == socket.SOCK_DGRAM else one.accept() and "came"
        except BlockingIOError:  # noqa: PERF203
            found[one] = None
    found["shm"] = Path(f"/dev/shm/irviz-{world.name}").exists()
    return found


def run(session, attack, **given):
    """Run a session whose module calls an attack, and return 1.0 if that came to its end."""

    def called(_, out):
        attack()
        out.copyfrom(np.full(1, 1, "float32"))

    tvm.register_global_func(NAME, called, override=True)
    return session.with_run_config(**given).run().outputs[0].ravel()[0]


OWN = Session(CALLS, inputs=X)
OPENED = OWN.from_file("evil.json")


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_works_where_nothing_is_confined(world, name):
    assert run(OWN, partial(ATTACKS[name], world[0])) == 1


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_has_no_effect_and_ends_in_words(world, name):
    before = harm(*world)
    with pytest.raises(RunError, match=r"'main' failed as it ran: ."):
        run(OPENED, partial(ATTACKS[name], world[0]))
    assert harm(*world) == before


@pytest.mark.parametrize("name", ALONE)
def test_what_a_run_does_to_itself_ends_in_words(name):
    attack, why, words = ALONE[name]
    assert why
    seconds = 3 if name == "never end" else 60
    with pytest.raises(RunError, match=words):
        run(OPENED, attack, seconds=seconds)
    assert run(OPENED, lambda: None) == 1


def test_there_are_enough_attacks():
    assert len(ATTACKS) + len(ALONE) >= 60


def test_what_floods_its_output_is_cut(capsys):
    assert run(OPENED, lambda: print("x" * 10_000_000)) == 1
    assert len(capsys.readouterr().out) < 70_000
    assert run(OPENED, lambda: print("one line")) == 1
    assert capsys.readouterr().out == "one line\n"


def test_threads_and_large_products_work():
    def threads():
        found = []
        many = [threading.Thread(target=lambda: found.append(1)) for _ in range(8)]
        for one in many:
            one.start()
        for one in many:
            one.join()
        assert len(found) == 8
        ones = np.ones((500, 500))
        assert (ones @ ones)[0, 0] == 500

    assert run(OPENED, threads) == 1


def test_one_run_that_is_confined_does_not_confine_the_next():
    assert run(OPENED, lambda: None) == 1
    assert run(OWN, lambda: list(Path("/").iterdir())) == 1
    with pytest.raises(RunError, match="Permission"):
        run(OPENED, lambda: list(Path("/").iterdir()))


def test_what_is_trusted_is_free():
    assert run(OPENED.trust(), lambda: list(Path("/").iterdir())) == 1


# --- where it does not hold -----------------------------------------------------------------------


def test_without_it_the_question_is_asked(monkeypatch):
    monkeypatch.setenv(sandbox.VARIABLE, "0")
    with pytest.raises(UntrustedError, match=r"'evil\.json'"):
        run(OPENED, lambda: None)
    with pytest.raises(UntrustedError):
        OPENED.measure()


def test_without_landlock_the_question_is_asked(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(UntrustedError):
        run(OPENED, lambda: None)


def test_what_cannot_be_confined_is_asked():
    for session in (
        OPENED.with_run_config(build="default"),
        OPENED.with_run_config(device="127.0.0.1:9090"),
        Session(CALLS.with_attr("external_mods", "any"), inputs=X).from_file("evil.json"),
    ):
        with pytest.raises(UntrustedError):
            session.run()
    with pytest.raises(UntrustedError):
        OPENED.apply("FoldConstant")


def test_nothing_runs_in_a_process_that_cannot_be_confined():
    with pytest.raises(OSError, match="only a fresh process"):
        one_shot_process.confined(lambda: None)

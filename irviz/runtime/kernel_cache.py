"""A cache of compiled PrimFuncs, in memory and on disk, so that none is compiled twice.

A PrimFunc is found again by what it computes, without its name, and by everything that its machine
code depends on. Kernels are compiled a few at a time, because a library takes as long as a kernel,
and on all processors.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import secrets
import stat
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import count
from pathlib import Path

import platformdirs
import tvm
import tvm_ffi
from tvm import ir, tirx
from tvm.support import cc

from irviz.errors import RunError, memory_errors, run_errors
from irviz.ir.tir_statements import parts_of
from irviz.safe_files import open_private_folder, say_not_kept
from irviz.worker.responses import report_progress

_MOST_KERNELS = 4096
_CHUNK = 8
"""The most kernels of a library."""
_FORMAT = "irviz kernels 1"


@dataclass(frozen=True, eq=False)
class Kernel:
    """A compiled PrimFunc: a library, and its name in it."""

    library: tvm.runtime.Module
    symbol: str


_Key = tuple[str, tvm_ffi.StructuralKey]
_kept: OrderedDict[_Key, Kernel] = OrderedDict()
_lock = threading.Lock()


class KernelError(RunError):
    """A PrimFunc that cannot be built, and its name."""

    def __init__(self, words: str, name: str = "") -> None:
        super().__init__(words)
        self.name = name


def can_be_kept() -> bool:
    """Tell whether compilation here depends on nothing but PrimFunc and target."""
    context, usual = tvm.transform.PassContext.current(), tvm.transform.PassContext()
    is_plain = not (context.config or context.instruments or context.required_pass)
    return is_plain and not context.disabled_pass and context.opt_level == usual.opt_level


def is_closed(function: tirx.PrimFunc) -> bool:
    """Tell whether a PrimFunc calls nothing by name, neither functions nor what is registered."""
    if function.attrs and "target" in function.attrs:
        return False
    return not any(parts_of(function.body, kind) for kind in (ir.GlobalVar, ir.StringImm))


def compiled(
    functions: Mapping[str, tirx.PrimFunc], target: tvm.target.Target
) -> dict[str, Kernel]:
    """Compile closed PrimFuncs and return them by the same names; raise RunError on failure."""
    where = _where(target)
    keys = {
        # the stub of StructuralKey has a private field
        name: (where, tvm_ffi.StructuralKey(one.without_attr("global_symbol")))  # type: ignore[call-arg]
        for name, one in functions.items()
    }
    with _lock:
        kept = {key: _kept[key] for key in keys.values() if key in _kept}
    missing = {key: name for name, key in keys.items() if key not in kept}
    if missing:
        wanted = {name: functions[name].without_attr("global_symbol") for name in missing.values()}
        made = _made(wanted, where, target)
        kept |= {key: made[name] for key, name in missing.items()}
    with _lock:
        for key, kernel in kept.items():
            _kept[key] = kernel
            _kept.move_to_end(key)
        while len(_kept) > _MOST_KERNELS:
            _kept.popitem(last=False)
    return {name: kept[key] for name, key in keys.items()}


def forget_loaded_kernels() -> None:
    """Forget the kernels in this process's memory, but not those on disk."""
    with _lock:
        _kept.clear()


def forget_kernels() -> None:
    """Forget the kernels in this process's memory, and delete those on disk."""
    forget_loaded_kernels()
    with kernel_store() as store:
        if store:
            store.clear()


def _made(
    functions: Mapping[str, tirx.PrimFunc], where: str, target: tvm.target.Target
) -> dict[str, Kernel]:
    """Load functions from disk, and compile the missing ones."""
    keys = {name: _disk_key(one, where) for name, one in functions.items()}
    with kernel_store() as store:
        found = {} if store is None else _stored(keys, store)
        missing = [name for name in functions if name not in found]
        if missing:
            units = {name: (f"irviz_{keys[name]}", functions[name]) for name in missing}
            found |= _built(units, target, store)
    return found


def _stored(keys: Mapping[str, str], store: KernelStore) -> dict[str, Kernel]:
    """Return the kernels of these keys that are on disk, by the same names."""

    @cache
    def library(file: str) -> tvm.runtime.Module | None:
        contents = store.contents(file)
        if contents is not None:
            with contextlib.suppress(Exception):  # TVM raises what its C++ side threw
                return _loaded(contents, Path(file).suffix)
        return None

    found = dict[str, Kernel]()
    for name, key in keys.items():
        file, symbol = store.library_of(key), f"irviz_{key}"
        one = None if file is None else library(file)
        if one is not None:
            with contextlib.suppress(AttributeError):  # it does not have the function
                one.get_function(symbol)
                found[name] = Kernel(one, symbol)
    return found


def _loaded(contents: bytes, suffix: str) -> tvm.runtime.Module:
    """Load a library from memory; raise what TVM raises, and OSError.

    `tvm.runtime.load_module` would look at the name of the file.
    """
    kind = suffix.removeprefix(".")
    load = tvm_ffi.get_global_func(f"ffi.Module.load_from_file.{kind}")
    with path_with(contents) as path:
        return load(path, kind)


_Units = Mapping[str, tuple[str, tirx.PrimFunc]]
"""The symbols and functions to compile, by the names that the functions have in the module."""


def _built(
    units: _Units, target: tvm.target.Target, store: KernelStore | None
) -> dict[str, Kernel]:
    processors = _processors()
    size = max(1, min(_CHUNK, -(-len(units) // processors)))
    names = list(units)
    chunks = [
        {name: units[name] for name in names[begin : begin + size]}
        for begin in range(0, len(names), size)
    ]
    found = dict[str, Kernel]()
    with ThreadPoolExecutor(processors) as pool:
        try:
            waiting = [pool.submit(_compiled_together, one, target, store) for one in chunks]
            for done in as_completed(waiting):
                found |= done.result()
                report_progress(f"building kernels: {len(found)} of {len(units)}")
        finally:  # after an error the others are not begun
            pool.shutdown(cancel_futures=True)
    if store is not None:
        with contextlib.suppress(OSError):
            store.trim()
    return found


def _compiled_together(
    units: _Units, target: tvm.target.Target, store: KernelStore | None
) -> dict[str, Kernel]:
    """Compile functions to one library; raise KernelError if one of them cannot be compiled."""
    try:
        with memory_errors():
            library = _put_on_disk(_library(units, target), units, store)
    except MemoryError:
        raise
    except Exception:  # TVM raises what its C++ side threw, of any class
        _raise_for_one(units, target)
        raise
    for symbol, _ in units.values():
        library.get_function(symbol)  # makes the machine code, here beside other libraries
    return {name: Kernel(library, symbol) for name, (symbol, _) in units.items()}


def _library(units: _Units, target: tvm.target.Target) -> tvm.runtime.Module:
    mod = {symbol: one.with_attr("global_symbol", symbol) for symbol, one in units.values()}
    return tirx.build(ir.IRModule(mod), target)


def _raise_for_one(units: _Units, target: tvm.target.Target) -> None:
    """Raise KernelError with the name of the function that cannot be compiled."""
    for name, unit in units.items():
        try:
            with run_errors(f"the PrimFunc {name!r} could not be built"):
                _library({name: unit}, target)
        except RunError as error:  # noqa: PERF203 - a build takes longer
            raise KernelError(str(error), name) from error.__cause__


def _put_on_disk(
    library: tvm.runtime.Module, units: _Units, store: KernelStore | None
) -> tvm.runtime.Module:
    """Return the library as it was put on disk, or itself if that is not possible."""
    if store is None or library.imports:
        return library
    with contextlib.suppress(Exception), store.temporary() as (name, path):
        if cc.get_cc():
            suffix = ".so"
            with store.temporary() as (_, made):
                library.write_to_file(str(made), "o")
                cc.create_shared(str(path), str(made))
        else:  # LLVM's code, of which the machine code is made each time
            suffix = ".ll"
            library.write_to_file(str(path), "bc")
        contents = store.read(name)
        loaded = _loaded(contents, suffix)
        store.add([symbol.partition("_")[2] for symbol, _ in units.values()], contents, suffix)
        return loaded
    return library


def _disk_key(function: tirx.PrimFunc, where: str) -> str:
    """Return a name for a function and what its code depends on, which no other one has."""
    text = "\0".join([where, tvm.ir.save_json(function)])
    return hashlib.sha256(text.encode()).hexdigest()


def _where(target: tvm.target.Target) -> str:
    """Return what machine code depends on, beside the function, as text."""
    own = [tvm.__version__, tvm_ffi.__version__, platform.platform(), platform.machine()]
    return "\n".join([_FORMAT, str(target), str(target.host), *own, *_libraries()])


@lru_cache(maxsize=1)
def _libraries() -> tuple[str, ...]:
    """Return what identifies TVM's libraries and the processor that they see."""
    folder = Path(tvm.__file__).parent / "lib"
    files = [(one.name, one.stat()) for one in sorted(folder.glob("*tvm*"))]
    sizes = [f"{name} {info.st_size} {info.st_mtime_ns}" for name, info in files]
    llvm = ("GetHostCPUName", "GetHostCPUFeatures")
    asked = [tvm.get_global_func(f"tvm.codegen.llvm.{name}", allow_missing=True) for name in llvm]
    return (str(folder), *sizes, *(str(ask()) for ask in asked if ask))


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


MOST_BYTES = 256 * 2**20
"""The size limit of the folder; beyond it, the least recently used files are deleted."""
FOLDER_VARIABLE = "IRVIZ_KERNELS"
_KEPT_SHARE = 0.75
_ABANDONED_SECONDS = 3600.0
"""After this time, temporary files are those of a process that ended."""
_KEY, _NAME = ".key", re.compile(r"[0-9a-f]{64}\.(so|ll)")
_MOST_NAME = 67
_numbers = count()


class KernelStore:
    """The libraries in a private folder, which is open; see `kernel_store`."""

    def __init__(self, folder: int, path: Path, most: int = MOST_BYTES) -> None:
        here = Path(f"/proc/{os.getpid()}/fd/{folder}")
        self._folder, self._path = folder, here if here.exists() else path
        self._most = most

    def library_of(self, key: str) -> str | None:
        """Return the name of the library that has a kernel, None for none."""
        with contextlib.suppress(OSError, ValueError):
            return self.read(f"{key}{_KEY}", _MOST_NAME).decode("ascii")
        return None

    def contents(self, name: str) -> bytes | None:
        """Return the contents of a library if they have the hash in its name."""
        if not _NAME.fullmatch(name):
            return None
        with contextlib.suppress(OSError):
            contents = self.read(name)
            if name.startswith(f"{_digest(contents)}."):
                os.utime(name, dir_fd=self._folder, follow_symlinks=False)
                return contents
        return None

    def add(self, keys: Collection[str], contents: bytes, suffix: str) -> None:
        """Keep a library with the kernels of these keys; raise OSError."""
        name = f"{_digest(contents)}{suffix}"
        self._write(name, contents)
        for key in keys:
            self._write(f"{key}{_KEY}", name.encode())

    @contextlib.contextmanager
    def temporary(self) -> Iterator[tuple[str, Path]]:
        """Yield the name of a new file in the folder and a path of it, and delete it at the end."""
        name = f".{secrets.token_hex(16)}"
        try:
            yield name, self._path / name
        finally:
            self._delete(name)

    def read(self, name: str, most: int = 0) -> bytes:
        """Return the contents of a regular file of this user; raise OSError for anything else."""
        most = most or self._most
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        with os.fdopen(os.open(name, flags, dir_fd=self._folder), "rb") as file:
            info = os.fstat(file.fileno())
            if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid() or info.st_size > most:
                raise OSError(f"{name} is not a file of this user of at most {most} bytes")
            return file.read(most)

    def clear(self) -> None:
        """Delete everything."""
        for name in self._files():
            self._delete(name)

    def trim(self) -> None:
        """Delete libraries until the folder is within its limit, the least recently used first."""
        found = self._files()
        libraries = {name: info for name, info in found.items() if _NAME.fullmatch(name)}
        for name, info in found.items():
            is_abandoned = time.time() - info.st_mtime > _ABANDONED_SECONDS
            if name not in libraries and not name.endswith(_KEY) and is_abandoned:
                self._delete(name)
        size = sum(info.st_size for info in found.values())
        if size <= self._most:
            return
        for name, info in sorted(libraries.items(), key=lambda pair: pair[1].st_mtime):
            if size <= self._most * _KEPT_SHARE:
                break
            self._delete(name)
            del libraries[name]
            size -= info.st_size
        for name in found:
            if name.endswith(_KEY) and self.library_of(name.removesuffix(_KEY)) not in libraries:
                self._delete(name)

    def _files(self) -> dict[str, os.stat_result]:
        with os.scandir(self._folder) as found:
            return {one.name: one.stat(follow_symlinks=False) for one in found}

    def _write(self, name: str, contents: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with self.temporary() as (partial, _):
            with os.fdopen(os.open(partial, flags, 0o600, dir_fd=self._folder), "wb") as file:
                file.write(contents)
            os.rename(partial, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)

    def _delete(self, name: str) -> None:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=self._folder)


@contextlib.contextmanager
def kernel_store() -> Iterator[KernelStore | None]:
    """Yield this user's store; None where no folder is safe from other users.

    The environment variable IRVIZ_KERNELS names another folder, or none if it is empty.
    """
    store = None
    with contextlib.ExitStack() as opened:
        if folder := _folder():
            with contextlib.suppress(OSError):
                descriptor = open_private_folder(folder)
                opened.callback(os.close, descriptor)
                store = KernelStore(descriptor, folder)
        yield store


@cache
def say_if_none_are_kept() -> None:
    """Log once why compiled kernels are not kept, unless nobody wants them to be."""
    if folder := _folder():
        try:
            os.close(open_private_folder(folder))
        except OSError as failure:
            say_not_kept("compiled kernels", failure)


@contextlib.contextmanager
def path_with(contents: bytes) -> Iterator[str]:
    """Yield a path of a file with these contents that no other user can change; raise OSError."""
    if not hasattr(os, "memfd_create"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "library")
            path.write_bytes(contents)
            yield str(path)
        return
    import fcntl  # which Windows has not

    descriptor = os.memfd_create("irviz", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(contents)
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
        # a path that no library had: to dlopen, what has an equal path is the same library
        steps = f"{next(_numbers):b}".replace("0", "./").replace("1", ".//")
        yield f"/proc/self/fd/{steps}{descriptor}"
    finally:
        os.close(descriptor)


def _folder() -> Path | None:
    name = os.environ.get(FOLDER_VARIABLE)
    if name == "":
        return None
    return Path(name) if name else platformdirs.user_cache_path("irviz") / "kernels"


def _digest(contents: bytes) -> str:
    return hashlib.sha256(contents).hexdigest()

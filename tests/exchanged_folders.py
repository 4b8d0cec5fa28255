# ruff: noqa: N803, N812
"""Folders with planted kernels, which are exchanged for a user's own again and again.

The tests and bench/exchanged_folders.py share it. A planted kernel stands under the key of a kernel
that doubles, has the hash in its name, and triples.
"""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import tvm
from tvm import relax, tirx
from tvm.script import tirx as T
from tvm.support import cc

from irviz.runtime import kernel_cache
from irviz.runtime.kernel_cache import kernel_store
from irviz.runtime.local_vm import LocalModule
from irviz.runtime.run_config import RunConfig

X = np.ones((4, 4), "float32")
EXCHANGE = """
import ctypes, sys, time
rename, here = ctypes.CDLL(None, use_errno=True).renameat2, -100
one, other = (name.encode() for name in sys.argv[1:])
done = failed = 0
print("ready", flush=True)
while True:
    if rename(here, one, here, other, 2) == 0:
        done += 1
    else:
        failed += 1
    if (done + failed) % 1000 == 0:
        print(done, failed, flush=True)
    time.sleep(1e-4)
"""


def doubled() -> str:
    """Build a module that doubles, as no kernel is in memory, and return what it does."""
    kernel_cache.forget_loaded_kernels()
    built = LocalModule.build(_module(2.0), RunConfig(), None)
    found, *_ = built.call("main", built.copy_arguments([X]))[0]
    return {2.0: "doubles", 3.0: "triples"}[float(found[0, 0])]


def plant(folder: Path) -> None:
    """Make a folder like that of IRVIZ_KERNELS, which is the store now, with planted kernels."""
    doubled()
    folder.mkdir()
    with kernel_store() as store:
        assert store is not None
        own = Path(os.environ["IRVIZ_KERNELS"])
        [key] = [name.stem for name in own.glob("*.key")]
    symbol = f"irviz_{key}"
    [function] = [one for one in _module(3.0).functions.values() if isinstance(one, tirx.PrimFunc)]
    named = tvm.IRModule({symbol: function.with_attr("global_symbol", symbol)})
    made = folder / "library.so"
    tirx.build(named, "llvm").write_to_file(f"{made}.o", "o")
    cc.create_shared(str(made), f"{made}.o")
    Path(f"{made}.o").unlink()
    with kernel_store() as store:
        store.add([key], made.read_bytes(), ".so")
        for path in own.iterdir():
            shutil.copy(path, folder)
        store.clear()
    made.unlink()


@contextlib.contextmanager
def exchanging(one: Path, other: Path) -> Iterator[subprocess.Popen[str]]:
    """Exchange two folders until the block ends; the process prints how often that worked."""
    command = [sys.executable, "-c", EXCHANGE, str(one), str(other)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


@cache
def _module(factor: float) -> tvm.IRModule:
    @T.prim_func(private=True, s_tir=True)
    def scale(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
        for i, j in T.grid(4, 4):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(factor)

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([4, 4], "float32"))
    with builder.function("main", [x]):
        scaled = builder.add_func(scale, "scale")
        call = relax.call_tir(scaled, (x,), relax.TensorType([4, 4], "float32"))
        builder.emit_func_output(builder.emit(call))
    return builder.get()

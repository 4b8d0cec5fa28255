"""Open mutated files until the time is up, and report what opening one must never do.

    python tests/fuzz.py --seconds 600 --seed 0 --keep found/

A process opens each file as the explorer does: it loads it, draws every function, and prints it.
It must end in a session or in one of irviz's errors, within a time limit, without much more memory
than before, and without a new file. Whatever does not is kept, and is to become a test.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import multiprocessing
import os
import random
import re
import resource
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

SECONDS = 150.0  # irviz's own limits are below it
MEMORY = 3 << 30
PAYLOADS = (
    "__import__('os').mkdir('ran')",
    "().__class__.__base__.__subclasses__()",
    "9**9**9**9",
    "1 << 10**9",
    "'a' * 10**10",
    "[0] * 10**10",
    "R.Tensor((1 << 62, 1 << 62), 'float32')",
    'T.call_extern("int32", "system", "mkdir ran")',
    "(" * 3000,
    "\x00",
    "\u202e",
    "None",
    "-1",
    "1e400",
    "nan",
)
NUMBERS = (0, -1, 1, 2**31, 2**32, 2**63 - 1, 2**63, -(2**63), 10**30, 1e308, 0.5, None, "", [], {})


def main() -> int:
    """Fuzz until the time is up; return how many files did what none may."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path("found"), help="where to keep files")
    options = parser.parse_args()
    source = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="irviz-fuzz-") as folder:
        corpus = _corpus(Path(folder))
        opener, finds, count = Opener(), 0, 0
        deadline = time.monotonic() + options.seconds
        while time.monotonic() < deadline:
            name, content = source.choice(corpus)
            mutated = mutate(content, name, source)
            count += 1
            if problem := opener.problem(name, mutated):
                finds += 1
                options.keep.mkdir(parents=True, exist_ok=True)
                kept = options.keep / f"{options.seed}-{count}-{name}"
                kept.write_bytes(mutated)
                print(f"{kept}: {problem}", flush=True)
        opener.end()
    print(f"{count} files were opened, {opener.opened} of them to a session; finds: {finds}")
    return finds


class Opener:
    """A process that opens files, and is replaced when it does not survive one."""

    def __init__(self) -> None:
        self.opened = 0
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._folder = tempfile.TemporaryDirectory(prefix="irviz-fuzzed-")
        self._process = context.Process(target=_serve, args=(theirs, self._folder.name))
        self._process.start()
        theirs.close()
        self._ask("", b"")  # everything is loaded

    def end(self) -> None:
        self._process.kill()
        self._process.join()
        self._folder.cleanup()

    def problem(self, name: str, content: bytes) -> str:
        """Open a file; return what opening must never do, "" for nothing."""
        problem = self._ask(name, content)
        if problem == "opened":
            self.opened += 1
            problem = ""
        if not problem and (extra := [one.name for one in Path(self._folder.name).iterdir()]):
            problem = f"it left {extra}"
        if problem:
            self.end()
            self._start()
        return problem

    def _ask(self, name: str, content: bytes) -> str:
        try:
            self._pipe.send((name, content))
            if not self._pipe.poll(SECONDS):
                return f"opening took more than {SECONDS:g} s"
            return str(self._pipe.recv())
        except (EOFError, OSError):
            self._process.join()
            return f"the process ended with code {self._process.exitcode}"


def _serve(pipe: Connection, folder: str) -> None:
    os.chdir(folder)
    warnings.simplefilter("ignore")
    import irviz

    with Path(os.devnull).open("w") as nothing, contextlib.redirect_stderr(nothing):
        while True:
            name, content = pipe.recv()
            before = _peak()
            problem = _open(irviz.load, Path(folder, name), content) if name else ""
            took = _peak() - before if name else 0
            pipe.send(f"it took {took >> 20} MiB" if took > MEMORY else problem)


def _open(load: Callable[[Path], object], path: Path, content: bytes) -> str:
    from irviz.errors import IrvizError

    path.write_bytes(content)
    try:
        session = load(path)
        for stage in session.stages[:20]:  # type: ignore[attr-defined]
            shown = session.checkout(stage.id)  # type: ignore[attr-defined]
            for function in shown.functions[:5]:
                shown.select_function(function).draw()
            shown.script()
        session.to_python()  # type: ignore[attr-defined]
        return "opened"
    except IrvizError as failure:
        message = str(failure)
        lines = message.splitlines()
        return "" if message and len(lines) < 40 else f"its error says {message!r}"
    except BaseException:
        return traceback.format_exc()
    finally:
        path.unlink()


def _peak() -> int:
    """Return the most bytes that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


# --- what files are mutated from ---------------------------------------------------------------


def _corpus(folder: Path) -> list[tuple[str, bytes]]:
    """Return a file of each kind that is read, small ones, by their names."""
    import numpy as np
    import tvm

    import irviz
    from irviz.course.mlp import MyModule, MyModuleHighLevel
    from irviz.course.mm_relu import MyModule as MatmulRelu

    files: dict[str, bytes] = {}
    for name, mod in (("mlp", MyModule), ("high", MyModuleHighLevel), ("mm", MatmulRelu)):
        files[f"{name}.json"] = tvm.ir.save_json(mod).encode()
        files[f"{name}.py"] = f"{_IMPORTS}{mod.script()}".encode()
        cell = {"cell_type": "code", "source": f"{_IMPORTS}{mod.script()}", "metadata": {}}
        files[f"{name}.ipynb"] = json.dumps({"cells": [cell], "nbformat": 4}).encode()
    files["kernel.py"] = (_IMPORTS + _KERNEL).encode()
    small = {"w": np.zeros((2, 2), "float32")}
    session = irviz.Session(MyModuleHighLevel, params=small).apply("LegalizeOps").apply("FuseOps")
    session.save(folder / "work.irviz")
    files["work.irviz"] = (folder / "work.irviz").read_bytes()
    with contextlib.suppress(ImportError):
        files["model.onnx"] = _onnx_model()
    with contextlib.suppress(ImportError):
        import torch

        program = torch.export.export(torch.nn.Linear(4, 8), (torch.ones(1, 4),))
        torch.export.save(program, folder / "model.pt2")
        files["model.pt2"] = (folder / "model.pt2").read_bytes()
    return sorted(files.items())


_IMPORTS = "from tvm.script import ir as I, relax as R, tirx as T\n\n"
_KERNEL = """from tvm.script.tirx import tile as Tx
from tvm.tirx.layout import S, TileLayout, laneid


@T.prim_func
def main(A: T.Buffer((1024,), "uint32"), M: T.TensorMap()):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([32])
    value: T.uint32
    T.ptx.ld.global_.b32(value, T.ptx.addr(A.data, 12), pred=tx < 8)
    T.ptx["st.global.b32"](T.ptx.addr(A.data, 0), value)
    T.ptx.st(A.data, value, "", "", "", "global", "", "", "", "b32", "")
    T.cuda.func_call("f", A.data, source_code="__device__ void f(int* a) {}")
    T.cuda.wait_until(value, A.data, lambda seen: seen > T.uint32(3))
    B = A.view(64, 16).tile((0, (4, -1)))[2, :].permute(1, 0)
    C = A.view(64, 16).rearrange("(a b) c -> a c b", a=4)
    D = T.alloc_local((8,), "float16", layout=TileLayout(S[8 : 4 @ laneid] + T.R[4 : 1] + 64))
    E = T.alloc_shared((512,), layout=T.ComposeLayout(3, 3, 3, T.TileLayout(S[(8, 64) : (64, 1)])))
    Tx.cta.fill(D[0:8], T.float16(0), unroll=4)
    T.tile.select(E, E, T.float32(1), lambda i: i < tx)
    T.hint("partition", access=A[0:16])
    T.evaluate(B[0, 0] + C[0, 0, 0] + A.sub[2:4][0])
"""


def _onnx_model() -> bytes:
    import numpy as np
    import onnx
    from onnx import helper, numpy_helper

    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Relu", ["p"], ["y"])],
        "layer",
        [value("x", onnx.TensorProto.FLOAT, [1, 4])],
        [value("y", onnx.TensorProto.FLOAT, [1, 8])],
        [numpy_helper.from_array(np.zeros((4, 8), "float32"), "w")],
    )
    opset = helper.make_opsetid("", 17)
    return bytes(helper.make_model(graph, opset_imports=[opset]).SerializeToString())


# --- mutations ---------------------------------------------------------------------------------


def mutate(content: bytes, name: str, source: random.Random) -> bytes:
    """Return a file with one to four mutations of its bytes, its words or its structure."""
    for _ in range(source.choice((1, 1, 2, 4))):
        kinds: list[Callable[[bytes, random.Random], bytes]] = [_bytes]
        if zipfile.is_zipfile(io.BytesIO(content)):
            kinds += [_archive] * 6
        elif name.endswith((".json", ".ipynb")):
            kinds += [_json] * 6 + [_text] * 2
        elif name.endswith(".py"):
            kinds += [_text] * 6
        content = source.choice(kinds)(content, source)
    return content


def _bytes(content: bytes, source: random.Random) -> bytes:
    if not content:
        return b"\0"
    at, size = source.randrange(len(content)), source.choice((1, 4, 64))
    piece = source.choice(
        (b"", source.randbytes(size), content[at : at + size] * 2, b"\xff" * size, b"\0" * size)
    )
    return content[:at] + piece + content[at + size :]


def _text(content: bytes, source: random.Random) -> bytes:
    text = content.decode("utf-8", "replace")
    words = list(re.finditer(r"\w+|[^\w\s]", text))
    if not words:
        return content
    word = source.choice(words)
    new = source.choice((*PAYLOADS, source.choice(words)[0], "", f"{word[0]} {word[0]}"))
    return (text[: word.start()] + new + text[word.end() :]).encode("utf-8", "replace")


def _json(content: bytes, source: random.Random) -> bytes:
    try:
        root = json.loads(content)
    except ValueError:
        return _bytes(content, source)
    places: list[tuple[object, object]] = []
    waiting: list[object] = [root]
    while waiting:
        one = waiting.pop()
        keys = (
            list(one) if isinstance(one, dict) else range(len(one) if isinstance(one, list) else 0)
        )
        places += [(one, key) for key in keys]
        waiting += [one[key] for key in keys]  # type: ignore[index]
    if not places:
        return b"[]"
    holder, key = source.choice(places)
    other_holder, other = source.choice(places)
    held = holder[key]  # type: ignore[index]
    choices: list[object] = [
        *NUMBERS,
        source.choice(PAYLOADS),
        other_holder[other],  # type: ignore[index]
        [held] * source.choice((2, 1000)),
        held + 1 if isinstance(held, int) else str(held),
    ]
    holder[key] = source.choice(choices)  # type: ignore[index]
    try:
        return json.dumps(root).encode("utf-8", "replace")
    except (ValueError, RecursionError):  # it holds itself now
        return content


def _archive(content: bytes, source: random.Random) -> bytes:
    written = io.BytesIO()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = [(one.filename, archive.read(one)) for one in archive.infolist()]
    except Exception:  # it was mutated before: zipfile raises errors of many classes
        return _bytes(content, source)
    if not entries:
        return content
    at = source.randrange(len(entries))
    name, entry = entries[at]
    change = _json if entry[:1] in b"{[" and entry else _bytes
    entries[at] = (
        source.choice((name, name, name, name, f"../{name}", "/tmp/ran", entries[0][0])),
        change(entry, source),
    )
    if source.random() < 0.1:
        entries.append((name, b"\0" * (200 << 20)))  # small when it is compressed
    with warnings.catch_warnings(), zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")  # two entries of one name
        for each in entries:
            archive.writestr(*each)
    return written.getvalue()


if __name__ == "__main__":
    sys.exit(min(main(), 100))

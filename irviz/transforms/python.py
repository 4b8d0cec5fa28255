"""The script that a path of stages writes itself as: Python with TVM alone."""

from __future__ import annotations

import base64
import inspect
import textwrap
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import ir

from irviz.model.whole_file import whole_file
from irviz.transforms.tvmscript import module_source

_WIDTH = 96
_INLINE = 64
"""The most numbers that are written out; more of them are written as text in base 64."""


class UnwritableError(Exception):
    """There are no statements for a step; the message says why."""


class Script:
    """Takes statements in their order, with what they need to stand before them.

    The module is `mod` throughout. Arrays are written into the script, or left for a file.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._imports: dict[str, None] = {"import tvm": None}
        self._definitions: dict[str, None] = {}
        self._arrays: dict[str, NDArray[np.generic]] = {}
        self._scheduled = ""

    @property
    def arrays(self) -> Mapping[str, NDArray[np.generic]]:
        """The arrays that the script reads, by the name it has for them."""
        return MappingProxyType(self._arrays)

    def add(self, *lines: str, needs: tuple[str, ...] = ()) -> None:
        """Write statements, and the import statements they need."""
        self._close_schedule()
        self._imports |= dict.fromkeys(needs)
        self._lines += lines

    def say(self, words: str) -> None:
        """Write a comment."""
        self._lines += [f"# {line}" for line in words.splitlines()]

    def define(self, function: Callable[..., object], needs: tuple[str, ...] = ()) -> None:
        """Let a function stand before the statements, with the source that it has here.

        Raises UnwritableError when its source cannot be found.
        """
        try:
            source = textwrap.dedent(inspect.getsource(function))
        except (OSError, TypeError) as failure:
            raise UnwritableError(f"the source of {function!r} cannot be found") from failure
        self._imports |= dict.fromkeys(needs)
        self._definitions[source.rstrip()] = None

    def array(self, name: str, value: NDArray[np.generic]) -> str:
        """Return the expression for an array; raise UnwritableError for a foreign dtype."""
        if value.dtype.kind not in "biufc":
            raise UnwritableError(f"{name!r} is of dtype {value.dtype}, which NumPy cannot save")
        name = f"{name}_" if name in ("file", "allow_pickle") else name  # arguments of np.savez
        key, count = name, 1
        while key in self._arrays and not _is_same(self._arrays[key], value):
            count += 1
            key = f"{name}_{count}"
        self._arrays[key] = value
        return f"arrays[{key!r}]"

    def schedule(self, function: str, *lines: str) -> None:
        """Write steps of one PrimFunc's schedule, `sch`; steps that follow each other share it."""
        if self._scheduled != function:
            self._close_schedule()
            self._imports["from tvm import s_tir"] = None
            self._lines += ["sch = s_tir.Schedule(mod)", f"sch.work_on({function!r})"]
            self._scheduled = function
        self._lines += lines

    def embed(self, mod: ir.IRModule, why: str) -> None:
        """Let the module itself stand for the statements that would make it."""
        self.say(why)
        self.add(f"mod = {embedded(mod)}", needs=("import base64", "import zlib"))

    def begin(self, mod: ir.IRModule) -> None:
        """Write the first module: as TVMScript where that says all of it."""
        source = module_source(mod)
        if source is None:
            self.embed(mod, "the first module; TVMScript does not say all of it")
            return
        self.add(f"mod = {source}")

    def text(self, arrays_file: str = "") -> str:
        """Return the script; with `arrays_file` it reads its arrays from there."""
        self._close_schedule()
        parts = ["\n".join(sorted(self._needed(arrays_file), key=_import_order))]
        if arrays_file:
            parts.append(f"arrays = np.load({arrays_file!r})")
        elif self._arrays:
            items = [f"    {key!r}: {_written(value)}," for key, value in self._arrays.items()]
            parts.append("\n".join(["arrays = {", *items, "}"]))
        parts += [f"\n{source}\n" for source in self._definitions]
        return "\n\n".join([*parts, "\n".join(self._lines)]) + "\n"

    def _needed(self, arrays_file: str) -> set[str]:
        needed = set(self._imports)
        if self._arrays:
            needed.add("import numpy as np")
            if not arrays_file and any(v.size > _INLINE for v in self._arrays.values()):
                needed |= {"import base64", "import zlib"}
        return needed

    def _close_schedule(self) -> None:
        if self._scheduled:
            self._lines.append("mod = sch.mod")
            self._scheduled = ""


def embedded(value: object) -> str:
    """Return the expression that reads a TVM object from text in base 64."""
    text = base64.b64encode(zlib.compress(tvm.ir.save_json(value).encode(), 9)).decode()
    return f"tvm.ir.load_json(zlib.decompress(base64.b64decode({_folded(text)})).decode())"


def save_arrays(path: str | Path, arrays: Mapping[str, NDArray[np.generic]]) -> Path:
    """Write arrays to an .npz file, whole or not at all."""
    with whole_file(path) as partial, partial.open("wb") as file:
        np.savez(file, allow_pickle=False, **dict(arrays))
    return Path(path)


def _written(value: NDArray[np.generic]) -> str:
    if value.size <= _INLINE:
        return f"np.array({value.tolist()!r}, {value.dtype.name!r})".replace(
            "nan", "np.nan"
        ).replace("inf", "np.inf")
    text = base64.b64encode(zlib.compress(np.ascontiguousarray(value).tobytes(), 6)).decode()
    read = f"zlib.decompress(base64.b64decode({_folded(text)}))"
    return f"np.frombuffer({read}, {value.dtype.name!r}).reshape({value.shape!r})"


def _folded(text: str) -> str:
    lines = textwrap.wrap(text, _WIDTH)
    return f'"{text}"' if len(lines) < 2 else '"""\n' + "\n".join(lines) + '\n"""'


def _is_same(one: NDArray[np.generic], other: NDArray[np.generic]) -> bool:
    return (
        one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes()
    )


def _import_order(line: str) -> tuple[bool, str]:
    return line.startswith("from"), line

"""Read IRModules and other objects from TVM's JSON (`tvm.ir.save_json`).

TVM's reader trusts the text: it makes an object of any registered type, compiled code and parts of
TVM's runtime included, and a wrong index ends the process. So untrusted texts are read in the
worker, which first checks that a text names only types that occur in modules, then reads it and
draws its modules. Texts that come from the worker have passed all of this.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import tvm
import tvm_ffi
from tvm import ir, relax
from tvm_ffi.serialization import from_json_graph_str

from irviz.errors import IrvizError, LoadError
from irviz.ir.function_graph import extract
from irviz.ir.module_functions import drawable_functions, relax_functions
from irviz.loaders.file_limits import FileError, limits_for, read_in_worker, seconds_for
from irviz.worker import responses
from irviz.worker.sandbox import limited_memory

_BASIC_TYPES = """
    None int bool float DataType Device ffi.String ffi.Bytes ffi.Shape ffi.Tensor ffi.Array ffi.Map
    ffi.List ffi.Dict ffi.BigInt target.Target target.TargetKind
"""
_ADMITTED_TYPE = re.compile(
    "|".join(map(re.escape, _BASIC_TYPES.split()))
    + r"|(?:ir|prim|relax|tirx|s_tir)\.[A-Za-z0-9_.]+"
)
# Passes, searches and builders hold functions, files and processes.
_EXCLUDED_TYPE = re.compile(
    r".*Pass|.*Builder|.*Database|s_tir\.meta_schedule\..*|relax\.(?:vm|dpl)\..*"
    r"|s_tir\.Schedule|s_tir\.TensorIntrin|relax\.transform\..*"
)
# A registered function that TVM calls by name: modules contain those that infer types.
_FUNCTION_TYPE, _INFERENCE = "ir.EnvFunc", "tvm.relax.type."
# TVM compiles, links and loads what these hold when the module runs.
_COMPILED_TYPES = {"ffi.Module", "runtime.Module"}


class TvmJsonError(IrvizError, ValueError):
    """A text is refused; the message follows a colon."""


def loaded(text: str, content: dict[str, Any]) -> object:
    """Return the object in a text whose parsed JSON is `content`.

    `tvm.ir.load_json` scans each text for what older versions of TVM wrote, which takes most of its
    time. A text of this version is not scanned.
    """
    if content.get("metadata") == {"tvm_version": tvm.__version__}:
        # written anew, so that TVM reads exactly what was checked
        return from_json_graph_str(json.dumps(content))
    return tvm.ir.load_json(text)


def reason_of(failure: Exception) -> str:
    """Return the last line of a TVM error, which gives the reason."""
    lines = str(failure).strip().splitlines() or [type(failure).__name__]
    return lines[-1].strip()[:500]


def parsed(text: str) -> dict[str, Any]:
    """Parse a text; raise TvmJsonError if it is not TVM's JSON."""
    if not text.strip():
        raise TvmJsonError("it is empty")
    try:
        content = json.loads(text, object_pairs_hook=unique_keys)
    except (ValueError, RecursionError) as failure:
        raise TvmJsonError(f"it is not JSON ({failure})") from None
    nodes = content.get("nodes") if isinstance(content, dict) else None
    if not isinstance(nodes, list) or "root_index" not in content:
        raise TvmJsonError("it is JSON without TVM's 'nodes' and 'root_index'")
    found: dict[str, Any] = content
    return found


def types_of(content: dict[str, Any]) -> set[str]:
    """Return the types that a text names; raise TvmJsonError for a node without one."""
    types = set()
    for node in content["nodes"]:
        name = node.get("type") if isinstance(node, dict) else None
        if not isinstance(name, str):
            raise TvmJsonError("it has a node without a type")
        is_function = name == _FUNCTION_TYPE
        is_inference = is_function and str(node.get("data")).startswith(_INFERENCE)
        types.add("" if is_inference else name)
    return types - {""}


def _check_types(types: set[str]) -> None:
    """Raise TvmJsonError for a type that no module contains."""
    foreign = (
        name
        for name in types
        if not _ADMITTED_TYPE.fullmatch(name)
        or _EXCLUDED_TYPE.fullmatch(name)
        or name == _FUNCTION_TYPE
    )
    if first := min(foreign, default=""):
        raise TvmJsonError(f"it names {first!r}, which no module contains")


def unique_keys(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """Return a JSON object; raise ValueError if a key occurs twice, as readers differ on that."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _module(text: str, content: dict[str, Any]) -> ir.IRModule:
    """Return the module in a text whose types were checked; raise TvmJsonError for others."""
    found = loaded(text, content)
    if not isinstance(found, ir.IRModule):
        raise TvmJsonError(f"it holds a {type(found).__name__}, not an IRModule")
    return found


def _answered(text: str) -> ir.IRModule:
    """Return the module in a worker's answer; raise TvmJsonError for what no module contains."""
    content = _decoded(text)
    _check_types(types_of(content))
    content["metadata"] = {"tvm_version": tvm.__version__}  # as this version wrote it
    return _module(text, content)


def _decoded(text: str) -> Any:
    """Parse a text that is written anew before TVM reads it: a key may occur twice."""
    try:
        return msgspec.json.decode(text)
    except msgspec.MsgspecError:  # it has an infinity, NaN or half of a character
        return json.loads(text)


responses.register(ir.IRModule, lambda mod: str(tvm.ir.save_json(mod)), _answered)


MEMORY_RATIO = 100
"""The memory for reading a text, as a multiple of its size."""


def module_from_json(text: str, name: str) -> ir.IRModule:
    """Return the IRModule in a text; errors call the file `name`. Raises LoadError.

    Runs in the worker, because a damaged text may crash the process.
    """
    wrong = f"{name!r} is not an IRModule in TVM's JSON"
    advice = "write one with open(path, 'w').write(tvm.ir.save_json(mod))"
    try:
        content = parsed(text)
        types = types_of(content)
        if types & _COMPILED_TYPES:
            raise LoadError(
                f"{name!r} carries compiled or C code, which would be run with it, and was not "
                "read: save the module without its external_mods"
            )
        _check_types(types)
        check_written_size(content)
        mod = _module(text, content)
        draw_all(mod)
    except (LoadError, MemoryError):
        raise
    except Exception as failure:  # TVM raises errors of any class
        raise LoadError(f"{wrong}: {reason_of(failure)}; {advice}") from None
    return mod


# --- lists of objects, which share what they have in common -------------------------------------


def objects_to_json(objects: Sequence[object]) -> str:
    """Serialize modules, functions and tensors to one text; shared parts occur once.

    So variables shared by several modules are the same objects again when the text is read. Raises
    TvmJsonError for an object that TVM cannot write.
    """
    try:
        return str(tvm.ir.save_json(tvm_ffi.Array(list(objects))))
    except Exception as failure:  # TVM raises errors of any class from C++
        raise TvmJsonError(reason_of(failure)) from failure


def objects_from_json(text: str) -> list[object]:
    """Return the objects in a text that `objects_to_json` wrote, after the worker has read it.

    Raises TvmJsonError for another text, or if the worker cannot read it.
    """
    try:
        read_in_worker(_check_objects, text, seconds=seconds_for(len(text), is_text=True))
    except FileError as failure:
        raise TvmJsonError(f"it {failure}") from None
    return read_objects(text)


def _check_objects(text: str) -> None:
    """Read and draw the objects in a text; runs in the worker."""
    try:
        with limits_for(len(text), MEMORY_RATIO):
            content = parsed(text)
            _check_types(types_of(content))
            check_written_size(content)
            objects = _listed(loaded(text, content))
            began = time.process_time()
            _draw_objects(objects)
            _check_drawing_time(began)
    except (FileError, TvmJsonError):
        raise
    except Exception as failure:  # TVM raises errors of any class
        raise TvmJsonError(reason_of(failure)) from None


def read_objects(text: str) -> list[object]:
    """Return the objects in a text that the worker has already read."""
    return _listed(loaded(text, _decoded(text)))


def _listed(found: object) -> list[object]:
    if not isinstance(found, tvm_ffi.Array):
        raise TvmJsonError(f"it holds a {type(found).__name__}, not a list of objects")
    return list(found)


# --- Draw what was read, which the caller will do again, within limits of time and memory --------


DRAWING_BYTES, DRAWING_SECONDS = 1 << 30, 30.0
"""The memory and CPU time for drawing a module."""


def draw_all(mod: ir.IRModule) -> None:
    """Do all the work on a module that drawing it requires.

    Raises FileError if that takes too much memory or time.
    """
    began = time.process_time()
    try:
        with limited_memory(DRAWING_BYTES):
            for name in relax_functions(mod):
                extract(mod, name)
            mod.script()
    except MemoryError:
        raise FileError(
            f"takes more than {DRAWING_BYTES:,} bytes of memory to draw: give a smaller module"
        ) from None
    _check_drawing_time(began)


def _check_drawing_time(began: float) -> None:
    """Raise FileError if drawing has taken too much CPU time since `began`."""
    seconds = time.process_time() - began
    if seconds > DRAWING_SECONDS:
        raise FileError(
            f"takes {seconds:.0f} s to draw, and at most {DRAWING_SECONDS:g} s are admitted: "
            "give a smaller module"
        )


def _draw_objects(objects: Sequence[object]) -> None:
    """Use objects as a session does, to see whether the process survives.

    An error is ignored: a module that cannot be printed can be saved, and must be read again.
    """
    drawn: set[int] = set()
    for one in objects:
        if isinstance(one, ir.IRModule):
            _ignore_error(ir.IRModule({}, attrs=one.attrs, global_infos=one.global_infos).script)
            for name, function in drawable_functions(one).items():
                if function.__chandle__() not in drawn:  # modules share functions
                    drawn.add(function.__chandle__())
                    if isinstance(function, relax.Function):
                        _ignore_error(extract, one, name)
                    _ignore_error(function.script)
        else:
            _ignore_error(one.numpy if isinstance(one, tvm.runtime.Tensor) else one.__str__)


def _ignore_error(function: Callable[..., object], *arguments: object) -> None:
    try:
        with limited_memory(DRAWING_BYTES):
            function(*arguments)
    except MemoryError:
        raise
    except Exception:  # noqa: S110 - as above
        pass


# --- Refuse modules whose text would be far larger than they are ---------------------------------
#
# Objects in a module are shared: a tuple of twice the same tuple takes a few bytes, and its type is
# written out twice. Thirty of them, one in the other, are a text of gigabytes.


_MOST, _FOR_EACH = 10_000_000, 100
"""The objects in a text, and how many more for each object in the module; models have 15."""
_NUMBERS = frozenset({"ir.IntImm", "ir.FloatImm", "ir.Span", "int", "bool", "float"})
"""What has integers that refer to no other object."""


def check_written_size(content: Mapping[str, Any]) -> None:
    """Raise FileError if an object in TVM's JSON has too many parts when each is written out.

    An object is listed after those that it refers to.
    """
    nodes = content["nodes"]
    most = _MOST + _FOR_EACH * len(nodes)
    sizes: list[int] = []
    for node in nodes:
        parts = (sizes[at] for at in _references(node) if 0 <= at < len(sizes))
        sizes.append(1 + sum(parts))
        if sizes[-1] > most and len(sizes) - 1 != content.get("root_index"):
            raise FileError(
                f"has objects that contain each other so often that its text would have more than "
                f"{most:,} parts: give a smaller module"
            )


def _references(node: Mapping[str, Any]) -> Iterator[int]:
    """Yield the indices of the objects that one contains."""
    data = None if node.get("type") in _NUMBERS else node.get("data")
    values: Sequence[object] = list(data.values()) if isinstance(data, dict) else ()
    for value in data if isinstance(data, list) else values:
        if type(value) is int:
            yield value

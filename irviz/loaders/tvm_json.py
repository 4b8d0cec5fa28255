"""Read IRModules and other objects from TVM's JSON (`tvm.ir.save_json`).

TVM's reader trusts the text: it makes an object of any registered type, compiled code and parts of
TVM's runtime included, and a wrong index ends the process. So untrusted texts are read in the
worker, which first checks that a text names only types that occur in modules, then reads it and
draws its modules. Texts that come from the worker have passed all of this.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence

import tvm
import tvm_ffi
from tvm import ir, relax

from irviz.errors import LoadError
from irviz.ir.function_graph import extract
from irviz.ir.module_functions import drawable_functions
from irviz.ir.module_json import (
    COMPILED_TYPES,
    TvmJsonError,
    foreign_type,
    loaded,
    parsed,
    reason_of,
    types_of,
)
from irviz.loaders.file_limits import DRAWING_BYTES, FileError, memory_for, seconds_for
from irviz.loaders.read_in_worker import (
    check_drawing_time,
    check_written_size,
    draw_all,
    read_in_worker,
)
from irviz.worker.sandbox import limited_memory

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
    except TvmJsonError as failure:
        raise LoadError(f"{wrong}: {failure}; {advice}") from None
    if types & set(COMPILED_TYPES):
        raise LoadError(
            f"{name!r} carries compiled or C code, which would be run with it, and was not read: "
            "save the module without its external_mods"
        )
    if foreign := foreign_type(types):
        raise LoadError(f"{wrong}: it names {foreign!r}, which no module contains; {advice}")
    try:
        check_written_size(content)
        mod = loaded(text, content)
        if not isinstance(mod, ir.IRModule):
            raise TvmJsonError(f"it holds a {type(mod).__name__}, not an IRModule")
        draw_all(mod)
    except (MemoryError, FileError):
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
        with memory_for(len(text), MEMORY_RATIO):
            content = parsed(text)
            if foreign := foreign_type(types_of(content)):
                raise TvmJsonError(f"it names {foreign!r}, which no module contains")
            check_written_size(content)
            objects = _listed(loaded(text, content))
            began = time.process_time()
            _draw_objects(objects)
            check_drawing_time(began)
    except (FileError, TvmJsonError):
        raise
    except Exception as failure:  # TVM raises errors of any class
        raise TvmJsonError(reason_of(failure)) from None


def read_objects(text: str) -> list[object]:
    """Return the objects in a text that the worker has already read."""
    return _listed(loaded(text, json.loads(text)))


def _listed(found: object) -> list[object]:
    if not isinstance(found, tvm_ffi.Array):
        raise TvmJsonError(f"it holds a {type(found).__name__}, not a list of objects")
    return list(found)


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

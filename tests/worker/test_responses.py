"""Answers of a worker are data: they have the type that was asked for, and reading runs nothing."""

import functools
import gc
import os
import pickle
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import msgspec
import numpy as np
import pytest
import tvm_ffi
from numpy.typing import NDArray
from tvm import ir

import irviz.loaders.tvm_json  # noqa: F401 - modules in answers
from irviz.course.mlp import MyModule
from irviz.errors import NumPyError, RunError, UntrustedError
from irviz.loaders.loaded_model import Loaded
from irviz.model.runs.run_result import RunResult
from irviz.worker import responses
from irviz.worker.responses import (
    ANSWER,
    UnreadableAnswerError,
    answer_type,
    pack_answer,
    pack_failure,
    unpack_answer,
)
from irviz.worker.shared_arrays import (
    answer_place,
    dumps,
    is_mapped,
    is_shared,
    loads,
    shared,
)
from irviz.worker.supervisor import CrashedError, Worker

Array = NDArray[np.generic]
Arrays = dict[str, Array]

needs_files = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux has anonymous files"
)


def weights():
    return {
        "w": np.arange(30_000, dtype="float32").reshape(100, 300),
        "b": np.arange(7, dtype="int8"),
        "half": np.ones((3, 5), "float16")[:, ::2],
        "empty": np.zeros((0, 3)),
        "brain": np.arange(5).astype(ml_dtypes.bfloat16),
        "scalar": np.asarray(True),
    }


def fixed(array):
    array.flags.writeable = False
    return array


def sent(value, kind, place=None):
    """Return a value as it is after it was sent."""
    number = None if place is None else place.number
    return unpack_answer(pack_answer(value, number), place, kind)[0]


# --- what is sent ---------------------------------------------------------------------------------


class Colour(Enum):
    RED = "red"


class Pair(NamedTuple):
    name: str
    places: tuple[int, ...] = ()


@dataclass(frozen=True)
class Everything:
    pairs: tuple[Pair, ...]
    by_name: Mapping[str, float | None]
    colour: Colour
    path: Path | None
    content: bytes
    arrays: tuple[Array | None, ...]
    text: object = field(default="")


def test_a_value_is_what_it_was():
    one = Everything(
        (Pair("a", (1, 2)), Pair("b")),
        {"x": 0.5, "nan": float("nan"), "none": None},
        Colour.RED,
        Path("/tmp"),
        b"\0\xff",
        (np.arange(3), None),
        "words",
    )
    found = sent(one, Everything)
    assert repr(found) == repr(one)


def test_arrays_keep_their_values_types_and_whether_they_can_be_written():
    before = weights()
    fixed(before["b"])
    after = sent(before, Arrays)
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array)
        assert after[name].dtype == array.dtype
        assert after[name].flags.writeable == array.flags.writeable


def test_a_module_is_what_it_was():
    found = sent(Loaded(MyModule, {"w": np.ones(3)}), Loaded)
    assert tvm_ffi.structural_equal(found.module, MyModule)
    assert found.module.script() == MyModule.script()


def test_the_type_of_an_answer_is_the_annotation_of_the_function():
    def annotated(_: int) -> tuple[float, ...]: ...

    assert answer_type(annotated) == tuple[float, ...]
    assert answer_type(functools.partial(annotated, 1)) == tuple[float, ...]
    assert answer_type(lambda: 1) is answer_type(os.getpid) is answer_type(int) is Any


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (KeyError("what"), "'what'"),
        (RunError("it fails"), "it fails"),
        (UntrustedError("it", frozenset("f")), "it would run code of 'f'"),
        (NumPyError("line 3", "a loop"), "line 3"),
        (FileNotFoundError(2, "none", "name"), "none"),
        (MemoryError(), ""),
    ],
)
def test_an_exception_is_of_its_class_again(failure, words):
    packed = unpack_answer(pack_failure(failure, "a traceback"), None, int)[1]
    found = responses.exception(packed)
    assert type(found) is type(failure)
    assert words in str(found)
    assert getattr(found, "construct", None) == getattr(failure, "construct", None)
    assert packed.text == "a traceback"


def test_an_exception_of_an_unknown_class_is_told_in_words():
    class OwnError(ValueError):
        pass

    for failure, kind in ((OwnError("mine"), ValueError), (SystemExit("mine"), RuntimeError)):
        found = responses.exception(unpack_answer(pack_failure(failure, ""), None, int)[1])
        assert type(found) is kind
        assert str(found) == f"{type(failure).__name__}: mine"


# --- what is not an answer -----------------------------------------------------------------------

RAN = []


class Runs:
    """Its pickle runs code as it is read."""

    def __reduce__(self):
        return _run, ()


def _run():
    RAN.append("it ran")


def packed(value, **others):
    """Return an answer as a process that lies would write it."""
    given = [msgspec.Raw(msgspec.msgpack.encode(value)), None, others.pop("size", 0), False]
    return msgspec.msgpack.encode(given)


def array(dtype="<f4", shape=(2,), content=bytes(8)):
    return [dtype, list(shape), False, content]


FALSE = {
    "a pickle": (pickle.dumps(Runs()), int),
    "a pickle in an answer": (packed(pickle.dumps(Runs())), RunResult),
    "a pickle in the place of an array": (
        packed(array(content=pickle.dumps(Runs()), dtype="O")),
        Array,
    ),
    "nothing": (b"", int),
    "a text for a number": (packed("1"), int),
    "fields that are missing": (packed({"outputs": []}), RunResult),
    "a number for arrays": (packed({"outputs": 7, "seconds": 1.0}), RunResult),
    "a text for seconds": (packed({"outputs": [], "seconds": "<script>"}), RunResult),
    "fewer bytes than its shape": (packed(array(shape=(3,))), Array),
    "a shape below zero": (packed(array(shape=(-2,))), Array),
    "a shape whose size overflows": (packed(array(shape=(2**62, 2**62))), Array),
    "a thousand axes": (packed(array(shape=[1] * 1000)), Array),
    "a dtype with objects": (packed(array(dtype="O")), Array),
    "a dtype of texts": (packed(array(dtype="<U2")), Array),
    "a dtype with fields": (packed(array(dtype="i4,O")), Array),
    "a dtype that is no name": (packed(array(dtype="__import__('os')")), Array),
    "an offset without a file": (packed(array(content=0)), Array),
    "an offset below zero": (packed(array(content=-8)), Array),
    "a file that is not there": (packed(array(content=0), size=1 << 20), Array),
    "a module that is no module": (packed({"module": "{}"}), Loaded),
    "a module with compiled code": (
        packed({"module": '{"nodes": [{"type": "ffi.Module"}], "root_index": 0}'}),
        Loaded,
    ),
    "what is nested without end": (msgspec.msgpack.encode(None).join([b"\x91" * 100_000]), Any),
    "a list that says it is huge": (b"\xdd\xff\xff\xff\xff", list[int]),
}


@pytest.mark.parametrize("name", FALSE)
def test_what_is_no_answer_is_refused(name):
    content, kind = FALSE[name]
    with pytest.raises(UnreadableAnswerError):
        unpack_answer(content, None, kind)
    assert RAN == []


def test_the_pickles_of_these_tests_run_where_they_are_unpickled():
    pickle.loads(FALSE["a pickle"][0])
    assert RAN.pop() == "it ran"


@needs_files
@pytest.mark.parametrize("offset", [1, 1 << 20, 1 << 62])
def test_an_array_outside_of_the_file_is_refused(offset):
    with answer_place() as place:
        os.ftruncate(place.number, 8)
        with pytest.raises(UnreadableAnswerError):
            unpack_answer(packed(array(content=offset), size=8), place, Array)


@needs_files
def test_a_file_that_is_smaller_than_said_is_refused():
    with answer_place() as place:
        os.ftruncate(place.number, 8)
        with pytest.raises(UnreadableAnswerError):
            unpack_answer(packed(array(content=0), size=1 << 40), place, Array)


def test_an_exception_names_no_class_that_is_none():
    for module, name in (("os", "system"), ("subprocess", "Popen"), ("builtins", "SystemExit")):
        lie = responses.Failure([(module, name)], ["true"], {}, "")
        assert type(responses.exception(lie)) is RuntimeError


def test_a_module_is_refused_for_the_types_that_it_names():
    text = '{"nodes": [{"type": "ffi.Module"}], "root_index": 0}'
    with pytest.raises(UnreadableAnswerError, match=r"it names 'ffi\.Module', which no module"):
        unpack_answer(packed(text), None, ir.IRModule)


@pytest.mark.worker
def test_a_pickle_that_a_worker_writes_into_its_pipe_is_not_read():
    def writes(content):
        from irviz.worker import responses

        responses.send_frame(responses.ANSWER, content)

    worker = Worker()
    with pytest.raises(CrashedError, match="an answer that cannot be read"):
        worker.call(writes, pickle.dumps(Runs()))
    frame = struct.pack("<cQ", ANSWER, 1 << 62)
    with pytest.raises(CrashedError, match="an answer that cannot be read"):
        worker.call(_writes, frame)
    assert RAN == []
    assert worker.call(abs, -1) == 1
    worker.stop()


def _writes(content: bytes) -> None:
    from irviz.worker import responses

    os.write(responses.pipe_number(), content)


# --- large arrays ---------------------------------------------------------------------------------


@needs_files
def test_large_arrays_of_an_answer_are_written_into_the_file_for_it_and_not_sent():
    with answer_place() as place:
        answer = pack_answer({name: fixed(one) for name, one in weights().items()}, place.number)
        found = unpack_answer(answer, place, Arrays)[0]
    assert len(answer) < 2000
    for name, array in weights().items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
    assert is_shared(found["w"])
    assert shared(found)["w"] is found["w"]
    assert is_mapped(loads(dumps(found["w"])))
    with pytest.raises(ValueError, match="read-only"):
        found["w"][0] = 1


@needs_files
def test_an_array_of_an_answer_that_could_be_written_can_be_written_and_is_shared_with_nobody():
    with answer_place() as place:
        found = sent([weights()["w"], fixed(weights()["w"])], list[Array], place)
    assert not is_shared(found[0])
    found[0][:] = -1
    np.testing.assert_array_equal(found[1], weights()["w"])
    assert not found[1].flags.writeable


@needs_files
def test_where_there_is_no_room_arrays_are_sent():
    number = os.open("/dev/full", os.O_RDWR)
    found = unpack_answer(pack_answer(weights()["w"], number), None, Array)[0]
    os.close(number)
    np.testing.assert_array_equal(found, weights()["w"])
    found[:] = 0  # it can be written as before


@needs_files
def test_memory_of_an_answer_is_given_back_with_its_last_array():
    gc.collect()
    files = len([*Path("/proc/self/fd").iterdir()])
    with answer_place() as place:
        found = sent([fixed(weights()["w"])], list[Array], place)
    row = found[0][1]
    del found
    gc.collect()
    assert row[0] == 300
    assert is_shared(row)
    del row
    gc.collect()
    assert len([*Path("/proc/self/fd").iterdir()]) == files


@needs_files
def test_a_worker_cannot_cut_off_what_its_parent_has_mapped():
    with answer_place() as place:
        kept = place.open(os.O_RDWR)
        found = sent(weights()["w"], Array, place)
    with pytest.raises(PermissionError):
        os.ftruncate(kept, 0)
    os.close(kept)
    np.testing.assert_array_equal(found, weights()["w"])


@pytest.mark.worker
def test_what_a_worker_answered_outlives_it():
    worker = Worker()
    try:
        found = worker.call(_made)
    finally:
        worker.stop()
    np.testing.assert_array_equal(found, np.arange(100_000))
    assert is_shared(found)


def _made() -> Array:
    array = np.arange(100_000)
    array.flags.writeable = False
    return array

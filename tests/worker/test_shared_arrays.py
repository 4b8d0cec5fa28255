"""Large arrays are mapped by workers, and nothing that they do is seen elsewhere."""

import gc
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from irviz.worker import shared_arrays
from irviz.worker.shared_arrays import (
    UnsharedError,
    answer_place,
    dumps,
    dumps_answer,
    is_mapped,
    is_shared,
    loads,
    loads_answer,
    shared,
)
from irviz.worker.supervisor import Worker

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux has anonymous files"
)


def weights():
    return {
        "w": np.arange(30_000, dtype="float32").reshape(100, 300),
        "b": np.arange(7, dtype="int8"),
        "half": np.ones((3, 5), "float16")[:, ::2],
        "empty": np.zeros((0, 3)),
    }


def test_copies_have_the_same_values_and_cannot_be_written():
    before = weights()
    after = shared(before)
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array)
        assert after[name].dtype == array.dtype
    before["w"][:] = 0
    assert after["w"][-1, -1] == 29_999
    with pytest.raises(ValueError, match="read-only"):
        after["w"][0] = 1


def test_what_is_shared_is_not_copied_again_and_what_is_small_stays_as_it_is():
    first = shared(weights())
    assert all(one is two for one, two in zip(first.values(), shared(first).values(), strict=True))
    few = {"b": np.ones(3)}
    assert shared(few)["b"] is few["b"]
    words = {"name": "no array", "objects": np.array([None] * 99_999)}
    assert shared(words) == words


def test_a_shared_array_is_sent_as_its_place():
    array = shared(weights())["w"]
    assert len(dumps(array)) < 1000 < len(dumps(array, whole=True))
    assert is_mapped(loads(dumps(array)))
    for view in (array, array[3:7], array.reshape(-1), np.asarray(array)):
        found = loads(dumps(view))
        np.testing.assert_array_equal(found, view)
        assert is_mapped(found) == (found.ctypes.data % 64 == 0)  # what kernels can take
    with_gaps = array[:, ::2]
    assert not is_shared(with_gaps)
    np.testing.assert_array_equal(loads(dumps(with_gaps)), with_gaps)


def test_what_one_call_writes_is_seen_neither_by_the_next_nor_by_the_owner():
    array = shared(weights())["w"]
    first = loads(dumps(array))
    first[:] = -1
    assert array[-1, -1] == 29_999
    assert loads(dumps(array))[-1, -1] == 29_999


def test_arrays_of_one_call_share_one_map():
    arrays = shared(weights())
    one, two = loads(dumps([arrays["w"], arrays["b"]]))
    assert shared_arrays._segment_of(one).begin == shared_arrays._segment_of(two).begin
    assert one.ctypes.data % 64 == two.ctypes.data % 64 == 0


def test_memory_is_given_back_with_its_last_array():
    gc.collect()
    before, files = dict(shared_arrays._segments), len([*Path("/proc/self/fd").iterdir()])
    arrays = shared(weights())
    view = arrays["w"][1]
    packed = dumps(arrays["w"])
    mapped = loads(packed)
    assert len(shared_arrays._segments) == len(before) + 2
    del arrays, mapped
    gc.collect()
    assert view[0] == 300
    assert is_shared(view)
    del view
    gc.collect()
    assert shared_arrays._segments == before
    assert len([*Path("/proc/self/fd").iterdir()]) == files
    with pytest.raises(UnsharedError):
        loads(packed)


def test_another_file_in_the_place_of_the_memory_is_not_mapped(tmp_path):
    arrays = shared(weights())
    segment = shared_arrays._segment_of(arrays["w"])
    packed = dumps(arrays["w"])
    (tmp_path / "other").write_bytes(b"x" * segment.size)
    kept, other = os.dup(segment.number), os.open(tmp_path / "other", os.O_RDONLY)
    os.dup2(other, segment.number)
    with pytest.raises(UnsharedError, match="another file"):
        loads(packed)
    os.dup2(kept, segment.number)
    np.testing.assert_array_equal(loads(packed), arrays["w"])
    os.close(kept)
    os.close(other)


@pytest.mark.worker
def test_a_worker_maps_what_its_parent_shares():
    worker = Worker()
    array = shared(weights())["w"]
    try:
        assert worker.call(_sum_and_overwrite, dumps(array)) == float(array.sum())
        assert worker.call(_sum_and_overwrite, dumps(array)) == float(array.sum())
    finally:
        worker.stop()


def _sum_and_overwrite(packed):
    from irviz.worker.shared_arrays import is_mapped, loads

    array = loads(packed)
    assert is_mapped(array)
    total = float(array.sum())
    array[:] = 0
    return total


def fixed(array):
    array.flags.writeable = False
    return array


def test_large_arrays_of_an_answer_are_written_into_the_file_for_it_and_not_sent():
    with answer_place() as place:
        answer = dumps_answer({name: fixed(one) for name, one in weights().items()}, place)
        found = loads_answer(answer, place)
    assert len(answer) < 2000
    for name, array in weights().items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
    assert is_shared(found["w"])
    assert shared(found)["w"] is found["w"]
    assert is_mapped(loads(dumps(found["w"])))
    with pytest.raises(ValueError, match="read-only"):
        found["w"][0] = 1


def test_an_array_of_an_answer_that_could_be_written_can_be_written_and_is_shared_with_nobody():
    with answer_place() as place:
        found = loads_answer(dumps_answer([weights()["w"], fixed(weights()["w"])], place), place)
    assert not is_shared(found[0])
    found[0][:] = -1
    np.testing.assert_array_equal(found[1], weights()["w"])
    assert not found[1].flags.writeable


def test_where_files_of_other_processes_are_hidden_arrays_are_sent():
    with answer_place() as place:
        elsewhere = place._replace(number=99_999)
        answers = [dumps_answer(weights()["w"], elsewhere), dumps_answer(weights()["w"], None)]
        for answer in answers:
            found = loads_answer(answer, place)
            np.testing.assert_array_equal(found, weights()["w"])
            found[:] = 0  # it can be written as before
    one, other = (loads_answer(dumps_answer(fixed(weights()["w"]), None), None) for _ in range(2))
    np.testing.assert_array_equal(one, other)


def test_memory_of_an_answer_is_given_back_with_its_last_array():
    gc.collect()
    before, files = dict(shared_arrays._segments), len([*Path("/proc/self/fd").iterdir()])
    with answer_place() as place:
        found = loads_answer(dumps_answer([fixed(weights()["w"]), 7], place), place)
    row = found[0][1]
    del found
    gc.collect()
    assert row[0] == 300
    assert is_shared(row)
    del row
    gc.collect()
    assert shared_arrays._segments == before
    assert len([*Path("/proc/self/fd").iterdir()]) == files


def test_a_worker_cannot_cut_off_what_its_parent_has_mapped():
    with answer_place() as place:
        kept = place.open(os.O_RDWR)
        found = loads_answer(dumps_answer(weights()["w"], place), place)
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


def _made():
    array = np.arange(100_000)
    array.flags.writeable = False
    return array

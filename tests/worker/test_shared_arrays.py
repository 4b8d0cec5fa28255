"""Large arrays are mapped by workers, and nothing that they do is seen elsewhere."""

import gc
import os
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from irviz.worker.shared_arrays import (
    UnsharedError,
    dumps,
    is_mapped,
    is_shared,
    loads,
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


def memory():
    """Return the descriptors of irviz's memory that are open, and the places where it is mapped."""
    descriptors = set()
    for one in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # another thread closed it after it was listed
            if "/memfd:irviz-" in str(one.readlink()):
                descriptors.add(int(one.name))
    maps = Path("/proc/self/maps").read_text().splitlines()
    return descriptors, {one.split()[0] for one in maps if "/memfd:irviz-" in one}


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
    _, before = memory()
    one, two = loads(dumps([arrays["w"], arrays["b"]]))
    assert len(memory()[1] - before) == 1
    assert one.ctypes.data % 64 == two.ctypes.data % 64 == 0


def test_memory_is_given_back_with_its_last_array():
    gc.collect()
    before = memory()
    arrays = shared(weights())
    view = arrays["w"][1]
    packed = dumps(arrays["w"])
    mapped = loads(packed)
    assert len(memory()[1] - before[1]) == 2
    del arrays, mapped
    gc.collect()
    assert view[0] == 300
    assert is_shared(view)
    del view
    gc.collect()
    assert memory() == before
    with pytest.raises(UnsharedError):
        loads(packed)


def test_another_file_in_the_place_of_the_memory_is_not_mapped(tmp_path):
    before, _ = memory()
    arrays = shared(weights())
    number = min(memory()[0] - before)  # the map has another
    packed = dumps(arrays["w"])
    (tmp_path / "other").write_bytes(b"x" * os.fstat(number).st_size)
    kept, other = os.dup(number), os.open(tmp_path / "other", os.O_RDONLY)
    os.dup2(other, number)
    with pytest.raises(UnsharedError, match="another file"):
        loads(packed)
    os.dup2(kept, number)
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

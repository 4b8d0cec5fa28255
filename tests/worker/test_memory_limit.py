"""What asks for more memory than it may take gets an error, and its process lives on."""

import mmap
import threading

import numpy as np
import psutil
import pytest

from irviz.worker.sandbox import default_memory_limit, limited_memory
from irviz.worker.supervisor import Worker

MB = 10**6


@pytest.fixture(scope="module")
def worker():
    made = Worker(lambda: None)
    yield made
    made.stop()


def at_once():
    np.ones(500 * MB, "uint8")


def untouched():
    np.empty(10**12, "uint8")


def little_by_little():
    kept = []
    while True:
        kept.append(bytearray(MB))


def in_another_thread():
    failures = []

    def work():
        try:
            little_by_little()
        except MemoryError as failure:
            failures.append(failure)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    raise failures[0]


@pytest.mark.worker
@pytest.mark.parametrize("takes", [at_once, untouched, little_by_little, in_another_thread])
def test_what_takes_too_much_is_an_error_and_is_given_back(worker, takes):
    def size():
        return psutil.Process().memory_info().rss

    worker.call(np.ones, 10)
    before = worker.call(size)
    for _ in range(3):
        with pytest.raises(MemoryError):
            worker.call(takes, memory=200 * MB)
    assert worker.call(size) < before + 150 * MB  # what is kept of one call would be 200
    assert len(worker.call(bytearray, 150 * MB, memory=400 * MB)) == 150 * MB


def test_what_others_hold_is_not_counted():
    def shares():
        return len(mmap.mmap(-1, 300 * MB))

    with limited_memory(100 * MB):
        assert shares() == 300 * MB


def test_the_limit_is_over_with_the_call():
    with pytest.raises(MemoryError), limited_memory(100 * MB):
        bytearray(300 * MB)
    assert len(bytearray(300 * MB)) == 300 * MB
    with limited_memory(None):
        assert len(bytearray(300 * MB)) == 300 * MB


def test_four_fifths_of_what_is_free_may_be_taken(tmp_path):
    here = default_memory_limit(tmp_path)
    assert 0.5 * psutil.virtual_memory().available < here < psutil.virtual_memory().total
    (tmp_path / "memory.max").write_text("1000\n", encoding="ascii")
    (tmp_path / "memory.current").write_text("600\n", encoding="ascii")
    assert default_memory_limit(tmp_path) == 320
    (tmp_path / "memory.stat").write_text("anon 5\ninactive_file 500\n", encoding="ascii")
    assert default_memory_limit(tmp_path) == 720  # what the system only keeps of files is free
    (tmp_path / "memory.max").write_text("max\n", encoding="ascii")
    assert abs(default_memory_limit(tmp_path) - here) < 0.5 * here

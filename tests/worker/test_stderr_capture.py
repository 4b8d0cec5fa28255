"""What C++ writes to standard error is caught, and only meanwhile."""

import os
import sys
import threading

import pytest

from irviz.worker.captured_output import captured_stderr


def test_what_is_written_to_the_descriptor_is_text(capfd):
    os.write(2, b"before ")
    with captured_stderr() as noise:
        os.write(2, b" warning: \xff\n")
        print("from Python", file=sys.__stderr__, flush=True)
    os.write(2, b"after")
    assert noise.text.startswith("warning: \ufffd\n")
    assert capfd.readouterr().err == "before after"


def test_it_ends_with_an_exception(capfd):
    texts = []

    def fails():
        with captured_stderr() as noise:
            texts.append(noise)
            os.write(2, b"said")
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert texts[0].text == "said"
    os.write(2, b"free")
    assert capfd.readouterr().err == "free"


def test_one_inside_of_another_has_its_own(capfd):
    with captured_stderr() as outer:
        os.write(2, b"outer")
        with captured_stderr() as inner:
            os.write(2, b"inner")
    assert (outer.text, inner.text) == ("outer", "inner")
    assert capfd.readouterr().err == ""


def test_a_flood_is_cut(capfd):
    with captured_stderr() as noise:
        for _ in range(3_000):
            os.write(2, b"x" * 1_000)
    assert 1_000 < len(noise.text) <= 64 * 1024
    assert capfd.readouterr().err == ""


def test_threads_wait_for_each_other(capfd):
    texts = {}

    def work(name):
        with captured_stderr() as noise:
            for _ in range(20):
                os.write(2, name.encode())
        texts[name] = noise.text

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == {name: name * 20 for name in "abcd"}
    assert capfd.readouterr().err == ""

"""The folder of compiled kernels: private, bounded, and never trusted unchecked."""

import os
import sys
import time

import pytest

from irviz.runtime import kernel_cache as module_under_test
from irviz.runtime.kernel_cache import KernelStore, kernel_store, path_with

KEYS = ["1" * 64, "2" * 64]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the path of the store of this test, which is not there yet."""
    monkeypatch.setenv("IRVIZ_KERNELS", str(tmp_path / "kernels"))
    return tmp_path / "kernels"


@pytest.fixture
def store(folder):  # noqa: ARG001 - the variable is set
    """Return the store of a folder of this test."""
    with kernel_store() as store:
        yield store


def is_used():
    """Tell whether kernels are kept."""
    with kernel_store() as store:
        return store is not None


def put(store, folder, contents=b"a library", keys=KEYS):
    """Add a library and return its path."""
    store.add(keys, contents, ".so")
    return folder / store.library_of(keys[0])


def find(store, key):
    """Return the contents of the library that has a kernel."""
    name = store.library_of(key)
    return None if name is None else store.contents(name)


def test_a_library_is_found_by_the_key_of_each_kernel_in_it(store, folder):
    put(store, folder)
    found = [find(store, key) for key in (*KEYS, "3" * 64)]
    assert found == [b"a library", b"a library", None]


def test_the_folder_is_the_users_alone_and_holds_no_temporary_files(store, folder):
    put(store, folder)
    with store.temporary() as (name, path):
        path.write_bytes(b"half")
        assert store.read(name) == b"half"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.suffix for path in folder.iterdir()} == {".key", ".so"}


@pytest.mark.parametrize(
    "damage", [b"b library", b"a librar", b"", b"a library, and more"], ids=repr
)
def test_a_library_with_other_contents_than_its_name_says_is_not_found(store, folder, damage):
    put(store, folder).write_bytes(damage)
    assert find(store, KEYS[0]) is None


@pytest.mark.parametrize("name", ["", "x", "../evil.so", "\0", "\xff" * 9, "kernels/../x.so"])
def test_a_damaged_key_finds_nothing(store, folder, name):
    put(store, folder)
    (folder / f"{KEYS[0]}.key").write_bytes(name.encode("latin-1"))
    assert find(store, KEYS[0]) is None
    assert find(store, KEYS[1])


def test_a_library_outside_of_the_folder_is_not_found(store, folder, tmp_path):
    inside = put(store, folder)
    outside = tmp_path / inside.name
    inside.rename(outside)
    for name in (str(outside), f"../{outside.name}"):
        assert store.contents(name) is None
    inside.symlink_to(outside)
    assert inside.read_bytes() == b"a library"  # a control: it would be read through the link
    assert find(store, KEYS[0]) is None


def test_a_library_that_is_a_pipe_does_not_block(store, folder):
    path = put(store, folder)
    path.unlink()
    os.mkfifo(path)
    assert find(store, KEYS[0]) is None


def test_a_library_of_another_user_is_not_found(store, folder, monkeypatch):
    put(store, folder)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert find(store, KEYS[0]) is None


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_folder_that_others_can_enter_is_not_used_and_this_is_said(folder, caplog, mode):
    assert is_used()
    folder.chmod(mode)
    assert not is_used()
    module_under_test.say_if_none_are_kept.cache_clear()
    module_under_test.say_if_none_are_kept()
    [record] = caplog.records
    assert record.message.startswith(f"irviz keeps no compiled kernels: {str(folder)!r} cannot be")


@pytest.mark.usefixtures("folder")
def test_a_folder_is_not_used_where_others_can_exchange_it(tmp_path):
    for mode in (0o777, 0o770):
        tmp_path.chmod(mode)
        assert not is_used()
    tmp_path.chmod(0o1777)  # there only owners can
    assert is_used()


def test_a_folder_that_is_exchanged_while_it_is_open_is_used_all_the_same(store, folder, tmp_path):
    put(store, folder)
    folder.rename(tmp_path / "away")
    folder.mkdir(mode=0o700)
    assert find(store, KEYS[0]) == b"a library"
    put(store, tmp_path / "away", b"another", ["3" * 64])
    with store.temporary() as (name, path):
        path.write_bytes(b"half")
        assert (tmp_path / "away" / name).exists()
    store.trim()
    store.clear()
    assert not [*folder.iterdir(), *(tmp_path / "away").iterdir()]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems have no memfd")
def test_what_is_loaded_is_in_memory_and_nobody_can_change_it():
    with path_with(b"a library") as path, path_with(b"another") as other:
        assert path != other
        file = os.open(path, os.O_RDWR)
        assert os.read(file, 99) == b"a library"
        with pytest.raises(PermissionError):
            os.write(file, b"evil")
        os.close(file)
    with path_with(b"a library") as again:
        assert again != path  # or the linker would give the first library


@pytest.mark.parametrize("name", ["", "here"])
def test_without_a_full_path_there_is_no_folder(monkeypatch, name):
    monkeypatch.setenv("IRVIZ_KERNELS", name)
    assert not is_used()


@pytest.mark.usefixtures("store")
def test_what_was_not_used_for_the_longest_time_is_deleted_first(folder):
    opened = os.open(folder, os.O_RDONLY)
    small = KernelStore(opened, folder, most=4000)
    keys = [str(number) * 64 for number in range(6)]
    for number, key in enumerate(keys[:5]):
        path = put(small, folder, bytes([number]) * 700, [key])
        os.utime(path, (number, number))
    small.trim()
    assert all(path.exists() for path in folder.iterdir())  # they fit
    assert find(small, keys[0])  # which is used, and the youngest of them now
    put(small, folder, b"5" * 700, [keys[5]])
    small.trim()
    assert [key for key in keys if find(small, key)] == [keys[0], *keys[4:]]
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 4000
    assert {path.stem for path in folder.glob("*.key")} == {keys[0], *keys[4:]}
    os.close(opened)


def test_what_a_process_left_that_ended_is_deleted_after_an_hour(store, folder):
    put(store, folder)
    left = folder / ".left"
    left.write_bytes(b"half")
    store.trim()
    assert left.exists()
    before = time.time() - 3601
    for path in (folder, *folder.iterdir()):
        os.utime(path, (before, before))
    store.trim()
    assert not left.exists()
    assert find(store, KEYS[0])


def test_one_call_deletes_everything(store, folder):
    put(store, folder)
    store.clear()
    assert not list(folder.iterdir())
    assert find(store, KEYS[0]) is None

"""The folder of compiled kernels: private, bounded, and never trusted unchecked."""

import os
import time

import pytest

from irviz.runtime.local import kernel_store as module_under_test
from irviz.runtime.local.kernel_store import KernelStore, kernel_store

KEYS = ["1" * 64, "2" * 64]


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Return the store of a folder of this test."""
    monkeypatch.setenv("IRVIZ_KERNELS", str(tmp_path / "kernels"))
    return kernel_store()


def put(store, contents=b"a library", keys=KEYS):
    """Add a library and return its path."""
    store.add(keys, contents, ".so")
    return store.folder / store.library_of(keys[0])


def find(store, key):
    """Return the contents of the library that has a kernel."""
    name = store.library_of(key)
    return None if name is None else store.contents(name)


def test_a_library_is_found_by_the_key_of_each_kernel_in_it(store):
    put(store)
    found = [find(store, key) for key in (*KEYS, "3" * 64)]
    assert found == [b"a library", b"a library", None]


def test_the_folder_is_the_users_alone_and_holds_no_temporary_files(store):
    put(store)
    with store.workspace() as folder:
        assert folder.parent == store.folder
    assert store.folder.stat().st_mode & 0o777 == 0o700
    assert {path.suffix for path in store.folder.iterdir()} == {".key", ".so"}


@pytest.mark.parametrize(
    "damage", [b"b library", b"a librar", b"", b"a library, and more"], ids=repr
)
def test_a_library_with_other_contents_than_its_name_says_is_not_found(store, damage):
    put(store).write_bytes(damage)
    assert find(store, KEYS[0]) is None


@pytest.mark.parametrize("name", ["", "x", "../evil.so", "\0", "\xff" * 9, "kernels/../x.so"])
def test_a_damaged_key_finds_nothing(store, name):
    put(store)
    (store.folder / f"{KEYS[0]}.key").write_bytes(name.encode("latin-1"))
    assert find(store, KEYS[0]) is None
    assert find(store, KEYS[1])


def test_a_library_outside_of_the_folder_is_not_found(store, tmp_path):
    inside = put(store)
    outside = tmp_path / inside.name
    inside.rename(outside)
    for name in (str(outside), f"../{outside.name}"):
        assert store.contents(name) is None
    inside.symlink_to(outside)
    assert inside.read_bytes() == b"a library"  # a control: it would be read through the link
    assert find(store, KEYS[0]) is None


def test_a_library_that_is_a_pipe_does_not_block(store):
    path = put(store)
    path.unlink()
    os.mkfifo(path)
    assert find(store, KEYS[0]) is None


def test_a_library_of_another_user_is_not_found(store, monkeypatch):
    put(store)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert find(store, KEYS[0]) is None


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_folder_that_others_can_enter_is_not_used(store, mode):
    assert kernel_store()
    store.folder.chmod(mode)
    assert kernel_store() is None


@pytest.mark.usefixtures("store")
def test_a_folder_is_not_used_where_others_can_exchange_it(tmp_path):
    tmp_path.chmod(0o777)
    assert kernel_store() is None
    tmp_path.chmod(0o1777)  # there only owners can
    assert kernel_store()


@pytest.mark.usefixtures("store")
def test_a_folder_of_another_user_is_not_used(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert kernel_store() is None


def test_a_link_to_a_folder_is_not_used(store, tmp_path, monkeypatch):
    link = tmp_path / "link"
    link.symlink_to(store.folder)
    monkeypatch.setenv("IRVIZ_KERNELS", str(link))
    assert kernel_store() is None


@pytest.mark.parametrize("name", ["", "here"])
def test_without_a_full_path_there_is_no_folder(monkeypatch, name):
    monkeypatch.setenv("IRVIZ_KERNELS", name)
    assert kernel_store() is None


def test_what_was_not_used_for_the_longest_time_is_deleted_first(store):
    small = KernelStore(store.folder, most=4000)
    keys = [str(number) * 64 for number in range(6)]
    for number, key in enumerate(keys[:5]):
        path = put(small, bytes([number]) * 700, [key])
        os.utime(path, (number, number))
    small.trim()
    assert all(path.exists() for path in small.folder.iterdir())  # they fit
    assert find(small, keys[0])  # which is used, and the youngest of them now
    put(small, b"5" * 700, [keys[5]])
    small.trim()
    assert [key for key in keys if find(small, key)] == [keys[0], *keys[4:]]
    assert sum(path.stat().st_size for path in small.folder.iterdir()) <= 4000
    assert {path.stem for path in small.folder.glob("*.key")} == {keys[0], *keys[4:]}


def test_what_a_process_left_that_ended_is_deleted_after_an_hour(store, monkeypatch):
    put(store)
    left = store.folder / "tmp_left"
    left.mkdir()
    (left / "library.o").write_bytes(b"half")
    store.trim()
    assert left.exists()
    later = time.time() + 3601
    monkeypatch.setattr(module_under_test.time, "time", lambda: later)
    store.trim()
    assert not left.exists()
    assert find(store, KEYS[0])


def test_one_call_deletes_everything(store):
    put(store)
    store.clear()
    assert not list(store.folder.iterdir())
    assert find(store, KEYS[0]) is None

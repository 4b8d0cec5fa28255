"""What irviz keeps is in folders that no other user can read, write or exchange."""

import contextlib
import os
import stat
import struct
import sys
from pathlib import Path

import pytest

from irviz.safe_files import open_private_folder, private_folder, say_not_kept

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")


@contextlib.contextmanager
def mask(value):
    before = os.umask(value)
    try:
        yield
    finally:
        os.umask(before)


@pytest.mark.parametrize("value", [0o000, 0o002, 0o022, 0o077])
def test_every_folder_that_is_made_is_the_users_alone(tmp_path, value):
    folder = tmp_path / "cache" / "irviz" / "kernels"
    with mask(value):
        private_folder(folder)
    for one in (folder, folder.parent, folder.parent.parent):
        assert stat.S_IMODE(one.stat().st_mode) == 0o700


def test_what_is_opened_is_the_folder(tmp_path):
    (tmp_path / "mine").mkdir(mode=0o700)
    descriptor = open_private_folder(tmp_path / "mine")
    assert os.path.samestat(os.fstat(descriptor), (tmp_path / "mine").stat())
    os.close(descriptor)


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701, 0o1777])
def test_a_folder_that_others_can_enter_is_refused(tmp_path, mode):
    folder = private_folder(tmp_path / "mine")
    folder.chmod(mode)
    with pytest.raises(OSError, match="others may enter it"):
        private_folder(folder)


@pytest.mark.parametrize("mode", [0o775, 0o770, 0o777, 0o757])
def test_a_folder_in_one_that_a_group_or_others_can_write_to_is_refused(tmp_path, mode):
    folder = private_folder(tmp_path / "cache" / "irviz" / "kernels")
    (tmp_path / "cache").chmod(mode)
    with pytest.raises(OSError, match="its group or others may write to it: see chmod go-w") as why:
        private_folder(folder)
    assert why.value.filename == str(tmp_path / "cache")
    (tmp_path / "cache").chmod(mode | stat.S_ISVTX)  # there only owners exchange what is theirs
    private_folder(folder)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="os.setxattr is Linux's")
def test_a_folder_in_one_that_a_list_lets_another_user_write_to_is_refused(tmp_path):
    folder = private_folder(tmp_path / "cache" / "kernels")
    entries = [(0x01, 7, -1), (0x02, 7, 65534), (0x04, 0, -1), (0x10, 7, -1), (0x20, 0, -1)]
    access = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *one) for one in entries)
    os.setxattr(tmp_path / "cache", "system.posix_acl_access", access)
    with pytest.raises(OSError, match="its group or others may write to it"):
        private_folder(folder)


def test_a_folder_of_another_user_is_refused(tmp_path, monkeypatch):
    folder = private_folder(tmp_path / "mine")
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(OSError, match="it belongs to another user"):
        private_folder(folder)


def test_a_link_is_refused_but_not_one_to_a_folder_above(tmp_path):
    folder = private_folder(tmp_path / "mine" / "kernels")
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        private_folder(tmp_path / "link")
    (tmp_path / "home").symlink_to(tmp_path / "mine")
    private_folder(tmp_path / "home" / "kernels")


@pytest.mark.parametrize(
    "path", ["here", "~/.cache/irviz", "/", "/usr", "/dev/null/irviz", "/proc/irviz"]
)
def test_what_cannot_be_a_private_folder_is_refused(path):
    with pytest.raises(OSError, match=r"no full path|another user|others may|Not a dir|No such"):
        private_folder(Path(path))


def test_what_is_not_kept_is_said_once_and_why(caplog, tmp_path):
    for _ in range(2):
        say_not_kept("notes", NotADirectoryError(20, "Not a directory", str(tmp_path)))
    [record] = caplog.records
    assert (
        record.message
        == f"irviz keeps no notes: {str(tmp_path)!r} cannot be used (Not a directory)"
    )

"""A file is written completely or not at all, and nothing else is written."""

import contextlib
import os
import stat
from pathlib import Path

import pytest

import irviz
from irviz.safe_files import atomic_write


def write(path, text):
    with atomic_write(path) as partial:
        partial.write_text(text)


def test_the_file_is_replaced_at_the_end(tmp_path):
    path = tmp_path / "a.svg"
    path.write_text("old")
    with atomic_write(path) as partial:
        partial.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "a.svg"
    path.write_text("old")
    with contextlib.suppress(irviz.SaveError), atomic_write(path) as partial:
        partial.write_text("half of")
        raise OSError("the disk is full")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_stays_and_its_target_is_written(tmp_path, is_there):
    link, target = tmp_path / "here" / "a.svg", tmp_path / "there" / "b.svg"
    for folder in (link.parent, target.parent):
        folder.mkdir()
    link.symlink_to("../there/b.svg")
    if is_there:
        target.write_text("old")
        target.chmod(0o640)
    write(link, "new")
    assert target.read_text() == "new"
    assert link.readlink() == Path("../there/b.svg")
    assert [*link.parent.iterdir(), *target.parent.iterdir()] == [link, target]
    if is_there:
        assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_link_to_itself_is_refused(tmp_path):
    link = tmp_path / "a.svg"
    link.symlink_to("a.svg")
    with pytest.raises(irviz.SaveError, match="it is not a regular file"):
        write(link, "new")
    assert link.is_symlink()


def test_a_link_of_another_user_is_not_followed(tmp_path, monkeypatch):
    victim, link = tmp_path / "victim", tmp_path / "a.svg"
    victim.write_text("mine")
    link.symlink_to(victim)
    if os.geteuid() == 0:
        os.lchown(link, 65534, 65534)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(irviz.SaveError, match="it is a link of another user"):
        write(link, "new")
    assert victim.read_text() == "mine"


def test_links_that_another_user_left_are_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    names = {f".a.svg.{os.getpid()}.part", ".a.svg.part", "a.svg.part"}
    for name in names:
        (tmp_path / name).symlink_to(victim)
    seen = set()
    for _ in range(20):
        with atomic_write(tmp_path / "a.svg") as partial:
            assert not partial.is_symlink()
            seen.add(partial.name)
            partial.write_text("new")
    assert victim.read_text() == "mine"
    assert len(seen) == 20  # they cannot be guessed
    assert not seen & names


def test_modes_are_those_of_any_file(tmp_path):
    plain, written = tmp_path / "plain", tmp_path / "written"
    plain.touch()
    write(written, "new")
    assert stat.S_IMODE(written.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    written.chmod(0o600)
    write(written, "newer")
    assert stat.S_IMODE(written.stat().st_mode) == 0o600

"""Count kernels that are run though their user did not write them, while folders are exchanged.

    python bench/exchanged_folders.py
    sudo python bench/exchanged_folders.py --users OWNER OTHER

First a folder is exchanged for one that others could have written to. With two users of one group,
whose umask is 002, the second puts a folder with planted kernels in the place of the first's: in a
home where irviz makes all folders, and in one where a folder above was open to the group before. It
ends with code 1 if a planted kernel is run.
"""

from __future__ import annotations

import argparse
import os
import pwd
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType

from shared_with_tests import from_tests


def main() -> int:
    """Count the planted kernels that are run, and return 1 if there is one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--compiles", type=int, default=10_000)
    parser.add_argument("--users", nargs=2, metavar=("OWNER", "OTHER"), help="as root alone")
    parser.add_argument("--be", choices=("owner", "planter"), help="do what one of them does")
    options = parser.parse_args()
    if options.be == "owner":
        print(*_compiled(options.compiles))
        return 0
    if options.be == "planter":
        _shared().plant(Path(os.environ["PLANTED"]))
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        planted = _of_one_user(folder, options.compiles)
        if options.users:
            folder.chmod(0o755)
            for is_open in (False, True):
                planted += _of_two_users(folder, options.compiles, *options.users, is_open=is_open)
    return int(planted > 0)


def _of_one_user(folder: Path, compiles: int) -> int:
    """Exchange a folder for one that others could have written to, by this user."""
    shared = _shared()
    own, other = folder / "own" / "kernels", folder / "other" / "kernels"
    os.environ["IRVIZ_KERNELS"] = str(own)
    other.parent.mkdir(mode=0o700)
    shared.plant(other)
    other.chmod(0o770)
    with shared.exchanging(own.parent, other.parent) as exchanges:
        return _told("one user", exchanges, *_compiled(compiles))


def _of_two_users(folder: Path, compiles: int, owner: str, other: str, *, is_open: bool) -> int:
    """Let another user of the same group exchange the folders of a user."""
    shared = _shared()
    home = folder / f"home {is_open}"
    evil = folder / f"evil {is_open}"
    for one, name in ((home, owner), (evil, other)):
        one.mkdir()
        os.chown(one, pwd.getpwnam(name).pw_uid, pwd.getpwnam(other).pw_gid)
        one.chmod(0o755)
    cache = home / ".cache"
    if is_open:  # as other programs make it where the umask is 002
        for one in (cache, cache / "irviz", cache / "irviz" / "kernels"):
            one.mkdir()
            one.chmod(0o700 if one.name == "kernels" else 0o775)
            os.chown(one, pwd.getpwnam(owner).pw_uid, pwd.getpwnam(other).pw_gid)
    environment = {"HOME": str(home), "XDG_CACHE_HOME": str(cache)}
    planted = evil / "irviz"
    kernels = {"IRVIZ_KERNELS": f"{evil}/made", "PLANTED": f"{planted}/kernels", "HOME": str(evil)}
    subprocess.run(["mkdir", str(planted)], check=True, **_user(other, other, {}))
    subprocess.run([*_again("planter")], check=True, **_user(other, other, kernels))
    command = [sys.executable, "-c", shared.EXCHANGE, str(cache / "irviz"), str(planted)]
    with (
        subprocess.Popen(
            [*_again("owner"), "--compiles", str(compiles)],
            stdout=subprocess.PIPE,
            text=True,
            **_user(owner, other, environment),
        ) as compiler,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, **_user(other, other, {})
        ) as exchanges,
    ):
        said, _ = compiler.communicate()
        doubled, tripled, seconds = said.split()
        where = "a folder open to the group" if is_open else "a home of irviz's own folders"
        return _told(f"two users, {where}", exchanges, int(doubled), int(tripled), float(seconds))


def _compiled(compiles: int) -> tuple[int, int, float]:
    """Compile or load a kernel again and again; return how many doubled, and how many tripled."""
    began = time.perf_counter()
    found = Counter(_shared().doubled() for _ in range(compiles))
    return found["doubles"], found["triples"], time.perf_counter() - began


@cache
def _shared() -> ModuleType:
    """Return what the tests share, which would keep kernels in a folder of their own."""
    kept = os.environ.get("IRVIZ_KERNELS")
    loaded = from_tests("exchanged_folders")
    os.environ.pop("IRVIZ_KERNELS")
    if kept is not None:
        os.environ["IRVIZ_KERNELS"] = kept
    return loaded


def _told(
    what: str, exchanges: subprocess.Popen[str], own: int, planted: int, seconds: float
) -> int:
    exchanges.kill()
    assert exchanges.stdout is not None
    *_, last = exchanges.stdout.read().split("\n")[-2:-1]
    done = last.replace(" ", " exchanges, and that many failed: ")
    print(f"{what}: {own:,} compiles in {seconds:.0f} s, {planted} planted; {done}", flush=True)
    return planted


def _again(part: str) -> Sequence[str]:
    return sys.executable, __file__, "--be", part


def _user(name: str, group: str, environment: Mapping[str, str]) -> dict[str, object]:
    """Return the options of a process of a user with a group and the umask 002."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return {
        "user": name,
        "group": pwd.getpwnam(group).pw_gid,
        "extra_groups": [],
        "umask": 0o002,
        "cwd": "/",
        "env": {**kept, "PYTHONDONTWRITEBYTECODE": "1", **environment},
    }


if __name__ == "__main__":
    sys.exit(main())

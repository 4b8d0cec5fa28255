"""A window of its own for the page: by pywebview, or else by a browser without its bars."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from irviz.errors import IrvizError
from irviz.worker.child_process import end_process

_BROWSERS = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
    *("microsoft-edge", "microsoft-edge-stable", "msedge", "brave-browser", "brave"),
)
MAC_BROWSERS = ("Google Chrome", "Chromium", "Microsoft Edge", "Brave Browser")
"""The applications of macOS that show a page in a window of its own."""
_WINDOWS = (r"Google\Chrome\Application\chrome.exe", r"Microsoft\Edge\Application\msedge.exe")
_SIZE = "1440,900"


class WindowError(IrvizError, RuntimeError):
    """No window can be opened on this machine."""


def has_webview() -> bool:
    """Whether pywebview is installed and there is a screen."""
    is_headless = sys.platform.startswith("linux") and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
    return not is_headless and importlib.util.find_spec("webview") is not None


@contextlib.contextmanager
def own_window(page: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Show a page in a window until the block ends; the window's process ends when it is closed.

    The page is a file that redirects, in a folder that only this user may read, where the window
    also keeps its files: the address, which has a token, appears on no command line. Raises
    WindowError if neither pywebview nor such a browser is installed.
    """
    process = subprocess.Popen(  # noqa: S603
        _command(page),
        cwd=page.parent,  # where pywebview's process finds no module of the user's
        env={**os.environ, "PYTHONSAFEPATH": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        end_process(process)


def _command(page: Path) -> list[str]:
    if has_webview():
        return [sys.executable, "-m", "irviz.cli.desktop_window", str(os.getpid()), str(page)]
    options = ("--no-first-run", "--no-default-browser-check", f"--window-size={_SIZE}")
    profile = page.with_name("profile")  # else a browser that runs already would show the page
    return [chromium(), f"--app={page.as_uri()}", f"--user-data-dir={profile}", *options]


def chromium() -> str:
    """Return the path of a Chromium-based browser; raise WindowError where there is none."""
    for name in _BROWSERS:
        if found := shutil.which(name):
            return found
    apps = Path("/Applications")
    places = [apps / f"{name}.app" / "Contents" / "MacOS" / name for name in MAC_BROWSERS]
    for folder in ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA"):
        places += [Path(os.environ[folder], end) for end in _WINDOWS if folder in os.environ]
    for place in places:
        if place.is_file():
            return str(place)
    raise WindowError(
        "a window of its own needs pywebview (pip install 'irviz[desktop]') or Chromium, Chrome, "
        "Edge or Brave: install one of these, or leave out --window"
    )


# --- The process of a pywebview window, which shows the page that a file redirects to ------------


def main() -> None:
    """Show the page until the window is closed."""
    import webview

    from irviz.worker.worker_main import exit_with_parent

    exit_with_parent(int(sys.argv[1]))
    [address] = re.findall(r"url=([^\"]+)", Path(sys.argv[2]).read_text(encoding="utf-8"))
    webview.settings["ALLOW_DOWNLOADS"] = True
    webview.create_window("irviz", address, width=1440, height=900)
    webview.start()


if __name__ == "__main__":
    main()

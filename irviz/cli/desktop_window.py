"""Show the page in a desktop window, by pywebview or a Chromium-based browser."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from irviz.errors import IrvizError
from irviz.worker.child_process import end_process

_NAMES = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
    *("microsoft-edge", "microsoft-edge-stable", "msedge", "brave-browser", "brave"),
)
_MAC = ("Google Chrome", "Chromium", "Microsoft Edge", "Brave Browser")
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

    Args:
        page: A file that redirects to the page, in a folder that only this user may read, where the
            window also keeps its files. So the address, which has a token, appears on no command
            line.

    Raises:
        WindowError: Neither pywebview nor such a browser is installed.
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
        return [sys.executable, "-m", "irviz.cli.webview_window", str(os.getpid()), str(page)]
    if browser := _chromium():
        options = ("--no-first-run", "--no-default-browser-check", f"--window-size={_SIZE}")
        profile = page.with_name("profile")  # else a browser that runs already would show the page
        return [browser, f"--app={page.as_uri()}", f"--user-data-dir={profile}", *options]
    raise WindowError(
        "a window of its own needs pywebview (pip install 'irviz[desktop]') or Chromium, Chrome, "
        "Edge or Brave: install one of these, or leave out --window"
    )


def _chromium() -> str | None:
    """Return the path of a Chromium-based browser."""
    for name in _NAMES:
        if found := shutil.which(name):
            return found
    places = [Path("/Applications", f"{name}.app", "Contents", "MacOS", name) for name in _MAC]
    for folder in ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA"):
        places += [Path(os.environ[folder], end) for end in _WINDOWS if folder in os.environ]
    return next((str(place) for place in places if place.is_file()), None)

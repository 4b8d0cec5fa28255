"""The process of a pywebview window, which shows the page that a file redirects to."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from irviz.worker.worker_main import exit_with_parent


def main() -> None:
    """Show the page until the window is closed."""
    import webview

    exit_with_parent(int(sys.argv[1]))
    [address] = re.findall(r"url=([^\"]+)", Path(sys.argv[2]).read_text(encoding="utf-8"))
    webview.settings["ALLOW_DOWNLOADS"] = True
    webview.create_window("irviz", address, width=1440, height=900)
    webview.start()


if __name__ == "__main__":
    main()

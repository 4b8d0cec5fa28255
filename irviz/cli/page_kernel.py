"""What the page that `serve` starts shows."""

from __future__ import annotations

import os
import sys

from irviz.cli.demo import demo_session
from irviz.cli.serve import DEMO, DIRECTORY, FUNCTION, MODULE, WHAT
from irviz.explorer.explorer import explore
from irviz.worker.worker_main import exit_with_parent


def explorer_of_page() -> object:
    """Return the explorer on what the page was started for; the page's notebook calls this.

    From here on the kernel ends with the server, even in the middle of C code.
    """
    exit_with_parent(os.getppid())
    sys.path[:] = filter(None, sys.path)  # IPython's "" is the folder of the file that is opened
    os.chdir(os.environ.get(DIRECTORY, "."))
    what = os.environ.get(WHAT, DEMO)
    if what == DEMO:
        return explore(demo_session())
    name, function = os.environ.get(MODULE, ""), os.environ.get(FUNCTION, "")
    return explore(what, name=name, function=function)

"""The explorer that the pages show, and how it is opened."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from irviz.cli.demo import demo_session
from irviz.cli.page_connection import Pages
from irviz.cli.page_request import DEMO, PageRequest
from irviz.cli.recent_files import add_recent_file

if TYPE_CHECKING:
    from irviz.explorer.explorer import Explorer


@dataclasses.dataclass
class PageSession:
    """The state behind the pages.

    Attributes:
        request: The request of the command.
        pages: The open pages.
        folder: The folder for files that a page uploads; only this user may read it.
        explorer: The explorer, None until something is opened.
    """

    request: PageRequest
    pages: Pages
    folder: Path
    explorer: Explorer | None = None

    def open(self, request: PageRequest) -> None:
        """Open what was requested, after connecting widgets to the pages."""
        from irviz.explorer.explorer import Explorer
        from irviz.runtime.kernels import say_if_none_are_kept

        say_if_none_are_kept()
        self.pages.connect_widgets(Explorer.handle_control_comm_opened)
        self.explorer = explorer_of_page(request)
        if request.what != DEMO and self.folder not in Path(request.what).parents:
            add_recent_file(Path(request.what))

    def open_chosen(self, what: str) -> None:
        """Open a file chosen in a page."""
        self.open(dataclasses.replace(self.request, what=what))

    def new_path(self, name: str) -> Path:
        """Return a path, in a new folder, for a file that a page uploads; raise OSError."""
        return Path(tempfile.mkdtemp(dir=self.folder), Path(name).name or "file")


def explorer_of_page(request: PageRequest) -> Explorer:
    """Return the explorer for a page request."""
    from irviz.explorer.explorer import explore

    if request.what == DEMO:
        return explore(demo_session(), height=0)
    return explore(request.what, name=request.name, function=request.function, height=0)

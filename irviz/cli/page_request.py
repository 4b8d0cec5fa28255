"""What the command asks of the process that serves the page."""

from __future__ import annotations

from dataclasses import dataclass

DEMO, START = ":demo:", ":start:"
"""What is no file: the lecture's MLP, and a page on which a file is chosen."""


@dataclass(frozen=True)
class PageRequest:
    """What to show, and where; it is sent by a pipe, because everybody sees a process's arguments.

    Attributes:
        what: A file that `irviz.load` takes, DEMO, or START.
        name: A module, where the file defines several.
        function: The function to begin with, where the module has several.
        port: A port; 0 for any free one.
        token: What a request must have.
        parent: The process that the server ends with.
        directory: The current directory: where files are saved.
    """

    what: str
    name: str
    function: str
    port: int
    token: str
    parent: int
    directory: str

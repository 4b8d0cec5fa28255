"""The request of the command to the process that serves the page."""

from __future__ import annotations

from dataclasses import dataclass

DEMO, START = ":demo:", ":start:"
"""Requests without a file: the course's MLP, and a page for choosing a file."""


@dataclass(frozen=True)
class PageRequest:
    """What to show, and where; sent by a pipe, because arguments of processes are public.

    Attributes:
        what: A file that `irviz.load` takes, DEMO, or START.
        name: A module, where the file defines several.
        function: The function to begin with, where the module has several.
        port: A port; 0 for any free one.
        token: The token that requests must have.
        parent: The process whose exit ends the server.
        directory: The current directory, where files are saved.
    """

    what: str
    name: str
    function: str
    port: int
    token: str
    parent: int
    directory: str

"""Comms between this process's widgets and the pages that show them, over web sockets."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import comm
from comm.base_comm import BaseComm, CommManager
from tornado.websocket import WebSocketClosedError, WebSocketHandler

_TYPES = ("comm_open", "comm_msg", "comm_close")


class Pages:
    """The open pages: each receives the messages of all widgets, and any may answer.

    A message is JSON, followed by its buffers. The page numbers its messages; messages caused by
    one have its number as `parent`, and "idle" reports that it has been handled.
    """

    def __init__(self) -> None:
        self.sockets: set[WebSocketHandler] = set()
        """Those of the pages."""
        self._loop = asyncio.get_running_loop()
        self._manager = CommManager()
        self._parent = ""
        self.heard = time.monotonic()
        """When a page sent its last message."""

    def connect_widgets(self, control: Callable[[BaseComm, dict[str, Any]], None]) -> None:
        """Connect widgets created from now on; `control` handles requests for the state of all."""
        self._manager.register_target("jupyter.widget.control", control)
        comm.get_comm_manager = lambda: self._manager
        comm.create_comm = lambda *given, **options: PageComm(self, *given, **options)

    def hear(self, message: dict[str, Any], buffers: list[memoryview]) -> None:
        """Deliver a page's message to its widget."""
        self.heard = time.monotonic()
        if message["type"] not in _TYPES:
            raise ValueError(f"a page sends no {message['type']!r}, but one of {_TYPES}")
        full = {**message, "header": {"msg_id": message["id"]}, "buffers": buffers}
        self._parent = message["id"]
        try:
            getattr(self._manager, message["type"])(None, "", full)
            self._tell({"type": "idle", "parent": message["id"], "buffers": 0}, [])
        finally:
            self._parent = ""

    def say(self, message: dict[str, Any], buffers: list[bytes]) -> None:
        """Send a widget's message to every page, from any thread."""
        message["parent"] = self._parent
        try:
            is_here = asyncio.get_running_loop() is self._loop
        except RuntimeError:  # as where a widget is deleted by another thread
            is_here = False
        if is_here:
            self._tell(message, buffers)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._tell, message, buffers)

    def _tell(self, message: dict[str, Any], buffers: list[bytes]) -> None:
        if not self.sockets:
            return
        text = json.dumps(message, allow_nan=False)  # NaN is no JSON: the page could not read it
        for socket in tuple(self.sockets):
            with suppress(WebSocketClosedError):  # it removes itself
                parts: list[str | bytes] = [text, *map(bytes, buffers)]
                for part in parts:
                    sent = socket.write_message(part, binary=isinstance(part, bytes))
                    asyncio.ensure_future(sent).add_done_callback(asyncio.Future.exception)


class PageComm(BaseComm):
    """A comm whose other end is every page."""

    def __init__(self, pages: Pages, *given: Any, **options: Any) -> None:
        self._pages = pages
        super().__init__(*given, **options)

    def publish_msg(
        self,
        msg_type: str,
        data: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
        buffers: list[bytes] | None = None,
        **keys: Any,
    ) -> None:
        """Send a message."""
        content = {"comm_id": self.comm_id, "data": data or {}, **keys}
        message = {"type": msg_type, "content": content, "metadata": metadata or {}}
        self._pages.say({**message, "buffers": len(buffers or [])}, buffers or [])

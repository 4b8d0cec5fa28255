"""The routes of the page's server, which answers one user of this machine and no other site."""

from __future__ import annotations

import hmac
import json
import os
from typing import Any

from tornado.web import Application, HTTPError, RequestHandler, StaticFileHandler
from tornado.websocket import WebSocketHandler

from irviz.cli.failure_words import FAILURES, failure_words
from irviz.cli.page_html import PAGE, start_page, template
from irviz.cli.page_prerender import initial_picture
from irviz.cli.page_session import PageSession

ADDRESS = "127.0.0.1"
_POLICY = {
    "default-src": "'none'",
    "script-src": "'self' blob:",  # anywidget imports from blobs
    "style-src": "'self' 'unsafe-inline'",  # anywidget and CodeMirror add style sheets
    "img-src": "'self' data: blob:",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
}
_HEADERS = {
    "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in _POLICY.items()),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",  # the address has the token
    "X-Content-Type-Options": "nosniff",
}
_REFUSED = "This is not the address that irviz printed, which ends with a token: open that one."
MAX_BYTES = 2**30
"""The largest file that can be dropped onto a page, in bytes."""


def page_application(shown: PageSession) -> Application:
    """Return the web application."""
    private = {"shown": shown}
    return Application(
        [
            ("/", _Document, private),
            ("/open", _Open, private),
            ("/connection", _Connection, private),
            ("/static/(.*)", _Static, {"path": str(PAGE / "static")}),
        ],
        default_handler_class=_Missing,
        websocket_max_message_size=MAX_BYTES,
    )


class _Guarded(RequestHandler):
    """Refuses requests for another host name, which DNS rebinding would make."""

    def set_default_headers(self) -> None:
        for name, value in _HEADERS.items():
            self.set_header(name, value)
        self.clear_header("Server")

    def prepare(self) -> None:
        if self.request.host_name not in (ADDRESS, "localhost"):
            raise HTTPError(403)

    def write_error(self, status_code: int, **_: Any) -> None:
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(_REFUSED if status_code == 403 else f"{status_code}: {self._reason}")


class _Missing(_Guarded):
    def prepare(self) -> None:
        super().prepare()
        raise HTTPError(404)


class _Static(_Guarded, StaticFileHandler):
    """The page's script and style sheet, which are not private."""


class _Private(_Guarded):
    """Refuses requests without the token. Cookies would reach other ports too."""

    def initialize(self, shown: PageSession) -> None:
        self.shown = shown

    def prepare(self) -> None:
        super().prepare()
        given = self.get_query_argument("token", "")
        if not hmac.compare_digest(given.encode(), self.shown.request.token.encode()):
            raise HTTPError(403)


class _Document(_Private):
    """The page, with a picture of what it will show; or the page for choosing a file."""

    def get(self) -> None:
        self.set_header("Cache-Control", "no-store")
        if self.shown.explorer is None:
            self.finish(start_page(self.shown.request.token))
        else:
            self.finish(template("index").render(initial_picture(self.shown.explorer)))


class _Open(_Private):
    """Opens a file chosen in the page or uploaded by it."""

    def post(self) -> None:
        if self.shown.explorer is None:
            try:
                self._open()
            except FAILURES as failure:
                words = failure_words(failure).replace(f"{self.shown.folder}{os.sep}", "")
                self.finish(start_page(self.shown.request.token, words))
                return
        self.redirect(f"/?token={self.shown.request.token}", status=303)

    def _open(self) -> None:
        if sent := self.request.files.get("file"):
            self.shown.open_sent(sent[0]["filename"], sent[0]["body"])
        else:
            self.shown.open_chosen(self.get_body_argument("what"))


class _Connection(_Private, WebSocketHandler):
    """A page's web socket. Tornado refuses pages of other origins."""

    def open(self) -> None:
        self.message: dict[str, Any] = {}
        self.buffers: list[memoryview] = []
        self.set_nodelay(True)
        self.shown.pages.add(self)

    def on_close(self) -> None:
        self.shown.pages.remove(self)

    def on_message(self, message: str | bytes) -> None:
        if isinstance(message, str):
            self.message, self.buffers = json.loads(message), []
        else:
            self.buffers.append(memoryview(message))
        if len(self.buffers) == self.message["buffers"]:
            self.shown.pages.hear(self.message, self.buffers)

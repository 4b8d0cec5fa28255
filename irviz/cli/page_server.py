"""The process that serves the page: Voila, for one user of this machine and no other site."""

from __future__ import annotations

import sys
from pathlib import Path

from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.netutil import bind_sockets
from traitlets.config import Config
from voila.app import Voila

from irviz.atomic_write import atomic_write
from irviz.cli.serve import ERROR_FILE, PORT_FILE, TOKEN_FILE
from irviz.worker.worker_main import exit_with_parent

_EXTENSIONS = (
    "@voila-dashboards/widgets-manager8",
    "@jupyter-widgets/jupyterlab-manager",
    "anywidget",
)
"""What the page needs. Voila would load all that are installed; most need a whole JupyterLab."""
_POLICY = {
    "default-src": "'self'",
    # the page's own scripts are inline, RequireJS evaluates, and anywidget imports from blobs
    "script-src": "'self' 'unsafe-inline' 'unsafe-eval' blob:",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "connect-src": "'self' blob:",
    "object-src": "'none'",
    "base-uri": "'self'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
}
_HEADERS = {
    "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in _POLICY.items()),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",  # the address has the token
}


class PageServer(Voila):  # type: ignore[misc] # Voila has no types
    """Voila on exactly the port that was asked for, which it tells once it listens there."""

    name = "voila"

    def listen(self) -> None:
        """Serve until SIGINT or SIGTERM."""
        folder = Path(self.notebook_path).parent
        self.ioloop = IOLoop.current()
        try:
            sockets = bind_sockets(self.port, self.ip)
            HTTPServer(self.app).add_sockets(sockets)
            with atomic_write(folder / PORT_FILE) as partial:
                partial.write_text(str(sockets[0].getsockname()[1]), encoding="utf-8")
            self.ioloop.start()
        except OSError as failure:
            (folder / ERROR_FILE).write_text(str(failure), encoding="utf-8")
        except KeyboardInterrupt:
            pass
        finally:
            self.stop()


def _settings(port: int, token: str) -> dict[str, dict[str, object]]:
    """Return Voila's settings."""
    same_site = {"samesite": "Strict"}
    return {
        "Voila": {
            "ip": "127.0.0.1",
            "port": port,
            "token": token,
            "log_level": "ERROR",
            "open_browser": False,
            "tornado_settings": {
                "headers": _HEADERS,
                "xsrf_cookie_kwargs": same_site,
                "allow_remote_access": False,
                "ws_ping_timeout": 30_000,  # its default is refused, with a line of warning
            },
        },
        "IdentityProvider": {"cookie_options": same_site},
        "VoilaConfiguration": {
            "show_tracebacks": True,
            "template": "irviz",
            "extension_allowlist": list(_EXTENSIONS),
            # Voila would write these parameters of the address into the page as they are
            "allow_template_override": "NO",
            "allow_theme_override": "NO",
        },
        # the kernel listens on files in a directory of this user's, where the system has those
        "KernelManager": {} if sys.platform == "win32" else {"transport": "ipc"},
    }


if __name__ == "__main__":
    exit_with_parent(int(sys.argv[1]))
    port, page = int(sys.argv[2]), Path(sys.argv[3])
    token = (page.parent / TOKEN_FILE).read_text(encoding="utf-8")
    PageServer.launch_instance([str(page)], config=Config(_settings(port, token)))

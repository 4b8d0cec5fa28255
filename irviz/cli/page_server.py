"""The process that serves the page: Voila, for one user of this machine and no other site."""

from __future__ import annotations

import sys
from pathlib import Path

from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.netutil import bind_sockets
from voila.app import Voila

from irviz.atomic_write import atomic_write
from irviz.cli.serve import ERROR_FILE, PORT_FILE
from irviz.worker.worker_main import exit_with_parent


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


if __name__ == "__main__":
    exit_with_parent(int(sys.argv[1]))
    PageServer.launch_instance([sys.argv[2]])

"""Measure what the owner of a page notices while others, who have no token, ask its server.

    python bench/strangers.py

A thousand connections send nothing, send uploads, or ask for the page, and each is opened again as
soon as it is closed. Meanwhile the owner's page asks for the state of its widget, and is loaded
again. It ends with code 1 if an answer takes longer than 100 ms, or the server takes 50 MB more or
logs more than a line.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import math
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from measurement_table import against, heading
from tornado.httpclient import AsyncHTTPClient, HTTPError
from tornado.websocket import websocket_connect

from irviz.cli.page_launcher import DEMO, served

SECONDS, MEGABYTES, LINES = 0.1, 50.0, 1
_HEAD = "HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000000\r\n\r\n"
KINDS = {
    "send nothing": b"",
    "upload": f"POST /open?name=a {_HEAD}".encode() + bytes(2**20),
    "upload with a wrong token": f"POST /open?token={'x' * 32} {_HEAD}".encode() + bytes(2**20),
    "ask for the page": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "send half of a line": b"GET /?tok",
}


def main() -> int:
    """Measure every kind of stranger, and return 1 if a bar was missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--kind", choices=KINDS, help="these strangers alone")
    parser.add_argument("--stranger", nargs=3, metavar=("PORT", "KIND", "COUNT"), help="be them")
    options = parser.parse_args()
    if options.stranger:
        port, kind, count = options.stranger
        _allow_files(10_000)
        asyncio.run(_strangers(int(port), KINDS[kind], int(count)))
    heading("bar")
    is_missed = False
    asyncio.run(_measure("nobody", 0, 0, options.seconds))
    for kind in [options.kind] if options.kind else KINDS:
        is_missed |= asyncio.run(_measure(kind, 1000, 10_000, options.seconds))
    is_missed |= asyncio.run(_measure("send nothing", 1100, 1024, options.seconds))
    return int(is_missed)


async def _measure(kind: str, count: int, files: int, seconds: float) -> bool:
    """Print the owner's times beside strangers, and return whether a bar was missed."""
    with tempfile.TemporaryFile() as log, _server(files, log.fileno()) as (process, url):
        _, port = urlsplit(url).netloc.split(":")
        await _owner(url, 3.0)  # until what is done once is done
        before = _megabytes(process.pid)
        others = None
        if count:
            others = subprocess.Popen(
                [sys.executable, __file__, "--stranger", port, kind, str(count)]
            )
        try:
            await asyncio.sleep(1.0)
            asked, loaded, most = await _owner(url, seconds, process.pid)
        finally:
            if others:
                others.kill()
                others.wait()
        log.seek(0)
        lines = log.read().count(b"\n")
    what = f"{count:,} {kind}, ulimit {files:,}" if count else kind
    more = most - before
    bar = SECONDS if count else None
    print(f"{what}: {len(asked)} answers, {loaded.count(math.inf)} failed, {lines} lines of log")
    against("  the widget's state, in general", asked, "ms")
    against("  the widget's state, the longest", [max(asked)], "ms", bar)
    against("  the page loaded again, in general", loaded, "ms")
    against("  the page loaded again, the longest", [max(loaded)], "ms", bar)
    against("  more memory", [more], "MB", MEGABYTES)
    return max(*asked, *loaded) > SECONDS or more > MEGABYTES or lines > LINES


@contextlib.contextmanager
def _server(files: int, log: int) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Serve the demo with a limit of open files, and its log in a file."""
    kept = os.dup(2)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    os.dup2(log, 2)
    try:
        if files:
            _allow_files(files)
        page = served(DEMO)
        found = page.__enter__()
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    try:
        yield found
    finally:
        page.__exit__(None, None, None)


def _allow_files(count: int) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, most), most))


async def _owner(url: str, seconds: float, pid: int = 0) -> tuple[list[float], list[float], float]:
    """Return how long a widget's state and the page took, and the most memory of the server."""
    client = AsyncHTTPClient()
    socket = await websocket_connect(
        url.replace("http:", "ws:").replace("/?", "/connection?"), max_message_size=2**30
    )
    asked, loaded, most = list[float](), list[float](), 0.0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.perf_counter()
        try:
            page = await client.fetch(url, request_timeout=30)
        except (OSError, HTTPError):  # its connection was closed
            loaded.append(math.inf)
            continue
        loaded.append(time.perf_counter() - began)
        model = re.search(r'data-model="(\w+)"', page.body.decode())
        assert model is not None
        content = {"comm_id": model[1], "data": {"method": "request_state"}}
        message = {"type": "comm_msg", "id": str(len(asked)), "metadata": {}, "buffers": 0}
        began = time.perf_counter()
        await socket.write_message(json.dumps({**message, "content": content}))
        while True:
            answer = await socket.read_message()
            if isinstance(answer, str) and json.loads(answer)["type"] == "idle":
                break
        asked.append(time.perf_counter() - began)
        if pid:
            most = max(most, _megabytes(pid))
        await asyncio.sleep(0.02)
    socket.close()
    return asked, loaded, most


async def _strangers(port: int, sent: bytes, count: int) -> None:
    async def one() -> None:
        while True:
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                with contextlib.closing(writer):
                    writer.write(sent)
                    await reader.read()
            await asyncio.sleep(0)

    await asyncio.gather(*(one() for _ in range(count)))


def _megabytes(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


if __name__ == "__main__":
    sys.exit(main())

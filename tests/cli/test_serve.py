"""The page is for the user who started it: not for other users, programs and sites."""

import os
import re
import socket
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from irviz.cli import serve as serving
from irviz.cli.serve import DEMO, ServeError, serve, served

pytestmark = pytest.mark.worker
SCRIPT = "</script><script>alert(1)</script>"


@pytest.fixture(scope="module")
def url():
    with served(DEMO) as (_, url):
        yield url


@pytest.fixture(scope="module")
def page(url):
    """The page's status, headers and text: a kernel runs for each request."""
    return fetch(url)


def fetch(url, **headers):
    """Return a response's status, its headers and its text; a redirection is not followed."""

    class NoRedirect(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_):
            return None

    opener = urllib.request.build_opener(NoRedirect)
    try:
        response = opener.open(urllib.request.Request(url, headers=headers), timeout=60)
    except urllib.error.HTTPError as failure:
        response = failure
    with response:
        return response.status, response.headers, response.read().decode()


def test_the_page_loads_from_its_server_alone_and_stands_in_no_other_page(page):
    status, headers, _ = page
    assert status == 200
    policy = dict(
        rule.strip().split(" ", 1) for rule in headers["Content-Security-Policy"].split(";")
    )
    assert policy["default-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert not re.search(r"https?:|\*", headers["Content-Security-Policy"])
    assert headers["Referrer-Policy"] == "no-referrer"


def test_requests_from_other_sites_come_without_the_cookie(page):
    _, headers, _ = page
    cookies = headers.get_all("Set-Cookie")
    assert cookies
    assert all("samesite=strict" in cookie.lower() for cookie in cookies)


@pytest.mark.parametrize(
    "address", ["/?theme={0}&template={0}&x={0}", "/{0}", "/voila/{0}", "/login?next={0}"]
)
def test_nothing_of_the_address_is_written_into_the_page(url, address):
    host, _, token = url.partition("/?")
    hostile = address.format(urllib.parse.quote(SCRIPT))
    _, _, text = fetch(f"{host}{hostile}{'&' if '?' in hostile else '?'}{token}")
    assert "<script>alert" not in text


def test_a_request_for_another_host_is_refused(url):
    status, _, _ = fetch(url, Host="example.com")
    assert status == 403


def test_the_token_goes_to_nobody_who_listens_on_the_port_already():
    with socket.create_server(("127.0.0.1", 0)) as other:
        other.settimeout(0.1)
        port = other.getsockname()[1]
        with pytest.raises(ServeError, match=f"port {port} cannot be used .*in use"):
            serve(DEMO, port=port, browser=False)
        with pytest.raises(TimeoutError):
            other.accept()


def test_the_browser_is_given_a_file_that_only_the_user_can_read(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    opened = []

    def open_browser(address):
        path = Path(address.removeprefix("file://"))
        opened.append((address, stat.S_IMODE(path.stat().st_mode), path.read_text()))
        raise KeyboardInterrupt

    monkeypatch.setattr(serving.webbrowser, "open", open_browser)
    serve(DEMO)
    [(address, mode, text)] = opened
    assert "token" not in address
    assert mode == 0o600
    assert re.search(r"url=http://127.0.0.1:\d+/\?token=\S{32}", text)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("port", ["-5", "99999999", "x"])
def test_a_number_that_is_no_port_is_refused_in_a_sentence(port):
    done = subprocess.run(
        [sys.executable, "-m", "irviz.cli.main", "demo", "--port", port],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )
    assert done.returncode == 2
    assert f"'{port}' is no port" in done.stderr
    assert len(done.stderr.splitlines()) == 1

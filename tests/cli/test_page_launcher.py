"""The page is for the user who started it: not for other users, programs and sites."""

import asyncio
import base64
import contextlib
import http.client
import json
import os
import re
import socket
import stat
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from functools import partial
from pathlib import Path

import comm
import psutil
import pytest

import irviz
from irviz.cli import page_launcher as serving
from irviz.cli import page_server
from irviz.cli.main import main
from irviz.cli.page_comms import Pages
from irviz.cli.page_launcher import (
    DEMO,
    START,
    ForkedServer,
    PageRequest,
    ServeError,
    serve,
    served,
    started,
)
from irviz.explorer.viewer import STATIC

pytestmark = pytest.mark.worker
SCRIPT = "</script><script>alert(1)</script>"


MODULE = """
from tvm.script import ir as I, relax as R
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2,), "float32")):
        y = R.add(x, x)
        return y
"""


@pytest.fixture(scope="module")
def server():
    """The process of a page that is open, and its address."""
    with served(DEMO) as (process, url):
        yield process, url


@pytest.fixture(scope="module")
def url(server):
    return server[1]


@pytest.fixture(scope="module")
def page(url):
    """The page's status, headers and text."""
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
    assert policy["default-src"] == "'none'"
    assert policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert not re.search(r"https?:|\*", headers["Content-Security-Policy"])
    assert headers["Referrer-Policy"] == "no-referrer"


def test_the_page_says_what_is_being_opened_or_why_it_cannot_be_and_opens_another(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "model<b>.py"
    path.write_text("not a module")
    with started(PageRequest(str(path))) as (_, url):
        at = {name: url.replace("/?", f"/{name}?") for name in ("opened", "open")}
        _, _, text = fetch(url)  # before TVM is loaded
        assert "Opening model&lt;b&gt;.py" in text
        assert "<img" not in text
        assert json.loads(fetch(at["opened"])[2]) == {"model": "", "title": ""}
        _, _, text = fetch(url)
        assert "is not Python" in text.partition('role="alert">')[2].partition("</p>")[0]
        path.write_text(MODULE)
        another = f"{at['open']}&what={urllib.parse.quote(str(path))}"
        with urllib.request.urlopen(another, data=b"", timeout=60) as answer:
            assert answer.status == 200
        opened = json.loads(fetch(at["opened"])[2])
        assert opened["title"] == "model<b>.py"
        _, _, text = fetch(url)
        assert f'data-model="{opened["model"]}"' in text
        assert "<img" in text
        assert "alert" not in text


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="workers are forked on Linux")
def test_tvm_is_loaded_once_for_a_page_and_its_workers(server):
    process = psutil.Process(server[0].pid)
    others = [one for one in process.children() if one.cmdline() != process.cmdline()]
    assert len(others) < len(process.children())


@pytest.fixture
def own_data(tmp_path, monkeypatch, caplog):
    """Let these commands meet no others, and wait for an answer on a busy machine, too."""
    caplog.set_level("DEBUG", serving.__name__)  # a failure tells why nothing was forked
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(serving, "ANSWER_SECONDS", 30.0)
    return tmp_path


def _cpu_seconds(process):
    spent = psutil.Process(process.pid).cpu_times()
    return spent.user + spent.system


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="servers are forked on Linux")
def test_a_later_command_is_served_by_a_fork_which_ends_with_that_command_or_by_its_own_process(
    own_data,
):
    with contextlib.ExitStack() as stack:
        with served(DEMO) as (first, _):
            second, url = stack.enter_context(served(DEMO, is_new=False))
            assert isinstance(second, ForkedServer)
            assert _cpu_seconds(second) < _cpu_seconds(first)  # TVM is loaded already
            with answering(is_new=True) as own:  # as a command can ask for
                assert isinstance(own, subprocess.Popen)
        assert first.poll() is not None
        assert fetch(url)[0] == 200
        assert not list(own_data.rglob("*.socket"))
        with answering() as third:  # nothing is left to fork it
            assert isinstance(third, subprocess.Popen)
    with contextlib.suppress(psutil.NoSuchProcess):
        assert psutil.Process(second.pid).status() == psutil.STATUS_ZOMBIE


def test_a_fork_has_ended_although_nobody_has_read_what_it_said_last():
    ours, its = socket.socketpair()
    server = ForkedServer(ours)
    with contextlib.closing(server), its:
        its.sendall(b"{}\n")
        assert server.poll() is None
        its.close()
        assert server.wait(timeout=10) == 1


def test_a_server_that_was_killed_is_in_the_way_of_no_command(own_data):
    with served(START) as (first, _):
        first.kill()
        first.wait()
        assert list(own_data.rglob("*.socket"))
        with served(START, is_new=False) as (second, _):
            assert isinstance(second, subprocess.Popen)
            with answering():
                pass


@contextlib.contextmanager
def answering(*, is_new=False):
    """Serve a page that answers, and may not have loaded TVM yet; yield the process."""
    with started(PageRequest(START), is_new=is_new) as (process, url):
        assert fetch(url)[0] == 200
        yield process


def test_the_page_runs_no_script_that_is_written_into_it_and_evaluates_none(page):
    _, headers, text = page
    policy = headers["Content-Security-Policy"]
    [scripts] = re.findall("script-src ([^;]*)", policy)
    assert scripts.split() == ["'self'", "blob:"]
    [script] = re.findall("<script[^>]*>", text)
    assert re.fullmatch(r'<script type="module" src="static/page.js[?]token=[\w-]{32}">', script)


def test_the_viewer_s_script_is_loaded_with_the_page_and_not_sent_with_the_widget(page, url):
    _, _, text = page
    [address] = re.findall(
        '<link rel="modulepreload" href="(static/viewer.js[?]token=[^"]*)">', text
    )
    status, headers, script = fetch(f"{url.partition('?')[0]}{address}")
    assert status == 200
    assert "javascript" in headers["Content-Type"]
    assert script == (STATIC / "viewer.js").read_text("utf-8")


def test_the_page_sets_no_cookie_which_other_ports_of_the_machine_would_get_too(page):
    _, headers, _ = page
    assert headers.get_all("Set-Cookie") is None


def test_the_picture_is_in_the_document_as_an_image_which_runs_nothing(page):
    _, _, text = page
    [data] = re.findall('<img [^>]*src="data:image/svg[+]xml;base64,([^"]*)"', text)
    assert b"lv1" in base64.b64decode(data)


@pytest.mark.parametrize("query", ["", "?token=", "?token=x", "?token=%ff", "?token=é&token=ü"])
@pytest.mark.parametrize(
    "path",
    ["/", "/connection", "/open", "/opened", "/static/page.js", "/static/viewer.js", "/static/%00"],
)
def test_without_the_token_neither_the_page_nor_its_connection_is_given(url, path, query):
    host = url.partition("/?")[0]
    status, _, text = fetch(f"{host}{path}{urllib.parse.quote(query, safe='?=&%')}")
    assert status == 403
    assert "<" not in text


def connect(url, origin):
    """Ask for a web socket as a page does; return the HTTP status."""
    address = urllib.parse.urlsplit(url)
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": base64.b64encode(bytes(16)).decode(),
        "Origin": origin,
    }
    with contextlib.closing(http.client.HTTPConnection(address.netloc, timeout=60)) as connection:
        connection.request("GET", f"/connection?{address.query}", headers=headers)
        with connection.getresponse() as response:
            return response.status


def test_a_page_of_another_site_cannot_connect_even_with_the_token(url):
    here = url.partition("/?")[0]
    assert connect(url, here) == 101
    assert connect(url, "http://example.com") == 403
    assert connect(url, f"{here}1") == 403


def test_a_request_for_another_host_is_refused(url):
    status, _, _ = fetch(url, Host="example.com")
    assert status == 403


def test_the_token_goes_to_nobody_who_listens_on_the_port_already():
    with socket.create_server(("127.0.0.1", 0)) as other:
        other.settimeout(0.1)
        port = other.getsockname()[1]
        with pytest.raises(ServeError, match=f"port {port} cannot be used .*in use"):
            serve(PageRequest(DEMO, port=port), "nowhere")
        with pytest.raises(TimeoutError):
            other.accept()


@pytest.mark.usefixtures("quick_server")
@pytest.mark.parametrize("has_folder", [True, False])
def test_the_browser_gets_a_file_for_the_user_alone_which_says_what_is_opened(
    tmp_path, monkeypatch, has_folder
):
    data = tmp_path if has_folder else Path("/dev/null/irviz")
    monkeypatch.setattr(serving.platformdirs, "user_data_path", lambda _: data)
    opened = []

    def open_browser(address):
        path = Path(address.removeprefix("file://"))
        modes = [stat.S_IMODE(one.stat().st_mode) for one in (path, path.parent)]
        opened.append((address, modes, path.read_text()))
        assert path.is_relative_to(tmp_path) == has_folder
        raise KeyboardInterrupt

    monkeypatch.setattr(serving.webbrowser, "open", open_browser)
    serve(PageRequest("models/<b>.onnx"), "browser")
    [(address, modes, text)] = opened
    assert "token" not in address
    assert modes == [0o600, 0o700]
    assert re.search(r"url=http://127.0.0.1:\d+/\?token=\S{32}", text)
    assert "Opening &lt;b&gt;.onnx …" in text
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
    assert f"'{port}' is not a port" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.usefixtures("server")  # which forks the one of this test, where it can be forked
def test_a_model_with_an_operator_that_tvm_lacks_can_be_opened_with_an_opaque_node(
    tmp_path, monkeypatch
):
    onnx = pytest.importorskip("onnx", reason="install irviz[onnx] to test its importer")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    value = partial(onnx.helper.make_tensor_value_info, elem_type=onnx.TensorProto.FLOAT)
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Own", ["x"], ["y"], domain="own")],
        "own",
        [value("x", shape=[2, 3, 3])],
        [value("y", shape=[2])],
    )
    path = tmp_path / "own.onnx"
    opsets = [onnx.helper.make_opsetid(*one) for one in (("", 18), ("own", 1))]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets), path)
    with started(PageRequest(str(path)), is_new=False) as (_, url):
        assert not json.loads(fetch(url.replace("/?", "/opened?"))[2])["model"]
        button = re.search(f'value="{path}" data-missing="opaque"', fetch(url)[2])
        assert button is not None
        another = f"{url.replace('/?', '/open?')}&missing=opaque&what={path}"
        with urllib.request.urlopen(another, data=b"", timeout=60):
            pass
        assert json.loads(fetch(url.replace("/?", "/opened?"))[2])["model"]
        data = re.search('<img [^>]*src="data:image/svg[+]xml;base64,([^"]*)"', fetch(url)[2])
    assert data is not None
    assert b"onnx.own.Own" in base64.b64decode(data[1])
    with pytest.warns(UserWarning, match="can be drawn, but not run"):
        session = irviz.load(path, missing="opaque")
    for name in ("get_comm_manager", "create_comm"):
        monkeypatch.setattr(comm, name, getattr(comm, name))  # a page replaces them for its process

    async def words() -> str:
        explorer = page_server.explorer_of_page(session, Pages())
        return explorer.status["words"]

    said = "TVM does not know onnx.own.Own: the model can be drawn, but not run"
    assert asyncio.run(words()) == said
    assert main(["diff", str(path), str(path), "--missing", "opaque"]) == 0
    assert main(["diff", str(path), str(path)]) != 0


@pytest.mark.skipif(os.name != "posix", reason="only there are sockets passed on")
def test_a_browser_that_is_there_before_the_server_waits_for_it(tmp_path, monkeypatch):
    late, may_start = tmp_path / "python", tmp_path / "may-start"
    wait = f'while [ ! -e "{may_start}" ]; do sleep 0.05; done'
    late.write_text(f'#!/bin/sh\n{wait}\nexec "{sys.executable}" "$@"\n', "utf-8")
    late.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(late))
    with started(PageRequest(START)) as (_, url), ThreadPoolExecutor() as pool:
        answer = pool.submit(urllib.request.urlopen, url)
        assert not wait_for([answer], 0.2).done
        may_start.touch()
        with answer.result() as page:
            assert page.status == 200

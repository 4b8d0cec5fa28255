"""Connections to servers: those that are none, that serve others, that hang, end and come back."""

import contextlib
import time
import weakref

import psutil
import pytest
from tvm import rpc

from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MyModule
from irviz.errors import RunError
from irviz.runtime import rpc_vm as connection
from irviz.runtime.run import CallInputs, RunConfig, run
from irviz.runtime.run_config import RemoteAddress

pytestmark = pytest.mark.worker

GIVEN = CallInputs(digits().images[:20], mlp_params())


def here(device):
    return RunConfig(isolate=False, device=device)


def same(one, other):
    assert one.outputs[0].tobytes() == other.outputs[0].tobytes()


def run_once_it_answers(device):
    """Try again until the server has done what it was asked before."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with contextlib.suppress(RunError):
            return run(MyModule, inputs=GIVEN, config=here(device))
    pytest.fail("it takes too long")


@pytest.mark.parametrize(("key", "words"), [("", "no key"), ("/other", "the key 'other'")])
def test_another_key_is_told(server, key, words):
    place = here(f"127.0.0.1:{server.port}{key}")
    with pytest.raises(RunError, match=f"has another key than was given, which is {words}: give"):
        run(MyModule, inputs=GIVEN, config=place)


def test_a_name_that_nobody_has_is_told():
    with pytest.raises(RunError, match=r"no machine is known as 'nobody\.invalid'"):
        run(MyModule, inputs=GIVEN, config=here("nobody.invalid:9090"))


def test_what_is_no_server_of_tvms_is_told(servers):
    with (
        servers.answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as device,
        pytest.raises(RunError, match=f"^what answers at {device} is not a server of TVM"),
    ):
        run(MyModule, inputs=GIVEN, config=here(device))


def test_what_accepts_and_says_nothing_is_not_waited_for(servers, monkeypatch):
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 0.3)
    with (
        servers.answering(b"") as device,
        pytest.raises(RunError, match=f"^{device} does not answer within 0.3 s: it may serve anot"),
    ):
        run(MyModule, inputs=GIVEN, config=here(device))


def test_a_server_that_serves_another_is_used_once_that_is_done(server, monkeypatch):
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 0.5)
    other = rpc.connect("127.0.0.1", server.port, server.key)
    for _ in range(2):
        with pytest.raises(RunError, match="it may serve another session"):
            run(MyModule, inputs=GIVEN, config=here(server.device))
    del other
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 10)
    assert run(MyModule, inputs=GIVEN, config=here(server.device)).cases == 20


def test_a_connection_whose_time_is_up_makes_room_for_the_next(server):
    first = run(MyModule, inputs=GIVEN, config=here(server.device))
    address = RemoteAddress("127.0.0.1", server.port, server.key)
    old = connection.connect(address, None)
    old.until = 0.0
    left = weakref.ref(old)
    del old
    same(run(MyModule, inputs=GIVEN, config=here(server.device)), first)
    assert left() is None


def test_a_server_that_hangs_is_not_waited_for_and_is_used_again_when_it_goes_on(
    server, monkeypatch
):
    first = run(MyModule, inputs=GIVEN, config=here(server.device))
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 0.5)
    (serving,) = psutil.Process(server.process.pid).children(recursive=True)
    serving.suspend()
    with pytest.raises(RunError, match=r"does not answer within 0\.5 s"):
        run(MyModule, inputs=GIVEN, config=here(server.device))
    serving.resume()
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 2)
    same(run_once_it_answers(server.device), first)


def test_a_server_of_another_version_is_told(servers, server):
    with (
        servers.between(server.port, b"0.8.0", b"0.7.0") as device,
        pytest.raises(RunError, match="runs another version of TVM, and here is "),
    ):
        run(MyModule, inputs=GIVEN, config=here(f"{device}/lab"))


def test_a_server_that_was_started_again_is_connected_again(server):
    first = run(MyModule, inputs=GIVEN, config=here(server.device))
    server.end()
    with pytest.raises(RunError, match="there is no server"):
        run(MyModule, inputs=GIVEN, config=here(server.device))
    server.start()
    same(run(MyModule, inputs=GIVEN, config=here(server.device)), first)

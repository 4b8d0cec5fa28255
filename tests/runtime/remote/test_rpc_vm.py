# ruff: noqa: N803, N805, N812
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""The same run on another machine, through TVM's own RPC server; what may go wrong with that."""

import re
import tempfile
import threading

import numpy as np
import pytest
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T
from tvm.support import cc

from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MyModule
from irviz.errors import InputError, RunError
from irviz.runtime.local_vm import LocalModule
from irviz.runtime.run import CallInputs, RunConfig, TraceRequest, measure, run
from irviz.worker.supervisor import RUNS

pytestmark = pytest.mark.worker

PARAMS, DIGITS = mlp_params(), digits()
GIVEN = CallInputs(DIGITS.images[:20], PARAMS, DIGITS.labels[:20])
ONES = CallInputs(np.ones(2, "float32"))


@I.ir_module
class Nested:
    """Tuples in tuples, a shape and a number, taken and returned."""

    @R.function
    def main(
        t: R.Tuple(R.Tensor((2,), "float32"), R.Tuple(R.Tensor((2,), "float32"), R.Shape([3]))),
        x: R.Tensor(("n", 2), "float32"),
        k: T.int64,
    ):
        first = t[0]
        inner = t[1]
        second = inner[0]
        sum_ = R.add(first, second)
        return ((sum_, (x, inner)), k, R.tuple())


@I.ir_module
class Endless:
    """A PrimFunc that takes minutes."""

    @T.prim_func(s_tir=True)
    def count(X: T.Buffer((2,), "float32"), Y: T.Buffer((2,), "float32")):
        Y[0] = X[0]
        for _ in T.serial(T.int64(200_000_000_000)):
            Y[0] = Y[0] * T.float32(0.999) + T.float32(1)


def endless():
    x = relax.Var("x", relax.TensorType([2], "float32"))
    builder = relax.BlockBuilder(Endless)
    with builder.function("main", [x]):
        call = relax.call_tir(Endless.get_global_var("count"), [x], x.ty)
        builder.emit_func_output(builder.emit(call))
    return builder.get()


def calling(name):
    x = relax.Var("x", relax.TensorType([2], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        call = relax.call_dps_packed(name, relax.Tuple([x]), x.ty)
        builder.emit_func_output(builder.emit(call))
    return builder.get()


@pytest.fixture(scope="module")
def documented(servers, tmp_path_factory):
    """Yield a server as it is documented, for runs in the worker."""
    server = servers.Server(servers.free_port(), tmp_path_factory.mktemp("there"), documented=True)
    yield server.start()
    server.end()
    RUNS.stop()


def here(device):
    return RunConfig(isolate=False, device=device)


def same(one, other):
    assert [o.dtype for o in one.outputs] == [o.dtype for o in other.outputs]
    assert [o.shape for o in one.outputs] == [o.shape for o in other.outputs]
    assert [o.tobytes() for o in one.outputs] == [o.tobytes() for o in other.outputs]


# --- what is the same ----------------------------------------------------------------------------


def test_a_run_at_a_server_gives_the_very_bits_of_a_run_here(documented):
    messages = []
    result = run(
        MyModule,
        inputs=GIVEN,
        config=RunConfig(device=documented.device),
        on_progress=messages.append,
    )
    local = run(MyModule, inputs=GIVEN)
    same(result, local)
    assert result.correct == local.correct
    assert 0 < result.seconds < 1
    assert messages


@pytest.mark.parametrize("name", ["Nested", "Sizes", "SizeAsArgument", "TwoOutputs"])
def test_tuples_numbers_and_shapes_go_there_and_come_back(modules, documented, name):
    mod = Nested if name == "Nested" else getattr(modules, name)
    same(run(mod, config=RunConfig(device=documented.device)), run(mod))


def test_stages_are_timed_by_the_clock_of_the_server(documented):
    place = RunConfig(device=documented.device)
    found = measure([MyModule, MyModule], inputs=GIVEN, rounds=6, seconds=0.1, config=place)
    assert [len(one) for one in found] == [6, 6]
    assert all(0 < second < 1 for one in found for second in one)
    assert place.clock == documented.device
    (alone,) = measure([MyModule], "linear0", rounds=6, seconds=0.1, config=place)
    assert all(0 < second < 1 for second in alone)


def test_a_prim_func_is_run_at_a_server_as_here(documented):
    result = run(MyModule, "linear0", config=RunConfig(device=documented.device))
    same(result, run(MyModule, "linear0"))
    assert 0 < result.seconds < 1


def test_the_time_of_a_prim_func_is_the_servers(server, monkeypatch):
    place = here(server.device)
    run(MyModule, "linear0", config=place)
    monkeypatch.setattr(LocalModule, "evaluated", lambda *_: 123.0)
    assert run(MyModule, "linear0", config=place).seconds == 123.0


def test_a_module_is_sent_once_and_what_is_done_is_told(server, told):
    place = here(server.device)
    first = run(MyModule, inputs=GIVEN, config=place)
    connecting, building, uploading, loading, *rest = told()
    assert (connecting, building) == (f"connecting to {server.device}", "building")
    assert re.fullmatch(r"uploading [0-9.]+ MB", uploading)
    assert (loading, rest[0]) == ("loading", "copying the arguments")
    same(run(MyModule, inputs=GIVEN, config=place), first)
    # how many inputs share a message depends on how long the first one took
    again = [one for one in told() if not one.startswith("running")]
    assert again == [one for one in rest if not one.startswith("running")]


def test_no_file_is_left_behind(server, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "here"))
    run(MyModule, inputs=GIVEN, config=here(server.device))
    assert list((tmp_path / "here").iterdir()) == []
    assert server.files() == []


def test_without_a_compiler_here_the_server_links(server, monkeypatch):
    local = run(MyModule, inputs=GIVEN)
    monkeypatch.setattr(cc, "get_cc", lambda: None)
    same(run(MyModule, inputs=GIVEN, config=here(server.device)), local)
    assert server.files() == []


def test_a_function_that_the_server_has_is_called_there(server):
    result = run(calling("test.at_the_server"), inputs=ONES, config=here(server.device))
    assert result.outputs[0].tolist() == [[2, 2]]


# --- what fails ----------------------------------------------------------------------------------


def test_a_function_in_python_does_not_travel_there(server):
    from tvm import register_global_func

    register_global_func("test.here_alone", lambda *_: None, override=True)
    with pytest.raises(RunError, match=r"^'test.here_alone' is not registered at .*: let the serv"):
        run(calling("test.here_alone"), inputs=ONES, config=here(server.device))
    assert run(MyModule, inputs=GIVEN, config=here(server.device)).cases == 20


def test_a_trace_needs_this_machine():
    with pytest.raises(InputError, match=r"a trace needs this machine, .*: run without device"):
        run(
            MyModule,
            inputs=GIVEN,
            trace=TraceRequest(),
            config=RunConfig(device="127.0.0.1:1"),
        )


def test_no_server_is_told_at_once(servers):
    device = f"127.0.0.1:{servers.free_port()}"
    with pytest.raises(RunError, match=f"^there is no server at {device}: start one there with py"):
        # TVM itself waits 60 s
        run(MyModule, inputs=GIVEN, config=RunConfig(device=device, seconds=30))
    assert run(MyModule, inputs=GIVEN).cases == 20


def test_what_was_built_for_another_machine_is_told(server):
    place = RunConfig(False, device=server.device, target="llvm -mtriple=aarch64-linux-gnu")
    with pytest.raises(RunError, match="could not link the module, which was built for aarch64"):
        run(MyModule, inputs=GIVEN, config=place)
    assert server.files() == []
    assert run(MyModule, inputs=GIVEN, config=here(server.device)).cases == 20


def test_a_connection_that_is_lost_is_an_error_and_all_else_lives_on(servers, tmp_path):
    server = servers.Server(servers.free_port(), tmp_path).start()
    place, messages = RunConfig(device=server.device), []
    ending = threading.Timer(0.3, server.end)
    try:
        run(MyModule, inputs=GIVEN, config=place)

        def end_when_running(words):
            messages.append(words)
            if words == "running input 1 of 1":
                ending.start()

        with pytest.raises(RunError, match=f"^the connection to {server.device} was lost while ru"):
            run(endless(), inputs=ONES, config=place, on_progress=end_when_running)
        local = run(MyModule, inputs=GIVEN)
        ending.join()
        server.start()
        same(run(MyModule, inputs=GIVEN, config=place), local)
        with pytest.raises(RunError, match=r"took longer than 1 s .*while running input 1 of 1"):
            run(endless(), inputs=ONES, config=RunConfig(seconds=1, device=server.device))
        same(run(MyModule, inputs=GIVEN), local)
    finally:
        server.end()
        RUNS.stop()

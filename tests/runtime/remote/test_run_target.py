"""Devices and targets as they are written: what they stand for, and what is wrong with them."""

import numpy as np
import pytest

from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MyModule
from irviz.errors import RunError
from irviz.runtime.run import CallInputs, RunConfig, measure, run
from irviz.runtime.run_config import RemoteAddress, parse_device

GIVEN = CallInputs(digits().images[:20], mlp_params())


@pytest.mark.parametrize(
    ("device", "found"),
    [
        ("localhost:9090", RemoteAddress("localhost", 9090)),
        (" 192.168.0.7:9090 ", RemoteAddress("192.168.0.7", 9090)),
        ("board-3.lab.example:1/rasp4b", RemoteAddress("board-3.lab.example", 1, "rasp4b")),
        ("[::1]:65535/a:b/c", RemoteAddress("::1", 65535, "a:b/c")),
        ("[fe80::1%eth0]:9090", RemoteAddress("fe80::1%eth0", 9090)),
    ],
)
def test_an_address_is_read_and_written_as_it_was(device, found):
    assert parse_device(device) == found
    assert str(found) == device.strip()


@pytest.mark.worker
@pytest.mark.parametrize("device", ["", "cpu"])
def test_the_cpu_is_this_machines(device):
    assert parse_device(device) is None
    assert RunConfig(device=device).clock == "this machine"
    found = run(MyModule, inputs=GIVEN, config=RunConfig(device=device)).outputs[0]
    assert found.tobytes() == run(MyModule, inputs=GIVEN).outputs[0].tobytes()


@pytest.mark.worker
def test_a_target_can_be_given_for_this_machine():
    place = RunConfig(target='{"kind": "llvm", "mcpu": "x86-64"}')
    result = run(MyModule, inputs=GIVEN, config=place)
    np.testing.assert_allclose(result.outputs[0], run(MyModule, inputs=GIVEN).outputs[0], 1e-4)
    assert len(measure([MyModule], inputs=GIVEN, rounds=6, seconds=0.05, config=place)) == 1


@pytest.mark.parametrize(
    ("device", "words"),
    [
        ("gpu", "'gpu' is not a device: give 'cpu' for this machine, or the address of an RPC"),
        ("host:", "'host:' is not a device"),
        ("http://host:9090", "is not a device"),
        ("::1:9090", r"such as '192.168.0.7:9090' or '\[::1\]:9090'"),
        ("host:0", "'host:0' has port 0: give one of 1 to 65535"),
        ("host:99999", "give one of 1 to 65535"),
    ],
)
def test_a_device_that_cannot_be_one_is_refused(device, words):
    with pytest.raises(RunError, match=words):
        run(MyModule, inputs=GIVEN, config=RunConfig(device=device))


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("cuda", "'cuda' is not a target for a CPU: give one of kind llvm"),
        ("llvm nonsense", "'nonsense' in the target 'llvm nonsense' is not an option"),
        ("llvm -nonsense=1", "is not a target: ValueError: Unknown config option 'nonsense'"),
        ("{", "nor JSON"),
        ("llvm -mtriple=armv7-linux-gnu", "is for armv7, and this machine is .*: give the machine"),
    ],
)
def test_a_target_that_cannot_be_one_is_refused(target, words):
    with pytest.raises(RunError, match=words):
        run(MyModule, inputs=GIVEN, config=RunConfig(target=target))

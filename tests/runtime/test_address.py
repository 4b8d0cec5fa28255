"""Devices and targets as they are written: what they stand for, and what is wrong with them."""

import numpy as np
import pytest

from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MyModule
from irviz.runtime.address import Remote, remote
from irviz.runtime.run import Given, Place, RunError, measure, run

GIVEN = Given(digits().images[:20], mlp_params())


@pytest.mark.parametrize(
    ("device", "found"),
    [
        ("localhost:9090", Remote("localhost", 9090)),
        (" 192.168.0.7:9090 ", Remote("192.168.0.7", 9090)),
        ("board-3.lab.example:1/rasp4b", Remote("board-3.lab.example", 1, "rasp4b")),
        ("[::1]:65535/a:b/c", Remote("::1", 65535, "a:b/c")),
        ("[fe80::1%eth0]:9090", Remote("fe80::1%eth0", 9090)),
    ],
)
def test_an_address_is_read_and_written_as_it_was(device, found):
    assert remote(device) == found
    assert str(found) == device.strip()


@pytest.mark.parametrize("device", ["", "cpu"])
def test_the_cpu_is_this_machines(device):
    assert remote(device) is None
    assert Place(device=device).clock == "this machine"
    found = run(MyModule, given=GIVEN, place=Place(device=device)).outputs[0]
    assert found.tobytes() == run(MyModule, given=GIVEN).outputs[0].tobytes()


def test_a_target_can_be_given_for_this_machine():
    place = Place(target='{"kind": "llvm", "mcpu": "x86-64"}')
    result = run(MyModule, given=GIVEN, place=place)
    np.testing.assert_allclose(result.outputs[0], run(MyModule, given=GIVEN).outputs[0], 1e-4)
    assert len(measure([MyModule], given=GIVEN, rounds=6, seconds=0.05, place=place)) == 1


@pytest.mark.parametrize(
    ("device", "words"),
    [
        ("gpu", "'gpu' is no device: give 'cpu' for this machine, or the address of a server"),
        ("host:", "'host:' is no device"),
        ("http://host:9090", "is no device"),
        ("::1:9090", r"such as '192.168.0.7:9090' or '\[::1\]:9090'"),
        ("host:0", "'host:0' has port 0: give one of 1 to 65535"),
        ("host:99999", "give one of 1 to 65535"),
    ],
)
def test_a_device_that_cannot_be_one_is_refused(device, words):
    with pytest.raises(RunError, match=words):
        run(MyModule, given=GIVEN, place=Place(device=device))


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("cuda", "'cuda' is no target for a CPU: give one of kind llvm"),
        ("llvm nonsense", "'nonsense' in the target 'llvm nonsense' is no option"),
        ("llvm -nonsense=1", "is no target: ValueError: Unknown config option 'nonsense'"),
        ("{", "nor JSON"),
        ("llvm -mtriple=armv7-linux-gnu", "is for armv7, and this machine is .*: give the machine"),
    ],
)
def test_a_target_that_cannot_be_one_is_refused(target, words):
    with pytest.raises(RunError, match=words):
        run(MyModule, given=GIVEN, place=Place(target=target))

"""The first stage's results are compared with those of what it was imported from."""

import numpy as np
import pytest

from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MyModule
from irviz.errors import RunError
from irviz.model.graph.graph import NodeId
from irviz.model.runs.run_result import Origin, OriginRun, ValueRecorder
from irviz.session.session import Session

pytestmark = [pytest.mark.build, pytest.mark.worker]


class Numpy(Origin):
    """The lecture's MLP in NumPy, with another bias if that is wanted."""

    name = "NumPy"
    is_isolated = False

    def __init__(self, error=0.0):
        self.error, self.runs = error, 0

    def run(self, arguments, budget):
        self.runs += 1
        x, w0, b0, w1, b1 = (arguments[name] for name in ("x", "w0", "b0", "w1", "b1"))
        recorder = ValueRecorder(budget)
        lv0 = x @ w0.T + b0
        lv1 = np.maximum(lv0 + self.error, 0)
        out = lv1 @ w1.T + b1
        for name, value in (("lv0", lv0), ("lv1", lv1), ("out", out)):
            recorder.add(NodeId(name), [value])
        return OriginRun((out,), recorder.trace("main"), {NodeId("lv1"): "relu of layer 1"})


class Broken(Numpy):
    def run(self, *_):
        raise RunError("it is not there")


def session(origin):
    images = digits().images[:2].reshape(2, 1, 784)
    return Session(MyModule, params=mlp_params(), inputs=images, isolate=False, origin=origin)


def test_a_run_has_the_verdict_once_for_the_same_inputs():
    origin = Numpy()
    given = session(origin)
    for _ in range(2):
        assert str(given.run().origin).startswith("equals NumPy, max |Δ| ")
    assert origin.runs == 1
    assert given.with_params(mlp_params()).run().origin is not None
    assert origin.runs == 2


def test_a_verdict_names_the_first_node_that_differs_and_what_it_was():
    verdict = session(Numpy(0.5)).run().origin
    assert verdict.is_different
    assert "; first at lv1 (" in str(verdict)
    assert "imported from relu of layer 1" in str(verdict)


def test_an_origin_that_cannot_be_run_leaves_the_stage_its_result():
    result = session(Broken()).run()
    assert str(result.origin) == "not compared with NumPy: RunError: it is not there"
    assert result.cases == 2


def test_other_stages_and_functions_have_no_origin():
    given = session(Numpy())
    assert given.bind().run().origin is None
    assert given.select_function("relu0").run().origin is None


def test_a_report_says_against_what_the_first_stage_was_compared():
    rows = str(session(Numpy()).bind().report()).splitlines()
    assert "against NumPy: " in rows[1]
    assert "NumPy" not in rows[2]

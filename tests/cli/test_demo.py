"""The demo is the main job on real input: bound, swapped, run, and right as often as before."""

import pytest

from irviz.cli.main import demo_session, demo_stages
from irviz.model.runs.run_result import Verdict


@pytest.fixture(scope="module")
def stages():
    return demo_stages()


def test_the_demo_begins_with_the_lectures_module_its_weights_and_labelled_digits():
    begun = demo_session()
    assert len(begun.stages) == 1
    assert list(begun.unbound_params) == ["w0", "b0", "w1", "b1"]
    assert len(begun.call_inputs.inputs) == len(begun.call_inputs.labels) >= 100


@pytest.mark.worker
def test_the_demo_binds_the_weights_and_swaps_relu(stages):
    assert [stage.label for stage in stages.stages] == [
        "initial module",
        "BindParams w0, b0, w1, b1",
        "swap relu0 → env.relu",
    ]
    assert [stage.error for stage in stages.stages] == ["", "", ""]
    assert stages.graph()["lv1"].callee == "env.relu"


@pytest.mark.worker
def test_every_stage_reads_the_digits_equally_well(stages):
    results = [stages.run(stage=stage.id) for stage in stages.stages]
    assert {result.correct for result in results} == {results[0].correct}
    assert results[0].correct >= 0.97 * results[0].cases
    found = stages.compare("2", "0")
    assert found.verdict in (Verdict.EQUAL, Verdict.CLOSE)
    assert found.same_classes == found.cases

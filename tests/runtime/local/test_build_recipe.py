"""How a function is optimised before it is built is chosen, said, and changes no result."""

import numpy as np
import pytest
from tvm import relax
from tvm.s_tir import meta_schedule as ms

import irviz
from irviz.course.digits import digits, mlp_params
from irviz.course.mlp_high_level import MyModuleHighLevel
from irviz.errors import InputError, RunError
from irviz.runtime.build_module import BUILDS, PLAIN, optimised, tvm_target
from irviz.view.run_result_html import run_badge

TARGET = tvm_target("llvm")


@pytest.fixture
def session():
    return irviz.Session(
        MyModuleHighLevel, params=mlp_params(), inputs=digits().images[:2], isolate=False
    )


@pytest.mark.build
def test_every_build_gives_the_same_results_and_says_which_it_is(session, tmp_path):
    ms.database.JSONDatabase(work_dir=str(tmp_path))
    plain = session.run()
    assert plain.build == "plain"
    assert "build" not in run_badge(plain, None, "").run
    for build in BUILDS[1:]:
        database = str(tmp_path) if build == "tuned" else ""
        found = session.with_run_config(build=build, database=database).run()
        np.testing.assert_allclose(found.outputs[0], plain.outputs[0], rtol=1e-4, atol=1e-5)
        assert found.build == build
        assert f"{build} build" in run_badge(found, None, "").run


@pytest.mark.build
def test_a_trace_has_the_values_of_the_plain_build(session):
    plain, fast = (session.with_run_config(build=one).trace() for one in ("plain", "dlight"))
    assert list(fast.visits) == list(plain.visits)
    for node, visit in plain.visits.items():
        for one, other in zip(visit.value.arrays, fast[node].value.arrays, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_the_default_build_fuses_and_dlight_schedules():
    def kernels(kind):
        mod = optimised(MyModuleHighLevel, TARGET, kind)
        return {
            g.name_hint: f for g, f in mod.functions.items() if not isinstance(f, relax.Function)
        }

    assert optimised(MyModuleHighLevel, TARGET, PLAIN) is MyModuleHighLevel
    assert any("fused" in name for name in kernels("default"))
    scheduled = [f for f in kernels("dlight").values() if "tirx.is_scheduled" in (f.attrs or {})]
    assert scheduled


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"build": "fast"}, "there is no build 'fast': choose one of 'plain', 'default'"),
        ({"build": "tuned"}, "give the folder of a database with build='tuned'"),
        ({"build": "default", "database": "x"}, "give the folder of a database with build='tuned'"),
    ],
)
def test_a_build_that_does_not_exist_is_refused(session, changes, words):
    with pytest.raises(InputError, match=words):
        session.with_run_config(**changes).run()


def test_a_database_that_is_none_is_refused(session, tmp_path):
    with pytest.raises(RunError, match=r"has no database_workload\.json: give the work_dir"):
        session.with_run_config(build="tuned", database=str(tmp_path)).run()

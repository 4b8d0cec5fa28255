"""Two pipelines beside each other: where they part, and which pass takes longer."""

import pytest
import tvm
from tvm import relax, tirx

import irviz
from irviz.cli.main import main
from irviz.course.mlp import MyModuleHighLevel
from irviz.session.compare_pipelines import compare_pipelines
from irviz.session.session import Session
from irviz.transforms.stage import Stage

FUSION = (relax.transform.AnnotateTIROpPattern, relax.transform.FuseOps)


def record(*passes, mod=MyModuleHighLevel):
    with irviz.record() as recording:
        tvm.transform.Sequential([relax.transform.LegalizeOps(), *passes])(mod)
    return recording


def _renamed(mod):
    made = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    made.update_func(mod.get_global_var("main"), relax.utils.copy_with_new_vars(mod["main"]))
    return made


def test_the_first_pass_with_another_option_is_where_two_pipelines_part():
    one = record(FUSION[0](), FUSION[1](), relax.transform.FuseTIR())
    two = record(FUSION[0](), FUSION[1](fuse_opt_level=0), relax.transform.FuseTIR())
    found = one.compare(two)
    assert found
    assert found.first.name == "FuseOps"
    assert "first difference: after FuseOps (stages 3 and 3)" in str(found)
    assert found.diff
    shown = found.session()
    assert bool(shown.diff("0", "1"))


def test_the_same_pipeline_twice_is_the_same_up_to_names():
    lowered = [tirx.transform.MakePackedAPI(), tirx.transform.BindTarget(tvm.target.Target("llvm"))]
    found = record(*lowered[::-1]).compare(record(*lowered[::-1]))
    assert not found
    assert found.first is None
    assert found.diff is None
    with pytest.raises(irviz.StageError):
        found.session()
    renamed = irviz.Session(MyModuleHighLevel)
    again = irviz.Session(_renamed(MyModuleHighLevel))
    assert not compare_pipelines(renamed, again)


def test_a_pass_that_only_one_has_is_named_and_is_the_first_difference_if_it_changes_anything():
    found = record().compare(record(FUSION[0]()))
    assert found.first.name == "AnnotateTIROpPattern"
    assert found.first.before is None
    assert "only in after: AnnotateTIROpPattern" in str(found)
    without_effect = record().compare(record(relax.transform.LegalizeOps()))
    assert without_effect
    assert without_effect.first is None


def test_other_modules_differ_from_the_beginning():
    found = record().compare(record(mod=relax.transform.LegalizeOps()(MyModuleHighLevel)))
    assert found.first is found.passes[0]
    assert "the modules that they begin with differ" in str(found)


def stages(*milliseconds):
    first = Stage("0", MyModuleHighLevel)
    others = [
        Stage(str(at), MyModuleHighLevel, f"pass{at}", "0", seconds=each / 1000)
        for at, each in enumerate(milliseconds, 1)
    ]
    return Session.from_stages([first, *others])


def test_only_what_is_beyond_the_noise_of_other_passes_takes_longer():
    usual, noisy = stages(1, 2, 3, 2, 1, 10, 5), stages(2, 1, 6, 3, 2, 9, 9)
    assert not compare_pipelines(usual, noisy).clear_differences
    assert not compare_pipelines(stages(5), stages(15)).clear_differences
    found = compare_pipelines(usual, stages(2, 1, 6, 3, 2, 9, 50))
    assert [one.name for one in found.clear_differences] == ["pass7"]
    assert "pass7: 5 ms and 50 ms (10.0 ×)" in str(found)


@pytest.mark.worker
def test_saved_recordings_are_compared_on_the_command_line(tmp_path, capsys):
    paths = [str(tmp_path / name) for name in ("a.irviz", "b.irviz")]
    record(FUSION[0](), FUSION[1]()).session().save(paths[0])
    record(FUSION[0]()).session().save(paths[1])
    assert main(["diff", *paths]) == 1
    assert "first difference: after FuseOps" in capsys.readouterr().out
    assert main(["diff", *paths, "-o", str(tmp_path / "x.svg")]) == 1
    assert (tmp_path / "x.svg").exists()
    assert main(["diff", paths[0], paths[0]]) == 0

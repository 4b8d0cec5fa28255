"""The catalog lists the passes that can be applied as they are."""

import re

import pytest
import tvm

from irviz.course.mlp import MODULES
from irviz.transforms.catalog import catalog, named_pass
from irviz.transforms.stage import Stage, TransformError, apply


def test_the_passes_a_lecture_needs_are_there_by_name():
    names = [entry.name for entry in catalog()]
    assert names == sorted(names)
    assert {
        "LegalizeOps",
        "FoldConstant",
        "DeadCodeElimination",
        "FuseOps",
        "FuseTIR",
        "CanonicalizeBindings",
        "EliminateCommonSubexpr",
        "ToNonDataflow",
        "CallTIRRewrite",
    } <= set(names)


def test_passes_that_need_arguments_are_not():
    names = {entry.name for entry in catalog()}
    assert names.isdisjoint({"BindParams", "FuseOpsByPattern", "UpdateVDevice"})


@pytest.mark.parametrize("entry", catalog(), ids=lambda entry: entry.name)
def test_every_entry_makes_a_pass_and_says_what_it_does(entry):
    made = entry.make()
    assert isinstance(made, tvm.ir.transform.Pass)
    assert entry.summary == entry.summary.strip()
    assert "\n" not in entry.summary
    assert named_pass(entry.name).label


def test_most_entries_have_a_summary():
    summaries = [entry.summary for entry in catalog()]
    assert sum(map(bool, summaries)) > 0.9 * len(summaries)


@pytest.mark.parametrize("name", ["NoSuchPass", "", "legalizeops", "BindParams"])
def test_an_unknown_pass_is_refused(name):
    with pytest.raises(TransformError, match=re.escape(f"the catalog has no pass {name!r}")):
        named_pass(name)


def test_a_pass_of_the_catalog_does_its_work():
    stage = apply(Stage("0", MODULES["MyModuleHighLevel"]), named_pass("LegalizeOps"), "1")
    assert stage.error == ""
    assert "call_tir" in stage.module["main"].script()

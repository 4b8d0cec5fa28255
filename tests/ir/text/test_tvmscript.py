"""TVMScript is the same in every Python."""

import sys

from irviz.course.mlp import MyModuleMixture
from irviz.ir.tvmscript import tvmscript


def test_what_a_new_python_writes_is_what_an_old_one_writes(monkeypatch):
    here = tvmscript(MyModuleMixture)
    for version in ((3, 10), (3, 12)):
        monkeypatch.setattr(sys, "version_info", version)
        assert tvmscript(MyModuleMixture) == here
    assert MyModuleMixture.script() != here, "TVM writes another text for the new one"

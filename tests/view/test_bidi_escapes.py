"""Names that would be shown in another order than they have are shown with escapes."""

import pytest
from tvm import relax

import irviz
from irviz.course.mlp import MyModule
from irviz.explorer.stage_rows import stage_rows
from irviz.explorer.state import State
from irviz.view.svg_primitives import visible
from irviz.view.templating import escape, render

HOSTILE = "safe\u202egnitte\u2066s"


def test_controls_are_written_as_escapes_and_other_scripts_are_left_alone():
    assert visible(HOSTILE) == r"safe\u202egnitte\u2066s"
    assert visible("שלום 你好 ✓\n\t") == "שלום 你好 ✓\n\t"


@pytest.mark.parametrize("shown", [escape, lambda text: render("status_lines", lines=[text])])
def test_html_has_none(shown):
    found = str(shown(HOSTILE))
    assert "\u202e" not in found
    assert r"\u202e" in found


def test_pictures_have_none():
    builder = relax.BlockBuilder()
    x = relax.Var(HOSTILE, relax.TensorType((2,), "float32"))
    with builder.function(HOSTILE, [x]):
        builder.emit_func_output(relax.op.call_dps_packed(HOSTILE, (x,), out_ty=x.ty))
    figure = irviz.Session(builder.get()).draw()
    assert "\u202e" not in figure.svg
    assert r"\u202e" in figure.svg


def test_the_list_of_stages_has_none():
    session = irviz.Session(MyModule).rename("0", HOSTILE)
    (row,) = stage_rows(State.of(session))
    assert row["label"] == visible(HOSTILE)

# ruff: noqa: N803, N812
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""What computes the same is offered, the rest has its reason, and one's own can be put in."""

import asyncio
import re
import threading

import numpy as np
import pytest
import tvm
from IPython.core.interactiveshell import InteractiveShell
from tvm import relax
from tvm.script import tirx as T

from irviz.course.mlp import MyModule, MyModuleHighLevel, MyModuleStatic, MyModuleWithExternCall
from irviz.explorer.actions import Checkout, Select, SetField
from irviz.explorer.effects import Effects
from irviz.explorer.panels.kernel_swap_panel import SwapPanel, UpdatePanel, notebook_variables
from irviz.ir.function_graph import extract
from irviz.session.session import Session
from irviz.transforms.kernels import candidates, library
from irviz.transforms.kernels import candidates as equivalence_on_samples

pytestmark = pytest.mark.worker


@T.prim_func(s_tir=True)
def leaky(X: T.Buffer((1, 128), "float32"), Y: T.Buffer((1, 128), "float32")):
    for i, j in T.grid(1, 128):
        with T.sblock("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = T.max(X[vi, vj], X[vi, vj] * T.float32(0.1))


@pytest.fixture(autouse=True)
def as_without_pytorch(only_irvizs_kernels):  # noqa: ARG001 - it restores them
    """List the same kernels on every machine."""
    for name in [name for name in library.kernels() if name.startswith("torch.")]:
        del library.KERNELS_BY_NAME[name]


@pytest.fixture
def calls(desk_class):
    """Returns a panel for the calls of a module, as it is shown for a node."""

    class Calls(desk_class):
        def __init__(self, mod, panel, **arguments):
            super().__init__(Session(mod), lambda store: panel(store, **arguments), effects=Effects)
            self.dispatch(SetField("runs_new_stages", False))

        def show(self, node):
            self.dispatch(Select(node))
            return self.panel.widget.layout.display != "none"

        @property
        def offered(self):
            return self.find("irviz-swap-to").options

        def choose(self, name):
            self.find("irviz-swap-to").value = name

        @property
        def callees(self):
            graph = extract(self.session.current.module)
            return [node.callee for node in graph.nodes if node.callee]

    return Calls


# --- swapping ----------------------------------------------------------------------------------


def test_what_computes_the_same_is_offered_and_counted(calls):
    desk = calls(MyModuleStatic, SwapPanel)
    assert desk.show("lv1")
    assert desk.offered == ("env.relu", "numpy.relu", "topi.relu")
    assert desk.find("irviz-swap-to").value == "env.relu"
    assert re.search(r"3 of the \d+ that fit compute the same", desk.html("irviz-swap-count"))
    assert "kernel, equal on sample inputs. Compute max(x, 0), by NumPy." in desk.html(
        "irviz-swap-about"
    )
    desk.choose("topi.relu")
    assert "definition, equal on sample inputs. Compute max(x, 0)." in desk.html("irviz-swap-about")


def test_the_others_stand_below_with_their_reasons(calls):
    desk = calls(MyModuleStatic, SwapPanel)
    desk.show("lv1")
    reasons = desk.html("irviz-swap-reasons")
    assert re.search(r"<summary>\d+ fit and are not offered</summary>", reasons)
    assert re.search(r"<summary>\d+ do not fit</summary>", reasons)
    assert "<b>numpy.exp, topi.exp</b>: computes something else: max |Δ| " in reasons
    assert "<b>linear0</b>: its signature is (1,784),(128,784),(128)-&gt;(1,128)" in reasons
    assert "env.relu" not in reasons


def test_the_button_swaps_the_selected_call_or_all_of_its_kind(calls):
    desk = calls(MyModule, SwapPanel)
    desk.show("lv0")
    assert desk.find("irviz-swap-everywhere").description == "all 2 calls of linear0"
    assert desk.sees("irviz-swap-everywhere")
    desk.press("Replace")
    assert desk.callees == ["env.linear", "relu0", "linear0"]
    desk.dispatch(Checkout("0"))
    desk.choose("topi.linear")
    desk.find("irviz-swap-everywhere").value = True
    desk.press("Replace")
    assert desk.callees == ["linear", "relu0", "linear"]
    desk.show("lv1")
    assert not desk.sees("irviz-swap-everywhere")
    assert desk.find("irviz-swap-everywhere").value is False


def test_a_library_call_is_offered_the_way_back(calls):
    desk = calls(MyModuleWithExternCall, SwapPanel)
    desk.show("lv0")
    assert desk.offered == ("numpy.linear", "topi.linear")
    desk.choose("topi.linear")
    desk.press("Replace")
    assert desk.callees == ["linear", "env.relu", "env.linear"]


@pytest.mark.parametrize("node", ["", "x", "nowhere"])
def test_what_is_no_call_has_no_panel(calls, node):
    assert not calls(MyModuleStatic, SwapPanel).show(node)
    assert not calls(MyModuleHighLevel, SwapPanel).show("lv0")


def test_nothing_is_tried_for_what_is_no_call(calls, monkeypatch):
    monkeypatch.setattr(candidates, "compare_on_samples", lambda *_: pytest.fail("it was tried"))
    desk = calls(MyModuleHighLevel, SwapPanel)
    for node in ("x", "lv0", "out"):
        desk.show(node)


def test_a_choice_stays_as_long_as_the_call_is_looked_at(calls):
    desk = calls(MyModuleStatic, SwapPanel)
    desk.show("lv1")
    desk.choose("numpy.relu")
    desk.show("lv1")
    assert desk.find("irviz-swap-to").value == "numpy.relu"
    desk.choose("topi.relu")
    said = []
    desk.find("irviz-swap-controls").layout.observe(
        lambda change: said.append(change.new), "display"
    )
    desk.show("lv1")
    assert desk.find("irviz-swap-to").value == "topi.relu"
    assert said == []  # nothing goes away under the pointer
    desk.show("lv0")
    assert desk.find("irviz-swap-to").value == "env.linear"


def test_where_nothing_computes_the_same_there_is_nothing_to_press(calls):
    tvm.register_global_func("test.<b>", lambda *_: None, override=True)
    x = relax.Var("x", relax.TensorType([2, 3], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.call_dps_packed("test.<b>", x, x.ty), "y"))
    desk = calls(builder.get(), SwapPanel)
    assert desk.show("y")
    assert not desk.sees("irviz-swap-controls")
    assert re.search(r"0 of the \d+ that fit compute the same", desk.html("irviz-swap-count"))
    assert "not tried: &#39;test.&lt;b&gt;&#39; was registered with TVM directly" in (
        desk.html("irviz-swap-reasons")
    )


def test_what_fits_is_shown_before_it_is_tried(calls):
    library.register("env.test_new", "(...)->(...)")(lambda x, out: np.maximum(x, 0, out=out))
    desk = calls(MyModuleStatic, SwapPanel)
    said = []
    desk.find("irviz-swap-count").observe(lambda change: said.append(change.new), "value")
    desk.show("lv1")
    assert re.fullmatch(r"<p>trying what fits: 0 of \d+ compute the same so far</p>", said[0])
    assert re.fullmatch(r"<p>4 of the \d+ that fit compute the same</p>", said[-1])


def test_a_kernel_that_never_ends_holds_up_nothing_else(calls, monkeypatch):
    """In a notebook, which has an event loop, it is tried beside all else."""
    gate, tried = threading.Event(), equivalence_on_samples.compare_on_samples

    def held_up(*arguments):
        assert gate.wait(20)
        return tried(*arguments)

    monkeypatch.setattr(candidates, "compare_on_samples", held_up)
    library.register("env.test_slow", "(...)->(...)")(lambda x, out: np.maximum(x, 0, out=out))
    desk = calls(MyModuleStatic, SwapPanel)

    async def notebook():
        assert desk.show("lv1")
        assert "trying what fits" in desk.html("irviz-swap-count")
        assert not desk.show("x")
        desk.show("lv1")
        gate.set()
        while "trying" in desk.html("irviz-swap-count"):
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(notebook(), 20))
    assert re.fullmatch(
        r"<p>4 of the \d+ that fit compute the same</p>", desk.html("irviz-swap-count")
    )


# --- one's own PrimFunc ------------------------------------------------------------------------


def test_the_notebooks_prim_funcs_that_fit_are_offered_by_name(calls):
    variables = {
        "leaky": leaky,
        "Other": MyModule,
        "Same": MyModuleStatic,
        "_": leaky,
        "_12": leaky,
        "number": 7,
    }
    desk = calls(MyModuleStatic, UpdatePanel, variables=lambda: variables)
    assert desk.show("lv1")
    assert [value for _, value in desk.find("irviz-update-by").options] == [
        "",
        "leaky",
        "Other.relu0",
    ]
    assert "Replace relu0 everywhere" in desk.html()
    assert desk.html("irviz-update-about") == ""


def test_it_says_whether_it_computes_the_same_and_replaces_it_anyway(calls):
    desk = calls(MyModuleStatic, UpdatePanel, variables=lambda: {"leaky": leaky, "M": MyModule})
    desk.show("lv1")
    desk.find("irviz-update-by").value = "M.relu0"
    assert "equal on sample inputs" in desk.html("irviz-update-about")
    desk.find("irviz-update-by").value = "leaky"
    assert "computes something else: max |Δ| " in desk.html("irviz-update-about")
    desk.press("Replace")
    assert desk.session.current.label == "update relu0"
    assert "0.1" in desk.session.current.module["relu0"].script()


def test_without_a_choice_nothing_is_replaced(calls):
    desk = calls(MyModuleStatic, UpdatePanel, variables=lambda: {"leaky": leaky})
    desk.show("lv1")
    desk.press("Replace")
    words = "no PrimFunc is chosen: choose one to put into the place of 'relu0'"
    assert desk.error_at("irviz-update-by") == words
    assert len(desk.session.stages) == 1


@pytest.mark.parametrize(
    ("mod", "node", "variables"),
    [
        (MyModuleStatic, "lv1", {}),
        (MyModuleStatic, "lv1", {"same": MyModuleStatic}),
        (MyModuleStatic, "lv0", {"leaky": leaky}),
        (MyModuleWithExternCall, "lv1", {"leaky": leaky}),
        (MyModuleStatic, "x", {"leaky": leaky}),
        (MyModuleStatic, "", {"leaky": leaky}),
    ],
)
def test_where_nothing_fits_there_is_no_such_panel(calls, mod, node, variables):
    assert not calls(mod, UpdatePanel, variables=lambda: variables).show(node)


def test_the_variables_are_those_of_the_notebook():
    assert notebook_variables() == {}
    shell = InteractiveShell.instance()
    try:
        shell.user_ns["leaky"] = leaky
        assert notebook_variables()["leaky"] is leaky
    finally:
        InteractiveShell.clear_instance()

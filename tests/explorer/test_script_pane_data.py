"""The TVMScript that the page shows has the lines of its functions and nodes."""

from __future__ import annotations

import re
from typing import Any

import pytest
import tvm

from irviz.course.mlp import MODULES, MyModule
from irviz.explorer.actions import Select, SetField
from irviz.explorer.reducer import reduce
from irviz.explorer.script_pane_data import script_data
from irviz.explorer.state import State
from irviz.explorer.viewer.schema import Script
from irviz.explorer.viewer_traits import viewer_data
from irviz.model.graph.graph import NodeKind
from irviz.session.session import Session
from irviz.session.stage_cache import graph_of
from irviz.transforms.stage import Stage

pytestmark = pytest.mark.worker


def function_of(script: Script, line: int) -> str:
    return next(one["name"] for one in script["functions"] if one["first"] <= line <= one["last"])


def check(script: Script) -> None:
    """Check that each function and node has its own lines."""
    lines = script["text"].splitlines()
    last = 0
    for function in script["functions"]:
        assert last < function["first"] <= function["last"] <= len(lines)
        last = function["last"]
        here = lines[function["first"] - 1 : last]
        assert here[0].lstrip().startswith("@")
        assert sum(bool(re.match(rf" *def {function['name']}\b", line)) for line in here) == 1
        assert here[-1].strip()
    for name, nodes in script["lines"].items():
        assert {function_of(script, line) for line in nodes.values()} == {name}


@pytest.mark.parametrize("name", ["MyModule", "MyModuleHighLevel", "MyModuleWithExternCall"])
def test_functions_and_nodes_have_their_lines(name: str) -> None:
    stage = Stage("0", MODULES[name])
    script = script_data(stage)
    check(script)
    assert (script["stage"], script["label"]) == ("0", stage.label)
    lines = script["text"].splitlines()
    known = {node: lines[line - 1] for node, line in script["lines"]["main"].items()}
    graph = graph_of(stage, "main")
    bound = [one.id for one in graph.nodes if one.kind is not NodeKind.PARAM]
    assert set(bound) <= known.keys()
    for node in bound:
        assert re.match(rf" *{node}\b.* = ", known[node])


def test_nodes_of_several_functions_have_their_own_lines(modules: Any) -> None:
    script = script_data(Stage("0", modules.TwoFunctions))
    check(script)
    assert {one["name"] for one in script["functions"]} >= {"first", "second"}
    assert script["lines"].keys() >= {"first", "second"}
    twice = [nodes["y"] for nodes in script["lines"].values() if "y" in nodes]
    assert len(twice) == len(set(twice)) == 2


def test_every_kind_of_binding_has_lines_in_its_function(modules: Any) -> None:
    check(script_data(Stage("0", modules.EveryKind)))
    check(script_data(Stage("0", modules.CalledInCalled)))


def test_a_text_with_signs_that_turn_it_around_is_shown_as_it_is() -> None:
    stage = Stage("0", MyModule, label="a\u202eb")
    assert "\u202e" not in script_data(stage)["label"]


# --- as NumPy ----------------------------------------------------------------------------------


def linked(script: Script) -> dict[str, set[str]]:
    """Return for each line of NumPy the lines of TVMScript that it was made of, stripped."""
    lines = script["text"].splitlines()
    starts = {
        one["name"]: next(
            number
            for number in range(one["first"], one["last"] + 1)
            if lines[number - 1].lstrip().startswith("def ")
        )
        for one in script["functions"]
    }
    found: dict[str, set[str]] = {}
    for one in script["numpy"]:
        texts = one["text"].splitlines()
        assert len(one["lines"]) in (0, len(texts))
        for text, offset in zip(texts, one["lines"], strict=False):
            if offset >= 0:
                tvms = lines[starts[one["function"]] + offset - 1].strip()
                found.setdefault(text.strip(), set()).add(tvms)
    return found


def test_a_line_of_numpy_is_linked_to_the_line_of_tvmscript_that_it_was_made_of() -> None:
    found = linked(script_data(Stage("0", MODULES["MyModule"]), True))

    assert found["for k in range(m):"] == {"for i, j, k in T.grid(1, n, m):"}
    assert found["Y[i, j] = 0.0"] == {"Y[vi, vj] = T.float32(0.0)"}
    for line in ("lv1 = np.empty((1, n), dtype='float32')", "lnumpy_relu0(lv0, lv1)"):
        (call,) = found[line]
        assert call.startswith('lv1 = R.call_dps_packed("relu0", (lv0,)')
    (definition,) = found["def lnumpy_relu0(X: np.ndarray, Y: np.ndarray):"]
    assert definition.startswith("def relu0(")


def test_a_function_that_cannot_be_written_says_the_construct_at_its_line() -> None:
    found = linked(script_data(Stage("0", MODULES["MyModuleHighLevel"]), True))
    ((words, lines),) = ((one, tvms) for one, tvms in found.items() if "cannot be written" in one)

    assert re.match(r"# main cannot be written as NumPy: line \d+ has the operator relax", words)
    assert all("= R." in tvms for tvms in lines)


# --- in the explorer ---------------------------------------------------------------------------


@pytest.fixture
def unprintable(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a module, new so that its text is not known yet; TVM prints no module."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no such <node>\nat all")

    monkeypatch.setattr(tvm.IRModule, "script", fail)
    return tvm.IRModule(dict(MyModule.functions_items()))


def test_there_is_no_text_before_it_is_asked_for(opened: Any) -> None:
    page = opened(Session(MyModule).apply("LegalizeOps"))
    assert page.explorer.scripts == {"current": None, "reference": None}
    page.compare("0")
    page.write("hasScript", True)
    shown = page.explorer.scripts
    assert (shown["current"]["stage"], shown["reference"]["stage"]) == ("1", "0")
    page.compare("")
    assert page.explorer.scripts["reference"] is None


def test_the_blocks_of_the_drawn_prim_func_have_their_lines(opened: Any) -> None:
    page = opened(Session(MyModule, function="linear0"))
    assert page.explorer.blockLines == {}
    page.write("hasScript", True)
    lines = page.explorer.scripts["current"]["text"].splitlines()
    known = {
        node: lines[line - 1].strip()
        for node, line in page.explorer.blockLines["0"]["linear0"].items()
    }
    for node, facts in page.explorer.scene["current"]["nodes"].items():
        start = "def linear0(" if facts["kind"] == "parameter" else "with T.sblock("
        assert known[node].startswith(start)
    page.write("hasScript", False)
    assert page.explorer.blockLines == {}


@pytest.mark.parametrize("name", ["nested calls", "a called call", "strange callees"])
def test_modules_that_tvm_does_not_print_are_shown(constructs: Any, name: str) -> None:
    state = State.of(Session(constructs.construct(name)))
    shown: Any = viewer_data(reduce(state, SetField("has_script", True)))
    assert shown["scripts"]["current"]["text"].startswith("# TVM does not print this module: ")
    node = next(iter(shown["scene"]["current"]["nodes"]))
    shown = viewer_data(reduce(state, Select(node)))
    assert shown["selection"]["node"] == node
    assert "TVM does not print this module: " in shown["details"]["code"]


def test_a_module_that_tvm_cannot_print_says_so_and_is_drawn(
    opened: Any, unprintable: tvm.IRModule
) -> None:
    page = opened(Session(unprintable, function="main"))
    page.write("hasScript", True)
    script = page.explorer.scripts["current"]
    assert script["text"] == "# TVM does not print this module: no such <node>\n# at all"
    assert (script["functions"], script["lines"]) == ([], {})
    assert 'class="node' in page.canvas.svg
    page.select("lv0")
    assert "TVM does not print this module: no such &lt;node&gt;" in page.code
    assert page.message == ""

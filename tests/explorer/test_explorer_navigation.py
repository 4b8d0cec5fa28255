"""A large function is looked at as far as one likes: opened, closed, searched, narrowed."""

import re

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax.expr_functor import PyExprMutator, mutator
from tvm.relax.frontend import nn

import irviz
from irviz.course.mlp import MODULES
from irviz.explorer.actions import Apply, Report, Select, Toggle, ToggleAll
from irviz.explorer.background_actions import perform
from irviz.explorer.selected_node import shown_selection
from irviz.explorer.stage_pictures import scene, view_or_none
from irviz.explorer.state import RunKey, State
from irviz.limits import EXPANDED_NODES, MOST_NODES
from irviz.model.graph.graph import LayerPart, NodeKind, RegionKind, inlined_id
from irviz.model.runs.execution_trace import Trace
from irviz.model.runs.run_result import RunResult
from irviz.session.shown_function import ViewState
from irviz.transforms.bind_params import bind_params

pytestmark = pytest.mark.worker

LAYERS = 24


@pytest.fixture
def stack(opened, modules):
    """The explorer on 24 equal layers."""
    return opened(modules.stack(LAYERS))


def drawn(page):
    return page.canvas.drawn


def signs(page):
    return re.findall(r'data-toggle="([^"]*)"', page.canvas.svg)


def repeat(page):
    return next(sign for sign in signs(page) if sign.startswith("repeat"))


def places(page):
    return scene(page.state, "current").figure.places


def view(page):
    return view_or_none(page.state, "current")


# --- opening and closing -----------------------------------------------------------------------


def test_equal_layers_are_one_layer_with_a_count(stack):
    assert "×24" in stack.canvas.svg
    assert len(drawn(stack)) == 1 + 2 + 6 + 4
    assert "13 of 243 nodes" in stack.captions[0]


def test_at_first_nothing_is_selected_and_the_module_is_described(stack):
    assert stack.canvas.selected == ""
    assert "<h3>module</h3>" in stack.facts
    assert "equal layers ×24" in stack.captions[0]


def test_what_is_selected_follows_what_is_opened_and_closed(stack):
    sign = repeat(stack)
    stack.canvas.selected = "lv3"
    stack.toggle(sign)
    assert stack.canvas.selected == sign
    stack.toggle(sign)
    assert view(stack).around(stack.canvas.selected) == sign


def test_what_is_open_stays_open_when_more_is_opened(opened, modules):
    explorer = opened(modules.unlike(260))
    closed = sorted(view(explorer).openable)
    before = view(explorer).closable
    explorer.toggle(closed[0])
    assert before < view(explorer).closable
    assert closed[0] in view(explorer).closable


def test_the_latest_that_was_opened_is_open_within_the_limit(modules):
    state = State.of(irviz.Session(modules.unlike(900)))
    for _ in range(12):
        closed = sorted(view_or_none(state, "current").openable)
        state = perform(state, Toggle(closed[0]))
        assert len(view_or_none(state, "current").graph.nodes) <= MOST_NODES
    assert closed[0] in view_or_none(state, "current").closable


def test_a_selected_group_that_was_opened_is_shown_by_the_first_node_in_it(modules):
    mod = modules.unlike(900)
    names = [one.id for one in irviz.graph(mod).nodes if one.kind is NodeKind.OPERATOR]
    layers = {
        name: ((LayerPart(f"outer{at // 300}", ""), LayerPart(f"inner{at // 50}", "")),)
        for at, name in enumerate(names)
    }
    state = State.of(irviz.Session(mod, layers={"main": layers}))
    state = perform(perform(state, Select("layer:outer1")), Toggle("layer:outer1"))
    assert shown_selection(state) == "layer:outer1.inner6"
    state = perform(state, Toggle("layer:outer1.inner6"))
    assert shown_selection(state) == names[300]


def test_a_sign_closes_a_frame_and_opens_it_again(stack):
    before, sign = stack.canvas.svg, repeat(stack)
    stack.toggle(sign)
    assert sign in drawn(stack)
    assert "240 nodes" in stack.canvas.svg
    stack.toggle(sign)
    assert stack.canvas.svg == before


def test_leaving_a_node_closes_what_is_around_it(stack):
    sign = repeat(stack)
    stack.toggle(stack.node("lv1")["group"])
    assert sign in drawn(stack)


@pytest.mark.parametrize(
    "content",
    [
        *({}, {"a": "b"}, {"action": "Toggle", "container": 3}, {"action": "Apply"}),
        *({"action": "Toggle", "container": one} for one in ("nothing", "lv1")),
    ],
)
def test_a_page_that_asks_for_what_is_not_there_changes_nothing(stack, content):
    before = stack.canvas.svg
    stack.send(**content)
    stack.send(**content)
    assert (stack.canvas.svg, stack.message) == (before, "")


def test_the_page_is_told_how_far_what_is_opened_or_closed_moved(stack):
    """So that it stays where it was for a reader who has zoomed."""
    sign = repeat(stack)
    stack.toggle(sign)
    x, y = places(stack)[sign]
    stack.toggle(sign)
    moved = places(stack)[sign]
    assert stack.explorer.scene["moved"] == [moved[0] - x, moved[1] - y] != [0, 0]


def test_what_is_drawn_anew_for_another_reason_has_not_moved(stack):
    stack.toggle(repeat(stack))
    assert stack.explorer.scene["moved"] != [0, 0]
    shown = stack.explorer.scene
    trace = Trace("main", {}, 1.0, 1.0, 1.0, 0)
    stack.explorer.dispatch(Report(RunKey("main", "0", 0, 0), RunResult((), 1.0, trace=trace)))
    assert stack.explorer.scene is not shown
    assert stack.explorer.scene["moved"] == [0, 0]


def test_nothing_moves_that_the_next_stage_has_too_unless_nodes_were_fused(opened):
    session = irviz.Session(MODULES["MyModuleHighLevel"])
    for name in ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps", "FuseTIR"):
        session = session.apply(name)
    explorer = opened(session)
    for stage in "3", "2", "1", "0", "1", "2":
        before, was_fused = explorer.canvas.places, explorer.explorer.session.current_id == "3"
        explorer.choose(stage)
        after = explorer.canvas.places
        if was_fused:
            continue
        both = [one for one in before if one in after]
        assert len(both) >= 7
        assert {one: before[one] for one in both} == {one: after[one] for one in both}


def test_a_called_function_opens_in_the_place_of_its_call(opened, modules):
    explorer = opened(modules.EveryKind, function="main")
    assert inlined_id("called", "x") not in drawn(explorer)
    explorer.toggle("called")
    assert {inlined_id("called", "x"), inlined_id("called", "y"), "called"} <= set(drawn(explorer))
    explorer.canvas.selected = inlined_id("called", "y")
    assert "relax.add" in explorer.facts
    assert "TVMScript, line" in explorer.code
    explorer.toggle("called")
    assert inlined_id("called", "x") not in drawn(explorer)
    assert explorer.canvas.selected == "called"


def test_a_branch_closes_and_opens(opened, modules):
    explorer = opened(modules.EveryKind, function="main")
    explorer.toggle(explorer.node("chosen_then")["group"])
    assert "chosen_then" not in drawn(explorer)
    assert "then:chosen_then" in drawn(explorer)
    explorer.toggle("then:chosen_then")
    assert "chosen_then" in drawn(explorer)


# --- copies ------------------------------------------------------------------------------------


def test_another_copy_is_shown_by_its_number_with_what_differs(stack):
    stack.canvas.selected = "lv2"
    assert "<dt>argument 1</dt><dd>up_0, up_1, up_2" in stack.facts
    here = stack.node("lv2")
    assert (here["copy"], here["copies"]) == (0, 24)
    stack.send(action="ShowCopy", container=here["container"], copy=5)
    assert "up_5" in drawn(stack)
    assert "up_0" not in drawn(stack)
    assert stack.canvas.selected == "lv32"
    assert "6 of 24" in stack.facts


def test_two_copies_are_shown_side_by_side_as_stages_of_their_own(stack):
    stack.canvas.selected = "lv2"
    here = stack.node("lv2")
    stack.send(action="CompareCopies", node=here["inner"], copy=0, other=5)
    assert [row["label"] for row in stack.rows[-2:]] == ["copy 1", "copy 6"]
    assert "up_5" in drawn(stack)
    assert "up_0" not in drawn(stack)
    assert stack.explorer.store.state.reference == stack.rows[-2]["id"]


class Block(nn.Module):
    def __init__(self, inner):
        self.up, self.down = nn.Linear(4, inner), nn.Linear(inner, 4)

    def forward(self, x: nn.Tensor):
        return self.down(nn.op.relu(self.up(x)))


class Layers(nn.Module):
    def __init__(self, count=3):
        self.blocks = nn.ModuleList([Block(4 + 2 * one) for one in range(count)])

    def forward(self, x: nn.Tensor):
        for block in self.blocks:
            x = block(x)
        return x


def test_a_weight_that_is_looked_for_is_a_line_in_the_picture_as_it_was(opened):
    spec = {"forward": {"x": nn.spec.Tensor((1, 4), "float32")}}
    page = opened(Layers().export_tvm(spec)[0], function="forward")
    page.search("blocks.1.up.weight")
    page.go_to(0)
    call = page.canvas.selected
    assert call == "blocks.1.up.weight"
    picture = page.canvas.svg
    assert f'class="weight" data-node="{call}"' in picture
    assert f'class="node param" data-node="{call}"' not in picture
    assert "blocks.1.up" in page.canvas.data["nodes"][call]["layer"]
    page.select("")
    page.search("blocks.1.up.weight")
    page.go_to(0)
    assert page.canvas.svg == picture


def test_two_layers_are_shown_side_by_side_as_stages_of_their_own(opened):
    spec = {"forward": {"x": nn.spec.Tensor((1, 4), "float32")}}
    page = opened(Layers().export_tvm(spec)[0], function="forward")
    layers = [node["layer"] for node in page.canvas.data["nodes"].values()]
    assert {"blocks.0.up", "blocks.1.up"} <= {*layers}
    page.send(action="CompareLayers", layer="blocks.0", other="blocks.1")
    assert [row["label"] for row in page.rows[-2:]] == ["blocks.0", "blocks.1"]
    assert page.explorer.store.state.reference == page.rows[-2]["id"]


def test_a_parameter_that_all_copies_share_has_no_copies(stack):
    stack.canvas.selected = "x"
    assert "in every copy" not in stack.facts
    stack.canvas.selected = "norm_0"
    assert "norm_0, norm_1, norm_2, norm_3, norm_4, …, norm_23" in stack.facts


# --- finding -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "count"), [("GELU", 24), ("matmul", 48), ("(8, 8)", 48), ("norm_7", 1), ("zzz", 0)]
)
def test_nodes_are_found_by_name_operator_and_shape(stack, words, count):
    stack.search(words)
    found = stack.explorer.found
    assert (found["words"], found["count"], found["errors"]) == (words, count, [])
    assert len(found["nodes"]) == count


def test_a_jump_opens_what_hides_a_node_and_selects_it(stack):
    stack.toggle(repeat(stack))
    stack.search("down_17")
    stack.go_to(0)
    assert stack.canvas.selected == "down_17"
    assert "down_17" in drawn(stack)
    assert "copy 18" in stack.canvas.svg


def test_the_same_result_can_be_chosen_again(stack):
    stack.search("down_17")
    for _ in range(2):
        stack.canvas.selected = "x"
        stack.go_to(0)
        assert stack.canvas.selected == "down_17"


def test_a_jump_into_another_function_goes_there(opened, modules):
    explorer = opened(modules.TwoFunctions, function="first")
    explorer.search("subtract")
    explorer.go_to(0)
    assert explorer.state.function == "second"
    assert explorer.canvas.selected == "y"


def test_a_result_is_in_a_function_which_the_page_names(opened, modules):
    explorer = opened(modules.TwoFunctions, function="first")
    explorer.search("(2,)")
    found = explorer.explorer.found["nodes"]
    assert list(dict.fromkeys(one["function"] for one in found)) == ["first", "second"]
    assert not any("second" in one["line"] + one["rest"] for one in found)


def test_a_layer_is_found_before_what_is_in_it_and_selected_in_what_is_around_it(opened):
    spec = {"forward": {"x": nn.spec.Tensor((1, 4), "float32")}}
    page = opened(Layers(9).export_tvm(spec)[0], function="forward")
    page.explorer.dispatch(ToggleAll(False))
    page.search("blocks.7.up")
    first, *others = page.explorer.found["nodes"]
    assert (first["line"].split()[0], first["rest"]) == ("up", "group")
    assert {"matmul", "add"} <= {one["line"].split()[0] for one in others}
    assert first["node"] not in drawn(page)
    page.go_to(0)
    assert page.canvas.selected == first["node"]
    assert first["node"] in drawn(page)


# --- near and between --------------------------------------------------------------------------


def test_the_neighbourhood_of_a_node_is_drawn_alone_and_grows(stack):
    stack.look_around("lv2", 1)
    assert set(drawn(stack)) == {"lv1", "up_0", "lv2", "lv3", "more:before", "more:after"}
    assert "of 243 nodes" in stack.captions[0]
    assert stack.explorer.scene["part"] == "1 use around lv2"
    stack.toggle("more:after")
    assert {"lv4", "lv", "norm_0"} <= set(drawn(stack))
    stack.look_around()
    assert "×24" in stack.canvas.svg
    assert stack.explorer.scene["part"] == ""


def test_the_path_between_two_nodes_is_drawn_alone(stack):
    stack.look_around("up_0", to="lv4")
    inside = {name for name in drawn(stack) if not name.startswith("more:")}
    assert inside == {"up_0", "lv2", "lv3", "lv4"}
    assert stack.explorer.scene["part"] == "up_0 → lv4"


def test_what_a_node_is_does_not_depend_on_what_is_drawn(stack):
    stack.canvas.selected = "lv2"
    whole, code = stack.facts, stack.code
    stack.look_around("lv2", 2)
    assert stack.facts == whole
    assert stack.code == code


def test_what_is_left_out_can_be_opened_but_is_no_node(stack):
    stack.look_around("lv2", 2)
    stack.canvas.selected = "more:before"
    left_out = stack.node("more:before")
    assert not left_out["isOwn"]  # so nothing near it is offered
    assert left_out["isOpenable"]
    assert "are used by these" in stack.facts
    stack.toggle("more:before")
    assert stack.state.view.steps == 3


def test_two_nodes_without_a_path_are_named(stack):
    before = stack.canvas.svg
    stack.look_around("up_0", to="norm_0")
    assert "no path leads from" in stack.message
    assert stack.canvas.svg == before


def test_a_long_path_is_folded_like_any_graph(modules):
    session = irviz.Session(modules.stack(200))
    drawn_path = session.view(state=ViewState().at("x", to="lv1199"))
    assert len(drawn_path.graph.nodes) <= MOST_NODES
    assert drawn_path.size == 1 + 800 + 2 + 1200


def test_a_stage_that_lacks_what_is_looked_at_is_shown_whole(stack):
    stack.look_around("up_0", 2)
    ones = {"up_0": np.ones((8, 8), "float32")}
    stack.explorer.dispatch(Apply(bind_params(ones, "main")))
    assert not stack.state.stage.error
    assert "×23" in stack.canvas.svg


@pytest.fixture
def compared(stack):
    """The explorer on 24 layers of which one has another operator, beside those as they were."""
    stack.explorer.session = stack.explorer.session.apply(to_exp)
    stack.compare("0")
    return stack


def marks(shown):
    return re.findall(r'<g class="change [^"]*" data-node="([^"]*)"', shown.svg)


def folded(page):
    return next(node for node in drawn(page) if page.node(node)["isOpenable"])


def test_what_changed_is_shown_and_marked_and_the_rest_folded(compared):
    assert compared.explorer.scene["summary"] == "1 changed"
    for shown in (compared.canvas, compared.other):
        assert shown.marked == marks(shown) == ["lv123"]
        assert {"lv122", "lv123", "lv124"} <= set(shown.drawn)
        assert len(shown.drawn) < 10


def test_a_change_in_what_is_closed_is_marked_on_the_group(compared):
    compared.toggle(compared.node("lv123")["group"])
    for shown in (compared.canvas, compared.other):
        place = str(view_or_none(compared.state, shown.side).where("lv123"))
        assert place != "lv123"
        assert place in shown.drawn
        assert shown.marked == marks(shown) == [place]


def test_what_is_opened_or_closed_in_a_comparison_is_so_on_both_sides(compared):
    group = folded(compared)
    for side in ("reference", "current"):
        compared.toggle(group, side)
        for shown in (compared.canvas, compared.other):
            assert group not in shown.drawn
            assert len(shown.drawn) > 10
        compared.toggle(group, side)
        assert group in compared.canvas.drawn
        assert group in compared.other.drawn


def test_what_is_open_stays_open_beside_another_stage_and_without_it(compared):
    few = len(drawn(compared))
    compared.compare("")
    compared.explorer.dispatch(ToggleAll(True))
    opened = drawn(compared)
    compared.compare("0")
    for shown in (compared.canvas, compared.other):
        assert len(shown.drawn) > 4 * few
    compared.compare("")
    assert drawn(compared) == opened


def test_what_did_not_change_stands_at_the_same_place_on_both_sides(compared):
    ours = compared.canvas.places
    assert {"lv122", "lv123", "lv124"} <= ours.keys()
    assert ours == compared.other.places
    compared.toggle(folded(compared), "reference")
    assert compared.canvas.places == compared.other.places != ours


def test_a_node_is_selected_in_the_picture_that_was_clicked(compared):
    compared.other.selected = "lv123"
    assert (compared.canvas.selected, compared.other.selected) == ("", "lv123")
    assert "gelu" in compared.facts
    assert compared.explorer.details["side"] == "reference"
    assert "gelu" in compared.code
    compared.canvas.selected = "lv123"
    assert (compared.canvas.selected, compared.other.selected) == ("lv123", "")
    assert "exp" in compared.code


@mutator
class ToExp(PyExprMutator):
    """Let one binding be an exp."""

    def visit_var_binding_(self, binding):
        if binding.var.name != "lv123":
            return super().visit_var_binding_(binding)
        value = relax.op.exp(binding.value.args[0])
        return self.set_var_remap(binding.var, self.builder_.emit(value, "lv123"))


@tvm.transform.module_pass(opt_level=0, name="ToExp")
def to_exp(mod, _):
    mod["main"] = ToExp(mod).visit_expr(mod["main"])
    return mod


def test_draw_takes_a_node_to_look_around_and_says_what_is_none(modules):
    figure = irviz.draw(modules.stack(3), around="lv2", steps=1)
    assert figure.svg.count('class="node') == 6
    with pytest.raises(ValueError, match="'nobody' is not a node of 'main': give the name"):
        irviz.draw(modules.stack(3), around="nobody")
    with pytest.raises(ValueError, match="no path leads from"):
        irviz.draw(modules.stack(3), around="up_0", to="norm_0")


def test_the_page_knows_another_function_from_the_same_one_drawn_otherwise(opened, modules):
    """What was a place in one graph is none in another, which is fitted."""
    explorer = opened(modules.EveryKind, function="main")
    before = explorer.explorer.scene["key"]
    explorer.toggle("called")
    explorer.send(action="Rename", stage="0", label="another name")
    assert explorer.explorer.scene["key"] == before == "main/0/"
    other = next(name for name in explorer.state.session.functions if name != "main")
    explorer.focus(other)
    assert view(explorer).whole.function == other
    assert explorer.explorer.scene["key"] == f"{other}/0/"
    assert explorer.explorer.scene["moved"] == []


def test_all_groups_are_opened_and_closed_at_once(modules):
    state = State.of(irviz.Session(modules.unlike(160)))
    assert view_or_none(state, "current").openable
    open_ = perform(state, ToggleAll(True))
    assert not view_or_none(open_, "current").openable
    assert open_.message is None
    closed = perform(open_, ToggleAll(False))
    regions = view_or_none(closed, "current").graph.regions
    assert {one.kind for one in regions} <= {RegionKind.DATAFLOW_BLOCK}
    again = view_or_none(perform(closed, ToggleAll(True)), "current")
    assert again.closable == view_or_none(open_, "current").closable


def test_calls_with_their_buffers_stay_closed_when_all_groups_are_opened(modules):
    session = irviz.Session(modules.unlike(160)).apply("LegalizeOps").apply("CallTIRRewrite")
    state = perform(State.of(session), ToggleAll(True))
    groups = [
        one for one in view_or_none(state, "current").graph.nodes if one.kind is NodeKind.GROUP
    ]
    assert len(groups) > 100
    assert all(one.callee for one in groups)
    assert state.message is None


def test_where_all_groups_are_calls_the_reader_is_told_why_none_is_opened(modules):
    session = irviz.Session(modules.unlike(40)).apply("LegalizeOps").apply("CallTIRRewrite")
    state = perform(State.of(session), ToggleAll(True))
    assert state.message.words == "Each group is a call with its buffers: open them one by one."


def test_a_graph_without_groups_has_nothing_to_say_of_them(modules):
    opened = perform(State.of(irviz.Session(modules.unlike(5))), ToggleAll(True))
    assert opened.message is None


def test_groups_that_there_is_no_room_for_stay_closed_which_is_said(modules):
    state = perform(State.of(irviz.Session(modules.unlike(900))), ToggleAll(True))
    view = view_or_none(state, "current")
    assert EXPANDED_NODES / 2 < len(view.graph.nodes) <= EXPANDED_NODES
    assert f"{len(view.openable)} groups stay closed" in state.message.words
    assert f"at most {EXPANDED_NODES} nodes" in state.message.words

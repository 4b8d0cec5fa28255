"""A large function is looked at as far as one likes: opened, closed, searched, narrowed."""

import re

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax.expr_functor import PyExprMutator, mutator

import irviz
from irviz.app.picture import Look
from irviz.model.opening import LIMIT
from irviz.model.splice import within

LAYERS = 24


@pytest.fixture
def stack(modules):
    """The explorer on 24 equal layers."""
    return irviz.explore(modules.stack(LAYERS))


def drawn(explorer):
    return re.findall(r'class="node [^"]*" data-node="([^"]*)"', explorer._pane.canvas.svg)


def signs(explorer):
    return re.findall(r'data-toggle="([^"]*)"', explorer._pane.canvas.svg)


def ask(explorer, **content):
    """Send what the page would send."""
    explorer._pane.canvas._handle_custom_msg(content, [])


def repeat(explorer):
    return next(sign for sign in signs(explorer) if sign.startswith("repeat"))


def caption(explorer):
    return explorer._pane._caption.value


# --- opening and closing -----------------------------------------------------------------------


def test_equal_layers_are_one_layer_with_a_count(stack):
    assert "×24" in stack._pane.canvas.svg
    assert len(drawn(stack)) == 1 + 2 + 6 + 4
    assert "13 of 243 nodes" in caption(stack)


def test_at_first_nothing_is_selected_and_the_module_is_described(stack):
    assert stack._pane.canvas.selected == ""
    assert "<h4>module</h4>" in stack._node.facts.value
    assert "equal layers ×24" in caption(stack)


def test_what_is_selected_follows_what_is_opened_and_closed(stack):
    sign = repeat(stack)
    stack._pane.canvas.selected = "lv3"
    ask(stack, toggle=sign)
    assert stack._pane.canvas.selected == sign
    ask(stack, toggle=sign)
    assert stack._pane.picture.around(stack._pane.canvas.selected) == sign


def test_what_is_open_stays_open_when_more_is_opened(modules):
    explorer = irviz.explore(modules.unlike(260))
    closed = sorted(explorer._pane.picture.openable)
    before = explorer._pane.picture.closable
    ask(explorer, toggle=closed[0])
    assert before < explorer._pane.picture.closable
    assert closed[0] in explorer._pane.picture.closable


def test_the_latest_that_was_opened_is_open_within_the_limit(modules):
    explorer = irviz.explore(modules.unlike(900))
    for _ in range(12):
        closed = sorted(explorer._pane.picture.openable)
        ask(explorer, toggle=closed[0])
        assert len(explorer._pane.picture.graph.nodes) <= LIMIT
    assert closed[0] in explorer._pane.picture.closable


def test_a_sign_closes_a_frame_and_opens_it_again(stack):
    before, sign = stack._pane.canvas.svg, repeat(stack)
    ask(stack, toggle=sign)
    assert sign in drawn(stack)
    assert "240 nodes" in stack._pane.canvas.svg
    ask(stack, toggle=sign)
    assert stack._pane.canvas.svg == before


def test_leaving_a_node_closes_what_is_around_it(stack):
    sign = repeat(stack)
    ask(stack, leave="lv1")
    assert sign in drawn(stack)


@pytest.mark.parametrize(
    "content",
    [{}, {"toggle": "nothing"}, {"toggle": 3}, {"toggle": "lv1"}, {"leave": "nobody"}, {"a": "b"}],
)
def test_a_page_that_asks_for_what_is_not_there_changes_nothing(stack, content):
    before = stack._pane.canvas.svg
    ask(stack, **content)
    ask(stack, **content)
    assert (stack._pane.canvas.svg, stack._message.widget.value) == (before, "")


def test_what_is_opened_stays_where_it_was_for_a_reader_who_has_zoomed(stack):
    pane, sign = stack._pane, repeat(stack)
    ask(stack, toggle=sign)
    pane.canvas.viewport = [10.0, 20.0, 2.0]
    x, y = pane._places[sign]
    ask(stack, toggle=sign)
    moved = pane._places[sign]
    assert pane.canvas.viewport == [10.0 + moved[0] - x, 20.0 + moved[1] - y, 2.0]


def test_a_called_function_opens_in_the_place_of_its_call(modules):
    explorer = irviz.explore(modules.EveryKind, function="main")
    assert within("called", "x") not in drawn(explorer)
    ask(explorer, toggle="called")
    assert {within("called", "x"), within("called", "y"), "called"} <= set(drawn(explorer))
    explorer._pane.canvas.selected = within("called", "y")
    assert "relax.add" in explorer._node.facts.value
    assert "TVMScript, line" in explorer._node.source.value
    ask(explorer, toggle="called")
    assert within("called", "x") not in drawn(explorer)
    assert explorer._pane.canvas.selected == "called"


def test_a_branch_closes_and_opens(modules):
    explorer = irviz.explore(modules.EveryKind, function="main")
    ask(explorer, leave="chosen_then")
    assert "chosen_then" not in drawn(explorer)
    assert "then:chosen_then" in drawn(explorer)
    ask(explorer, toggle="then:chosen_then")
    assert "chosen_then" in drawn(explorer)


# --- copies ------------------------------------------------------------------------------------


def test_another_copy_is_shown_by_its_number_with_what_differs(stack):
    stack._pane.canvas.selected = "lv2"
    assert "<dt>argument 1</dt><dd>up_0, up_1, up_2" in stack._node.facts.value
    stack._pane.around._copy.value = 6
    assert "up_5" in drawn(stack)
    assert "up_0" not in drawn(stack)
    assert stack._pane.canvas.selected == "lv32"
    assert "6 of 24" in stack._node.facts.value


def test_a_parameter_that_all_copies_share_has_no_copies(stack):
    stack._pane.canvas.selected = "x"
    assert "in every copy" not in stack._node.facts.value
    stack._pane.canvas.selected = "norm_0"
    assert "norm_0, norm_1, norm_2, norm_3, norm_4, …, norm_23" in stack._node.facts.value


# --- finding -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "count"), [("GELU", 24), ("matmul", 48), ("(8, 8)", 48), ("norm_7", 1), ("zzz", 0)]
)
def test_nodes_are_found_by_name_operator_and_shape(stack, words, count):
    stack._pane.finder.words.value = words
    assert f">{count} found" in stack._pane.finder.count.value
    assert len(stack._pane.finder.found.options) == count


def test_a_jump_opens_what_hides_a_node_and_selects_it(stack):
    ask(stack, toggle=repeat(stack))
    stack._pane.finder.words.value = "down_17"
    stack._pane.finder.found.index = 0
    assert stack._pane.canvas.selected == "down_17"
    assert "down_17" in drawn(stack)
    assert "copy 18" in stack._pane.canvas.svg


def test_the_same_result_can_be_chosen_again(stack):
    stack._pane.finder.words.value = "down_17"
    for _ in range(2):
        stack._pane.canvas.selected = "x"
        stack._pane.finder.found.index = 0
        assert stack._pane.canvas.selected == "down_17"


def test_a_jump_into_another_function_goes_there(modules):
    explorer = irviz.explore(modules.TwoFunctions, function="first")
    explorer._pane.finder.words.value = "subtract"
    explorer._pane.finder.found.index = 0
    assert explorer.session.function == "second"
    assert explorer._pane.canvas.selected == "y"


# --- near and between --------------------------------------------------------------------------


def press(button):
    button.click()


def test_the_neighbourhood_of_a_node_is_drawn_alone_and_grows(stack):
    stack._pane.canvas.selected = "lv2"
    stack._pane.around._steps.value = 1
    press(stack._pane.around._near)
    assert set(drawn(stack)) == {"lv1", "up_0", "lv2", "lv3", "more:before", "more:after"}
    assert "of 243 nodes" in caption(stack)
    ask(stack, toggle="more:after")
    assert {"lv4", "lv", "norm_0"} <= set(drawn(stack))
    press(stack._pane.around._whole)
    assert "×24" in stack._pane.canvas.svg


def test_the_path_between_two_nodes_is_drawn_alone(stack):
    stack._pane.canvas.selected = "up_0"
    press(stack._pane.around._from)
    stack._pane.canvas.selected = "lv4"
    press(stack._pane.around._to)
    inside = {name for name in drawn(stack) if not name.startswith("more:")}
    assert inside == {"up_0", "lv2", "lv3", "lv4"}


def test_what_a_node_is_does_not_depend_on_what_is_drawn(stack):
    stack._pane.canvas.selected = "lv2"
    whole = stack._node.facts.value
    press(stack._pane.around._near)
    assert stack._node.facts.value == whole


def test_what_is_left_out_can_be_opened_but_is_no_node(stack):
    stack._pane.canvas.selected = "lv2"
    press(stack._pane.around._near)
    stack._pane.canvas.selected = "more:before"
    assert stack._pane.around._near.layout.display == "none"
    assert "are used by these" in stack._node.facts.value
    press(stack._pane.around._open)
    assert stack._pane.around._steps.value == 3


def test_two_nodes_without_a_path_are_named(stack):
    stack._pane.canvas.selected = "up_0"
    press(stack._pane.around._from)
    stack._pane.canvas.selected = "norm_0"
    before = stack._pane.canvas.svg
    press(stack._pane.around._to)
    assert "no path leads from" in stack._message.widget.value
    assert stack._pane.canvas.svg == before


def test_a_long_path_is_folded_like_any_graph(modules):
    session = irviz.Session(modules.stack(200))
    drawn_path = session.picture(look=Look().at("x", to="lv1199"))
    assert len(drawn_path.graph.nodes) <= LIMIT
    assert drawn_path.size == 1 + 800 + 2 + 1200


def test_a_stage_that_lacks_what_is_looked_at_is_shown_whole(stack):
    stack._pane.canvas.selected = "up_0"
    press(stack._pane.around._near)
    ones = {"up_0": np.ones((8, 8), "float32")}
    stack._act(lambda session: session.bind(ones))
    assert not stack.session.shown.error
    assert "×23" in stack._pane.canvas.svg


def test_a_change_in_what_is_closed_is_marked_on_the_group(stack):
    ask(stack, toggle=repeat(stack))
    stack._act(lambda session: session.apply(to_exp))
    stack._reference._choose("0", lambda _: stack._show())
    marked = set(stack._pane.canvas.highlighted)
    assert marked
    assert marked <= set(drawn(stack))
    assert stack._pane.picture.where("lv123") in marked
    other = set(stack._reference.canvas.highlighted)
    assert other == {stack._reference.picture.where("lv123")}


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
    with pytest.raises(ValueError, match="'nobody' is no node of 'main': give the name"):
        irviz.draw(modules.stack(3), around="nobody")
    with pytest.raises(ValueError, match="no path leads from"):
        irviz.draw(modules.stack(3), around="up_0", to="norm_0")

"""Two stages are drawn at the same places: what stays stands still, what was fused is framed."""

import random
import re
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax
from tvm.relax.frontend import nn

import irviz
from irviz.course import mm_relu
from irviz.course.digits import mlp_params
from irviz.course.mlp import MODULES, MyModule, MyModuleHighLevel
from irviz.errors import DrawError, NotFoundError, SaveError
from irviz.model.diff.aligned_stage_graphs import side_graphs
from irviz.model.diff.diff_result import diff_part
from irviz.model.diff.union_graph import union_graph
from irviz.model.folding.expansion import Expansion
from irviz.model.graph.graph import NodeKind, RegionKind, lone_calls
from irviz.session.session import Session
from irviz.session.shown_function import ViewState, stage_view
from irviz.view.graph.graph_figure import draw_placed, place_graph
from irviz.view.graph.nodes_and_edges import SceneGeometry
from irviz.view.graph.side_by_side_layout import place_diff, place_sides
from irviz.view.graph.straight_ways import corners_of
from irviz.view.svg_primitives import Rect, text_rect
from irviz.view.theme import THEMES
from tests.constructs import construct
from tests.constructs.drawing import random_modules
from tests.diff_by_values import random_operators
from tests.placed_sides import problems_of

pytestmark = pytest.mark.worker

SVG = "{http://www.w3.org/2000/svg}"

PASSES = (
    relax.transform.LegalizeOps(),
    relax.transform.AnnotateTIROpPattern(),
    relax.transform.FuseOps(2),
    relax.transform.FuseTIR(),
    relax.transform.CallTIRRewrite(),
    relax.transform.StaticPlanBlockMemory(),
    relax.transform.LowerAllocTensor(),
    relax.transform.KillAfterLastUse(),
)
REFUSED = (RuntimeError, ValueError, TypeError, AssertionError, KeyError, AttributeError)


def compiled(mod):
    """Return a module and what each pass makes of it."""
    found = [mod]
    for one in PASSES:
        found.append(one(found[-1]))
    return found


def wrong(before, after, expansion=None):
    functions = irviz.diff(before, after).functions
    return [
        (one.name, *problem)
        for one in functions
        if one.nodes
        for problem in problems_of(one, expansion)
    ]


def texts(figure):
    return re.findall(r"<text[^>]*>([^<]+)</text>", figure.svg)


@pytest.fixture(scope="module")
def session():
    session = Session(MyModuleHighLevel, params=mlp_params(), isolate=False).bind()
    for name in ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps", "FuseTIR", "CallTIRRewrite"):
        session = session.apply(name)
    return session


@pytest.mark.parametrize("name", MODULES)
def test_each_step_of_a_compilation_keeps_what_stays_in_its_place(name):
    stages = compiled(MODULES[name])
    for before, after in (*pairwise(stages), (stages[0], stages[-1]), (stages[-1], stages[0])):
        assert wrong(before, after) == []


@pytest.mark.parametrize("seed", range(2))
def test_so_does_each_step_of_random_operators(seed):
    stages = compiled(random_operators(seed))
    for before, after in pairwise(stages[:6]):
        assert wrong(before, after) == []
    mixed = relax.transform.ToMixedPrecision(out_dtype="float16")(stages[0])
    assert wrong(stages[0], mixed) == []


@settings(max_examples=8)
@given(random_modules(), st.sampled_from(["LegalizeOps", "LambdaLift", "ConvertToDataflow"]))
def test_so_does_a_pass_over_branches_and_functions(mod, name):
    try:
        after = getattr(relax.transform, name)()(mod)
    except REFUSED:
        return
    assert wrong(mod, after) == []
    assert wrong(after, mod) == []


def test_a_fused_node_fills_the_frame_of_what_it_was_made_of(session):
    figure = session.diff("3", "4").figure()
    before, after = figure.svg.split('class="side after"')
    assert "⊃ 3 → 1 fused_matmul_add_relu" in before
    assert 'class="block fused"' in before
    assert 'class="block fused"' not in after
    assert "matmul + add + relu" in after


def test_a_call_that_became_the_one_operation_of_its_function_is_inlined():
    before = construct("composite functions")
    diff = irviz.diff(before, relax.transform.InlinePrivateFunctions()(before))
    for figure in (diff.figure(), diff.figure(overlay=True)):
        assert "≠ inlined" in texts(figure)
        assert not [text for text in texts(figure) if "1 → 1" in text]
    assert wrong(before, relax.transform.InlinePrivateFunctions()(before)) == []


def test_a_split_node_fills_the_frame_of_what_it_became(session):
    before, after = session.diff("5", "6").figure().svg.split('class="side after"')
    assert "⊂ 1 → 3" in before
    assert 'class="block fused"' in after


def test_changed_nodes_say_what_of_them_changed(session):
    assert texts(session.diff("0", "1").figure()).count("≠ bound") == 8
    assert "≠ lowered" in texts(session.diff("1", "2").figure())
    mixed = relax.transform.ToMixedPrecision(out_dtype="float16")(MyModuleHighLevel)
    shown = texts(irviz.diff(MyModuleHighLevel, mixed).figure())
    assert "+" in shown
    assert "≠ dtype" in shown
    assert "−" in texts(irviz.diff(mixed, MyModuleHighLevel).figure())


def test_what_stays_is_pale_beside_what_changed_and_nothing_is_where_no_node_differs(session):
    assert " dimmed" in session.diff("1", "2").figure("main").svg
    impure = Session(MyModuleHighLevel, isolate=False).apply("RemovePurityChecking")
    (found,) = impure.diff("0", "1").functions
    assert found.differences
    assert not found.changed_nodes
    assert " dimmed" not in impure.diff("0", "1").figure("main").svg


def test_the_picture_says_what_is_before_and_after_and_what_was_applied(session):
    shown = texts(session.diff("3", "4").figure())
    assert {"before: 3 AnnotateTIROpPattern", "4 FuseOps", "FuseOps"} <= set(shown)
    assert "several became one" in shown
    assert "added" not in shown  # the legend explains the signs that are there
    assert "FuseOps" not in texts(session.diff("4", "3").figure())


def test_the_picture_names_the_functions_that_only_one_side_has(session):
    diff = session.diff("3", "4")
    names = "fused_matmul1_add1, fused_matmul_add_relu"
    assert f"functions added: {names}" in texts(diff.figure())
    assert f"functions added: {names}" not in texts(diff.figure("main"))
    assert f"functions removed: {names}" in texts(session.diff("4", "3").figure())
    other = irviz.diff(chain([relax.op.sin]), chain([relax.op.cos]))
    assert "≠ operator" in texts(other.figure())


def test_the_stage_before_is_beside_or_above(session):
    diff = session.diff("3", "4")
    beside, above = diff.figure(), diff.figure(layout="above")
    assert beside.width > above.width
    assert beside.height < above.height
    assert beside.svg == diff.figure().svg
    with pytest.raises(DrawError, match="no layout 'behind'; choose 'beside' or 'above'"):
        diff.figure(layout="behind")


def test_one_picture_holds_both():
    mixed = relax.transform.ToMixedPrecision(out_dtype="float16")(MyModuleHighLevel)
    figure = irviz.diff(MyModuleHighLevel, mixed).figure(overlay=True)
    assert figure.svg.count('class="side') == 1
    assert texts(figure).count("astype") == 6
    assert texts(figure).count("matmul") == 2


def test_edges_that_were_added_or_removed_are_told_without_colours_and_explained():
    mixed = relax.transform.ToMixedPrecision(out_dtype="float16")(MyModuleHighLevel)
    diff = irviz.diff(MyModuleHighLevel, mixed)
    for figure in (diff.figure(), diff.figure(overlay=True)):
        edges = re.findall(r'<g class="edge".*?</g>', figure.svg)
        assert sum("stroke-dasharray" in one for one in edges) == 6
        assert {"added", "removed"} <= set(texts(figure))  # no node was removed


def test_a_part_is_drawn_of_both_sides(session):
    diff = session.diff("3", "4")
    shown = texts(diff.figure(around="w1_t"))
    assert {"transpose1", "matmul1", "add1", "fused_matmul1_add1"} <= set(shown)
    assert "matmul" not in shown
    removed = THEMES["course"].changes["removed"]
    assert removed not in diff.figure(around="lv").svg  # what was fused used one value twice
    between = texts(diff.figure(around="lv0", to="lv2"))
    assert {"matmul", "relu", "fused_matmul_add_relu"} <= set(between)
    assert "transpose" not in between
    for part in (diff_part(one, "w1_t", 1) for one in diff.functions if one.nodes):
        assert problems_of(part) == []
    with pytest.raises(NotFoundError, match="no node 'nowhere' in what differs: 'main'"):
        diff.figure(around="nowhere")
    with pytest.raises(NotFoundError, match="no path between 'w0_t' and 'w1_t'"):
        diff.figure(around="w0_t", to="w1_t")


def test_long_runs_that_are_unchanged_are_one_node_until_they_are_opened():
    chance = random.Random(1)
    ops = chance.choices([relax.op.tanh, relax.op.exp, relax.op.sin, relax.op.nn.relu], k=40)
    before, after = chain(ops), chain([*ops[:20], relax.op.sigmoid, *ops[21:]])
    diff = irviz.diff(before, after)
    (function,) = (one for one in diff.functions if one.nodes)
    union = union_graph(function.graphs, (function.nodes,))
    sides = side_graphs(union)
    runs = [one for one in sides.union.nodes if one.name.endswith("unchanged")]
    assert runs
    assert all(one.kind is NodeKind.GROUP for one in runs)
    opened = side_graphs(union, Expansion(opened=(str(runs[0].id),)))
    kinds = [[one.kind for one in side.graph.regions] for side in opened.sides]
    assert all(RegionKind.UNCHANGED in each for each in kinds)  # open on both sides
    assert wrong(before, after, Expansion(opened=(str(runs[0].id),))) == []


def test_where_both_stages_have_buffers_each_call_is_one_node_with_its_own():
    chance = random.Random(1)
    module = chain(chance.choices([relax.op.tanh, relax.op.exp, relax.op.sin], k=45))
    written = relax.transform.CallTIRRewrite()(relax.transform.LegalizeOps()(module))
    planned = relax.transform.StaticPlanBlockMemory()(written)
    (function,) = (one for one in irviz.diff(written, planned).functions if one.nodes)
    placed = place_diff(function)
    calls = [one for one in placed.sides.union.nodes if one.id.startswith("call")]
    assert len(calls) > 30
    assert all(one.kind is NodeKind.GROUP for one in calls)
    after = placed.changes[1].marks
    assert {after[one.id].text for one in calls} >= {"≠1 changed"}
    # whose memory it is that a call writes into is shown where both calls are open
    found = wrong(written, planned)
    assert {problem for _, problem, *_ in found} == {"no edge"}
    shared = found[0][2:]
    source, target = (one.removeprefix("call:") for one in shared)
    assert ("main", "no edge", source, target) not in wrong(
        written, planned, Expansion(opened=shared)
    )
    half = wrong(written, planned, Expansion(opened=shared[:1]))
    assert ("main", "no edge", source, shared[1]) in half


def test_a_weight_that_many_calls_share_is_a_line_in_each_on_both_sides():
    class Model(nn.Module):
        def __init__(self):
            self.norms = nn.ModuleList([nn.LayerNorm(8) for _ in range(3)])

        def forward(self, x):
            for step in (nn.op.relu, nn.op.silu, nn.op.gelu, nn.op.tanh):
                x = step(self.norms[0](x))
            return self.norms[2](self.norms[1](x))

    spec = {"forward": {"x": nn.spec.Tensor((2, 8), "float32")}}
    module, _ = Model().export_tvm(spec)
    (function,) = irviz.diff(module, relax.transform.LegalizeOps()(module)).functions[:1]
    for side in place_diff(function, expansion=Expansion(every=True)).sides.sides:
        norms = [node for node in side.graph.nodes if "layer_norm" in node.callee]
        lines = [[leaf.name for leaf in norm.weights] for norm in norms]
        assert lines == [[f"norms.{at}.weight", f"norms.{at}.bias"] for at in (0, 0, 0, 0, 1, 2)]
        assert [len(side.graph.entering[norm.id]) for norm in norms] == 6 * [1]


def test_many_calls_that_became_several_are_compared_as_closed_groups():
    chance = random.Random(1)
    for count, is_open in ((8, True), (45, False)):
        module = chain(chance.choices([relax.op.tanh, relax.op.exp, relax.op.sin], k=count))
        legal = relax.transform.LegalizeOps()(module)
        written = relax.transform.CallTIRRewrite()(legal)
        (function,) = (one for one in irviz.diff(legal, written).functions if one.nodes)
        drawn = place_diff(function).sides.union.nodes
        groups = sum(one.kind is NodeKind.GROUP for one in drawn)
        # but for the group of the first change
        assert groups == 0 if is_open else groups >= len(drawn) / 2


def test_the_group_of_the_first_change_is_open_until_it_is_closed():
    """LegalizeOps changes every call of a function with too many to be drawn at first."""
    chance = random.Random(1)
    before = chain(chance.choices([relax.op.tanh, relax.op.exp, relax.op.sin], k=200))
    diff = irviz.diff(before, relax.transform.LegalizeOps()(before))
    (function,) = (one for one in diff.functions if one.nodes)
    placed = place_diff(function)
    for side in placed.sides.sides:
        assert {"lv", "lv1", "lv2"} & set(side.graph.index)
    opened = next(one.id for one in placed.sides.union.regions if one.kind is RegionKind.PART)
    closed = place_diff(function, expansion=Expansion(closed=frozenset([opened])))
    drawn = [{node.id for node in side.graph.nodes} for side in closed.sides.sides]
    assert all(opened in each for each in drawn)
    union = place_diff(function, expansion=Expansion(every=False)).sides.union
    assert all(node.kind is NodeKind.GROUP for node in union.nodes if node.name != "x")


def test_what_a_call_became_is_drawn_above_its_operands():
    """Its buffer needs none, and would be in their row, which the call in its place covers."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((6, 16), "float32"))
    with builder.function("main", [x]):
        y = builder.emit(relax.op.call_pure_packed("a_copy", x, ty_args=x.ty))
        rows = [builder.emit(relax.op.strided_slice(y, [0], [at], [at + 1])) for at in range(6)]
        builder.emit_func_output(builder.emit(relax.op.concat(rows, 0)))
    lowered = relax.transform.LegalizeOps()(builder.get())
    diff = irviz.diff(lowered, relax.transform.CallTIRRewrite()(lowered))
    (function,) = (one for one in diff.functions if one.nodes)
    sides = side_graphs(union_graph(function.graphs, (function.nodes,)))
    for placed in place_sides(sides)[1]:
        boxes = SceneGeometry(placed.graph, placed.layout, placed.direction).shapes
        for edge in placed.graph.edges:
            assert boxes[edge.target].bottom < boxes[edge.source].top


def test_layers_that_are_alike_are_compared_once():
    layers = chain([relax.op.tanh, relax.op.exp, relax.op.sin, relax.op.nn.relu] * 20)
    lowered = relax.transform.LegalizeOps()(layers)
    shown = texts(irviz.diff(layers, lowered).figure())
    assert [text for text in shown if "×20" in text] == ["×20 · copy 1, all alike"] * 2
    assert wrong(layers, lowered) == []


def test_a_frame_in_a_repeated_layer_can_be_collapsed():
    layers = relax.transform.LegalizeOps()(chain([plus_one, relax.op.tanh, relax.op.exp] * 20))
    split = relax.transform.CallTIRRewrite()(layers)
    (function,) = (one for one in irviz.diff(layers, split).functions if one.nodes)
    sides = side_graphs(union_graph(function.graphs, (function.nodes,)))
    frames = [one.id for one in sides.union.regions if one.kind is RegionKind.FUSED]
    assert len(frames) == 3
    assert wrong(layers, split, Expansion(closed=frozenset(frames))) == []


def test_another_name_of_the_result_is_where_a_call_became_several():
    class Model(nn.Module):
        def __init__(self):
            self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(12)])
            self.norm = nn.RMSNorm(4, [-1], bias=False)

        def main(self, x: nn.Tensor):
            for layer in self.layers:
                x = layer(x)
            return self.norm(x)

    spec = {"main": {"x": nn.spec.Tensor((1, 4), "float32")}}
    session = Session(Model().export_tvm(spec)[0])
    for name in ("LegalizeOps", "ToNonDataflow", "CallTIRRewrite"):
        session = session.apply(name)
    figure = session.diff("2", "3").figure()
    assert any("rms_norm" in one for one in texts(figure))


def test_a_collapsed_layer_tells_what_it_holds_in_each_stage_and_what_became_of_that():
    layers = relax.transform.LegalizeOps()(chain([plus_one, relax.op.tanh, relax.op.exp] * 16))
    diff = irviz.diff(layers, relax.transform.CallTIRRewrite()(layers))
    (function,) = (one for one in diff.functions if one.nodes)
    sides = side_graphs(union_graph(function.graphs, (function.nodes,)))
    (repeat,) = (one.id for one in sides.union.regions if one.kind is RegionKind.REPEAT)
    svg = diff.figure(expansion=Expansion(closed=frozenset([repeat]))).svg
    before, after = svg.split('class="side after"')
    assert "each: add, tir_tanh, tir_exp<" in before
    assert "each: add, tir_tanh, tir_exp, …<" in after
    assert "⊂48 split<" in before
    assert "⊂144 split<" in after
    assert "one became several" in after


def test_steps_between_layers_are_named_by_what_they_compute_in_each_stage():
    class Block(nn.Module):
        def __init__(self):
            self.up, self.down = nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x):
            return x + self.down(nn.op.relu(self.up(x)))

    class Model(nn.Module):
        def __init__(self):
            self.first, self.last = (nn.ModuleList([Block() for _ in range(6)]) for _ in range(2))

        def forward(self, x):
            for block in self.first:
                x = block(x)
            x = nn.op.tanh(nn.op.exp(nn.op.tanh(nn.op.exp(x))))
            for block in self.last:
                x = block(x)
            return x

    spec = {"forward": {"x": nn.spec.Tensor((2, 8), "float32")}}
    module, _ = Model().export_tvm(spec)
    diff = irviz.diff(module, relax.transform.LegalizeOps()(module))
    (function,) = (one for one in diff.functions if one.nodes)
    titles = [
        [node.name for node in side.graph.nodes if "tanh" in node.name]
        for side in place_diff(function).sides.sides
    ]
    assert titles == [["exp, tanh"], ["tir_exp, tir_tanh"]]


def test_an_edge_that_only_one_stage_has_ends_at_its_node():
    add, multiply, tanh = relax.op.add, relax.op.multiply, lambda value, _: relax.op.tanh(value)
    before = with_weights([add] * 50)
    after = with_weights([*[add] * 25, tanh, *[multiply] * 25])
    assert wrong(before, after) == []
    assert texts(irviz.diff(before, after).figure()).count("25 → 26 nodes") == 2


def with_weights(ops):
    """Return a module of operators of two operands, each of which has a parameter of its own."""
    builder = relax.BlockBuilder()
    weights = [relax.Var(f"w{n}", relax.TensorType((8, 8), "float32")) for n in range(60)]
    with builder.function("main", weights):
        with builder.dataflow():
            value = weights[-1]
            for op, weight in zip(ops, weights, strict=False):
                value = builder.emit(op(value, weight))
            result = builder.emit_output(value)
        builder.emit_func_output(result)
    return builder.get()


def plus_one(value):
    return relax.op.add(value, relax.const(np.ones((8, 8), "float32")))


def chain(ops):
    """Return a module of operators of one operand, one after the other."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((8, 8), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            value = x
            for op in ops:
                value = builder.emit(op(value))
            result = builder.emit_output(value)
        builder.emit_func_output(result)
    return builder.get()


def test_several_stages_have_one_layout(session):
    figures = session.draw_stages()
    assert len(figures) == 7
    assert len({(one.width, one.height) for one in figures}) == 1
    places = [one.places for one in figures]
    assert places[2]["lv1"] == places[3]["lv1"]
    assert [one.svg for one in session.draw_stages("2", "3")] != [one.svg for one in figures[2:4]]
    assert len(session.draw_stages("2")) == 1


def test_what_is_not_there_is_an_error(session, tmp_path):
    with pytest.raises(NotFoundError, match="no stage '9'"):
        session.draw_stages("0", "9")
    with pytest.raises(DrawError, match="nothing differs"):
        session.diff("3", "3").figure()
    with pytest.raises(NotFoundError, match=r"'nowhere' can be drawn; those that can are .*'main'"):
        session.diff("3", "4").figure("nowhere")
    with pytest.raises(SaveError, match=r"a name ending in \.svg"):
        session.diff("3", "4").save(tmp_path / "fusion.gif")


def test_a_diff_shows_itself_in_a_notebook(session):
    shown = session.diff("1", "4")._repr_mimebundle_()
    assert shown["image/svg+xml"].startswith("<svg")
    assert shown["text/plain"].startswith("--- 1 BindParams")
    beside = session.diff("1", "4").figure()
    width = float(re.search(r' width="([\d.]+)"', shown["image/svg+xml"])[1])
    assert beside.width > 1100 > width  # which an output of a notebook would cut off
    assert "image/svg+xml" not in session.diff("3", "3")._repr_mimebundle_()


def test_a_module_that_tvm_cannot_print_is_drawn_in_a_notebook():
    before = construct("nested calls")
    with pytest.raises(TypeError):
        before.script()
    diff = irviz.diff(before, relax.transform.LambdaLift()(before))
    assert diff._repr_mimebundle_()["image/svg+xml"].startswith("<svg")
    assert "call" in str(diff)


def test_edges_do_not_cross_out_the_titles_of_frames(session):
    root = ElementTree.fromstring(session.diff("3", "4").figure().svg)
    groups = root.iterfind(".//{*}g[@class='title']")
    titled = [one for one in groups if "fused_matmul_add_relu" in one.findtext("{*}text", "")]
    assert titled
    for group in titled:
        ground, text = group.find("{*}rect"), group.find("{*}text")
        assert list(group).index(ground) < list(group).index(text)
        left, top = float(ground.get("x")), float(ground.get("y"))
        x, y = at(text)
        assert left <= x
        assert top < y < top + float(ground.get("height"))
        assert float(ground.get("width")) >= 0.9 * text_rect(text.text, (x, y), 11).width


def test_a_title_is_whole_where_its_side_has_room():
    scheduled = irviz.Session(mm_relu.MyModule).schedule("mm_relu", mm_relu.lecture_schedule)
    svg = scheduled.diff("5", "6").figure().svg
    assert ">6 mm_relu: decompose_reduction Y, loop 2 of Y<" in svg


def test_names_are_escaped():
    named = irviz.load(MyModule).tree.stage("0").module
    diff = irviz.diff(named, relax.transform.LegalizeOps()(MyModuleHighLevel))
    titled = type(diff)("<script>", "a & b", diff.functions)
    assert "<script>" not in titled.figure().svg
    assert "&lt;script&gt;" in titled.figure().svg


def test_in_one_picture_a_mark_covers_neither_a_name_nor_the_number_of_an_effect(session):
    mixed = relax.transform.ToMixedPrecision(out_dtype="float16")(MyModuleHighLevel)
    plain = chain([relax.op.nn.log_softmax] * 3)
    lowered = irviz.diff(plain, relax.transform.LegalizeOps()(plain))
    for diff in (irviz.diff(MyModuleHighLevel, mixed), session.diff("5", "6"), lowered):
        assert covered(diff.figure(overlay=True)) == covered(diff.figure()) == []


def covered(figure):
    """Return the names, notes and numbers of nodes that a mark overlaps."""
    found = []
    for side in ElementTree.fromstring(figure.svg).iterfind(".//{*}g[@class]"):
        if side.get("class").startswith("side"):
            words = [
                (one.text, text_rect(one.text, at(one), float(one.get("font-size"))))
                for one in side.iter(f"{SVG}text")
                if one.get("class") in ("name", "note", "effect")
            ]
            for pill in side.iterfind("{*}g/{*}rect[@rx='7.5']"):
                width, height = float(pill.get("width")), float(pill.get("height"))
                rect = Rect.at(at(pill), width, height)
                found += [word for word, its in words if rect.overlaps(its)]
    return found


def at(shape):
    return float(shape.get("x")), float(shape.get("y"))


class Norm(nn.Module):
    """A batch_norm, of whose three elements one is used."""

    def __init__(self):
        for name in ("gamma", "beta", "mean", "var"):
            setattr(self, name, nn.Parameter((8,), "float32"))

    def forward(self, x):
        weights = (one._expr for one in (self.gamma, self.beta, self.mean, self.var))
        return nn.op.wrap_nested(relax.op.nn.batch_norm(x._expr, *weights, axis=1), "norm")[0]


class Norms(nn.Module):
    def __init__(self):
        self.norms = nn.ModuleList([Norm() for _ in range(14)])

    def forward(self, x: nn.Tensor):
        for norm in self.norms:
            x = nn.op.relu(norm(x))
        return x


def test_elements_of_a_result_that_a_pass_removes_are_drawn():
    mod, _ = Norms().export_tvm({"forward": {"x": nn.spec.Tensor((2, 8), "float32")}})
    before = Session(mod, function="forward")
    after = before.apply("DeadCodeElimination")
    (diff,) = after.diff("0").functions
    sides = side_graphs(union_graph(diff.graphs, (diff.nodes,)), Expansion(every=True)).sides
    drawn = [
        [node.id for node in side.graph.nodes if node.kind is NodeKind.TUPLE_GET_ITEM]
        for side in sides
    ]
    assert drawn == [["norm_1", "norm_2"], []], "the copy of the layer that is drawn"
    assert [side.graph["norm"].item.id for side in sides] == ["norm_0", "norm_0"]
    assert not problems_of(diff, Expansion(every=True))


def test_a_layer_of_one_call_is_drawn_as_the_call_without_a_frame_or_a_button():
    class Ends(Norms):
        def __init__(self):
            super().__init__()
            self.last = Norm()

        def forward(self, x: nn.Tensor):
            return self.last(super().forward(x))

    mod, _ = Ends().export_tvm({"forward": {"x": nn.spec.Tensor((2, 8), "float32")}})
    every = ViewState(choices=Expansion(every=True))
    view = stage_view(Session(mod, function="forward").current, "forward", every)
    placed = place_graph(view.graph, "up")
    scene = SceneGeometry(view.graph, placed.layout, placed.direction)
    ((region, call),) = lone_calls(view.graph).items()
    assert view.graph.regions[region].id == "layer:last"
    assert region not in scene.frames
    svg = view.figure().svg
    assert f'data-node="{call}"' in svg
    assert 'data-toggle="layer:last"' not in svg
    assert "data-toggle" in svg, "of the layers with frames"


class Between(Norms):
    """Many operators that are in no layer, before the layers."""

    def forward(self, x: nn.Tensor):
        unary = (nn.op.exp, nn.op.tanh, nn.op.relu, nn.op.sigmoid, nn.op.square)
        for function in random.Random(1).choices(unary, k=140):
            x = function(x)
        return super().forward(x)


def test_a_comparison_keeps_the_layers_where_each_call_is_split():
    mod, _ = Between().export_tvm({"forward": {"x": nn.spec.Tensor((2, 8), "float32")}})
    before = Session(mod, function="forward").apply("LegalizeOps").apply("ToNonDataflow")
    (diff,) = before.apply("CallTIRRewrite").diff("2", function="forward").functions
    names = [one.name for one in union_graph(diff.graphs, (diff.nodes,)).tree.root.inside]
    assert any("norms.0" in one for one in names)
    assert not any("steps" in one for one in names)


@pytest.fixture(scope="module")
def split():
    """Return the diff in which calls with several weights are split into call and buffers."""
    mod, _ = Norms().export_tvm({"forward": {"x": nn.spec.Tensor((2, 8), "float32")}})
    before = Session(mod, function="forward").apply("LegalizeOps").apply("ToNonDataflow")
    (diff,) = before.apply("CallTIRRewrite").diff("2", function="forward").functions
    return place_diff(diff, expansion=Expansion(every=True))


def test_edges_at_a_split_node_are_straight_on_both_sides(split):
    for side in split.placed:
        assert side.layout.routes
        assert all(corners_of(route) for route in side.layout.routes.values())


def test_what_a_node_was_split_into_stands_below_all_of_its_texts(split):
    drawn = draw_placed(split.placed[0], changes=split.changes[0]).svg
    root = ElementTree.fromstring(drawn)
    groups = root.findall(".//{*}text[@class='contents']/..")
    norms = [one for one in groups if "×3 + batch_norm" in "".join(one.itertext())]
    assert norms
    for group in norms:
        name = group.get("data-node")
        notes = root.findall(f".//{{*}}g[@data-node='{name}']//{{*}}text[@class='note']")
        assert len(notes) == 5
        first = min(at(one)[1] for one in group.iterfind("{*}text[@class='contents']"))
        assert first > max(at(note)[1] for note in notes) + 11

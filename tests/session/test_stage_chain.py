"""Who steps through stages sees nothing move that the stage before and the next one both have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import IRModule, relax

from irviz.course.digits import mlp_params
from irviz.course.mlp import MODULES, MyModule
from irviz.model.folding.expansion import Expansion
from irviz.model.graph.graph import INPUT_KINDS, NodeId, RegionKind
from irviz.session.session import Session
from irviz.session.shown_function import StageView, ViewState
from irviz.session.stable_layout import (
    MOST_BINDINGS,
    MOST_FUNCTIONS,
    MOST_PLACES,
    MOST_STAGES,
    chain,
    chain_part,
    shared_layouts,
)
from irviz.transforms.stage import Stage
from irviz.view.graph.graph_figure import place_graph
from irviz.view.graph.nodes_and_edges import SceneGeometry
from irviz.view.svg_primitives import Rect, Size
from tests.constructs.drawing import random_modules
from tests.diff_by_values import random_operators
from tests.placed_sides import scene_problems

pytestmark = pytest.mark.worker

LINE = 16
"""More than a line of text: a node is as high as the stage needs that says most in it."""
PIPELINE = ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps", "FuseTIR")


def applied(session: Session, *names: str) -> Session:
    for name in names:
        session = session.apply(name)
    return session


def drawn(session: Session, state: ViewState | None = None) -> dict[str, StageView]:
    """Return what is drawn of the stages that share a layout, by their ids."""
    looked = state or ViewState()
    found = shared_layouts(chain_part(session.tree, session.function), session.function, looked)
    placed = {stage.id: shared.placed.get(stage) for stage, shared in found.items()}
    return {
        one: replace(session.view(one, looked), placed=each) for one, each in placed.items() if each
    }


def scene(view: StageView) -> SceneGeometry:
    assert view.placed is not None
    return SceneGeometry(view.placed.graph, view.placed.layout, view.placed.direction)


def stays_in_place(before: StageView, after: StageView, both: Sequence[str]) -> bool:
    mine, theirs = scene(before).shapes, scene(after).shapes
    return all(mine[NodeId(one)] == theirs[NodeId(one)] for one in both)


@pytest.fixture(scope="module")
def lowered() -> Session:
    """The lecture's network of operators, lowered and fused: stages 0 to 4."""
    return applied(Session(MODULES["MyModuleHighLevel"], isolate=False), *PIPELINE)


# --- what stays --------------------------------------------------------------------------------


def test_what_neighbouring_stages_have_in_common_is_at_the_same_place(lowered: Session) -> None:
    views = [*drawn(lowered).values()]
    assert len(views) == 5
    for alike in (views[:3], views[3:]):
        for before, after in pairwise(alike):
            assert stays_in_place(before, after, [str(node.id) for node in before.graph.nodes])
        assert len({(one.figure().width, one.figure().height) for one in alike}) == 1


def test_a_node_that_others_were_fused_into_is_as_large_as_its_text(lowered: Session) -> None:
    for stage_id, view in drawn(lowered).items():
        alone = place_graph(lowered.view(stage_id).graph)
        shapes = SceneGeometry(alone.graph, alone.layout, alone.direction).shapes
        for node, shape in scene(view).shapes.items():
            assert shape.height < shapes[node].height + LINE, (stage_id, node)


def test_a_parameter_that_becomes_a_constant_stays_in_its_place() -> None:
    views = drawn(Session(MyModule, params=mlp_params(), isolate=False).bind())
    before, after = views["0"], views["1"]
    assert stays_in_place(before, after, ["x", "lv0", "lv1", "out"])
    inputs = [
        sorted(
            scene(view).shapes[one.id].centre for one in view.graph.nodes if one.kind in INPUT_KINDS
        )
        for view in (before, after)
    ]
    assert inputs[0] == [pytest.approx(centre) for centre in inputs[1]]
    assert len(inputs[0]) == 5
    (block,) = scene(before).frames.values()  # which has no parameter
    assert not any(block.rect.contains(Rect.around(one, Size(1, 1))) for one in inputs[0])


def test_a_repeated_layer_stays_folded_and_in_its_place(modules: Any) -> None:
    session = applied(Session(modules.stack(12), isolate=False), "LegalizeOps")
    views = drawn(session)
    before, after = views["0"], views["1"]
    assert len(before.graph.nodes) < before.size
    both = [one for one in before.graph.index if one in after.graph.index]
    assert len(both) == len(before.graph.nodes)
    assert stays_in_place(before, after, both)


def test_a_picture_tells_nothing_of_other_stages(lowered: Session) -> None:
    views = drawn(lowered)
    assert len(views) == 5
    for stage_id, view in views.items():
        assert view.placed is not None
        alone = lowered.view(stage_id)
        assert [node.id for node in view.placed.graph.nodes] == [n.id for n in alone.graph.nodes]
        kinds = {one.kind for one in view.placed.graph.regions}
        assert not kinds & {RegionKind.FUSED, RegionKind.UNCHANGED}
        assert set(view.figure().places) == set(alone.figure().places)


@pytest.mark.parametrize("name", MODULES)
def test_no_picture_has_nodes_on_each_other_or_loose_edges(name: str) -> None:
    check(MODULES[name])


@settings(max_examples=8)
@given(random_modules() | st.builds(random_operators, st.integers(0, 99)))
def test_nor_has_one_of_random_functions(mod: IRModule) -> None:
    check(mod)


def check(mod: IRModule) -> None:
    session = Session(mod, isolate=False)
    for name in (*PIPELINE, "CallTIRRewrite"):
        session = session.apply(name)
    for view in drawn(session).values():
        assert scene_problems(scene(view)) == []  # type: ignore[no-untyped-call]
        assert view.figure().svg


# --- which stages ------------------------------------------------------------------------------


def test_the_stages_are_those_before_the_current_one_and_what_was_made_of_it_last(
    lowered: Session,
) -> None:
    branched = applied(lowered.checkout("1"), "FoldConstant")  # stage 5
    ids = [one.id for one in chain(branched.checkout("0").tree)]
    assert ids == ["0", "1", "5"]
    assert [one.id for one in chain(branched.checkout("3").tree)] == ["0", "1", "2", "3", "4"]


def test_stepping_back_and_forth_the_layout_is_the_same(lowered: Session) -> None:
    placed = [
        {one: view.figure().svg for one, view in drawn(lowered.checkout(at)).items()}
        for at in ("4", "0", "2")
    ]
    assert placed[0] == placed[1] == placed[2] != {}


def test_a_single_stage_is_drawn_by_itself(lowered: Session) -> None:
    assert drawn(Session(lowered.stages[0].module, isolate=False)) == {}


def test_a_part_of_a_function_is_drawn_by_itself(lowered: Session) -> None:
    assert drawn(lowered, ViewState().at(NodeId("lv0"))) == {}


def test_a_stage_that_has_much_more_than_those_before_is_drawn_by_itself(
    lowered: Session,
) -> None:
    session = applied(lowered.checkout("1"), "CallTIRRewrite")
    calls = ViewState(Expansion(opened=tuple(session.view().openable)))
    before, after = session.view("1", calls), session.view(state=calls)
    assert len(after.graph.nodes) > 1.5 * len(before.graph.nodes)
    assert list(drawn(session, calls)) == ["0", "1"]


def test_no_node_is_large_for_what_it_becomes_later() -> None:
    names = ("LegalizeOps", "ToNonDataflow", "RemovePurityChecking", "CallTIRRewrite")
    planned = applied(
        Session(MODULES["MyModuleHighLevel"], isolate=False), *names, "StaticPlanBlockMemory"
    )
    views = drawn(planned)
    assert len(views) == 6
    for one, view in views.items():
        heights = {node.id: scene(view).shapes[node.id].height for node in view.graph.nodes}
        assert max(heights.values()) < 50, one  # an alloc_tensor becomes four nodes


def test_no_picture_is_much_larger_than_the_stage_alone(lowered: Session) -> None:
    views = drawn(lowered)
    assert len(views) == 5
    for stage_id, view in views.items():
        shared, alone = view.figure(), lowered.view(stage_id).figure()
        assert shared.width * shared.height < 2 * alone.width * alone.height


def test_functions_with_many_nodes_are_drawn_by_themselves() -> None:
    for count, shares in ((MOST_PLACES // 2, True), (MOST_PLACES, False)):
        session = Session(operators_in_a_row(count)).apply("LegalizeOps")
        assert bool(drawn(session)) is shares


def operators_in_a_row(count: int) -> IRModule:
    """Return a function of so many operators behind its parameter, in which nothing repeats."""
    choice, op = Random(0), relax.op
    operators = (op.exp, op.tanh, op.sin, op.cos, op.sqrt, op.negative)
    builder, value = relax.BlockBuilder(), relax.Var("x", relax.TensorType([2], "float32"))
    with builder.function("main", [value]):
        for _ in range(count):
            value = builder.emit(choice.choice(operators)(value))
        builder.emit_func_output(value)
    return builder.get()


@pytest.mark.parametrize("many", ["bindings", "functions"])
def test_larger_modules_are_not_compared_for_a_layout(modules: Any, many: str) -> None:
    few = modules.chain("x", "y", "z")
    if many == "bindings":
        larger = modules.chain(*(f"v{index}" for index in range(MOST_BINDINGS + 2)))
    else:
        functions = {f"f{index}": few["main"] for index in range(MOST_FUNCTIONS)}
        larger = IRModule({"main": few["main"], **functions})
    for mod, count in ((few, 2), (larger, 0)):
        tree = Session(mod).apply("LegalizeOps").tree
        assert len(chain_part(tree, "main")) == count


def test_of_a_long_chain_some_stages_at_a_time_share_a_layout(lowered: Session) -> None:
    longer = lowered
    while len(longer.stages) < MOST_STAGES + 2:
        longer = longer.apply("CanonicalizeBindings")
    numbers = [one.id for one in longer.stages]
    assert list(drawn(longer.checkout("1"))) == numbers[:MOST_STAGES]
    assert list(drawn(longer)) == numbers[MOST_STAGES:]


def test_a_layout_that_takes_too_long_is_not_shared(lowered: Session) -> None:
    part = chain_part(lowered.tree, lowered.function)
    for stage, shared in shared_layouts(part, lowered.function, ViewState()).items():
        assert replace(shared, seconds=0.0).placed.get(stage) is None


def test_a_stage_without_the_function_ends_what_shares_a_layout(lowered: Session) -> None:
    def without(stage: Stage) -> Stage:
        functions = stage.module.functions_items()
        rest = {name: one for name, one in functions if not isinstance(one, relax.Function)}
        return replace(stage, module=IRModule(rest))

    stages = tuple(without(one) if one.id == "2" else one for one in lowered.stages)
    tree = replace(lowered.tree, stages=stages)
    parts = [chain_part(tree.checkout(one), lowered.function) for one in "01234"]
    ids = ["".join(stage.id for stage in part) for part in parts]
    assert ids == ["01", "01", "", "34", "34"]

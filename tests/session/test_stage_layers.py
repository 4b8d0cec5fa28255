"""Nodes of every stage tell the layers of the model that they serve."""

import json

import numpy as np
import pytest
from tvm import relax
from tvm.relax.frontend import nn

from irviz.errors import NotFoundError
from irviz.model.folding.expansion import Expansion
from irviz.model.graph.graph import INPUT_KINDS, LayerPart, NodeKind
from irviz.model.graph.layers import layer_name
from irviz.session.session import Session
from irviz.session.session_encoding import EncodingError
from irviz.session.session_file import decode_layers, encode_layers
from irviz.session.shown_function import ViewState
from irviz.session.stable_layout import compared_views
from irviz.session.stage_cache import graph_of, tree_of
from irviz.transforms.recording import record_passes

pytestmark = pytest.mark.worker

PASSES = (
    "LegalizeOps",
    "AnnotateTIROpPattern",
    "FuseOps",
    "FuseTIR",
    "ToNonDataflow",
    "RemovePurityChecking",
    "CallTIRRewrite",
    "StaticPlanBlockMemory",
)
BLOCKS = 10


class Block(nn.Module):
    def __init__(self, inner=8):
        self.up, self.down = nn.Linear(4, inner), nn.Linear(inner, 4)

    def forward(self, x: nn.Tensor):
        return x + self.down(nn.op.relu(self.up(x)))


class Model(nn.Module):
    def __init__(self):
        self.blocks = nn.ModuleList([Block() for _ in range(BLOCKS)])

    def forward(self, x: nn.Tensor):
        for block in self.blocks:
            x = block(x)
        return x


@pytest.fixture(scope="module")
def lowered():
    """Return the session of a model that was lowered step by step."""
    spec = {"forward": {"x": nn.spec.Tensor((1, 4), "float32")}}
    session = Session(Model().export_tvm(spec)[0], function="forward")
    for one in PASSES:
        session = session.apply(one)
    assert not any(stage.error for stage in session.tree.stages)
    return session


def layers_at(session, label):
    stage = next(one for one in session.tree.stages if one.label.startswith(label))
    nodes = graph_of(stage, "forward").nodes
    return {
        node.id: [layer_name(layer) for layer in node.layers]
        for node in nodes
        if node.kind not in INPUT_KINDS
    }


@pytest.mark.parametrize("label", ["initial", *PASSES])
def test_after_each_pass_every_node_serves_a_layer_that_there_was_at_first(lowered, label):
    first = {name for found in layers_at(lowered, "initial").values() for name in found}
    assert {f"blocks.{n}.up" for n in range(BLOCKS)} < first
    for node, found in layers_at(lowered, label).items():
        assert found, node
        assert set(found) <= {*first, ""}


def test_a_recording_of_a_module_that_was_opened_has_its_layers(lowered):
    opened = lowered.tree.stages[0]
    expected = layers_at(lowered, "LegalizeOps")
    weights = {
        one.name: np.zeros([int(size) for size in one.ty.shape], "float32")
        for one in opened.module["forward"].params[1:]
    }
    nameless = relax.transform.BindParams("forward", weights)(opened.module)
    with record_passes() as recording:
        relax.transform.LegalizeOps()(nameless)
    session = Session.from_stages(recording.stages())
    assert layers_at(session, "LegalizeOps") == expected


def test_what_was_fused_serves_the_layers_of_all_that_it_was(lowered):
    for label in ("FuseOps", "FuseTIR"):
        several = [set(found) for found in layers_at(lowered, label).values() if len(found) > 1]
        assert {"blocks.2.down", "blocks.2"} in several or {
            "blocks.2.down",
            "blocks.2.up",
        } in several


def test_layers_are_repeats_before_and_after_fusion(lowered):
    for label in ("initial", "FuseTIR"):
        stage = next(one for one in lowered.tree.stages if one.label.startswith(label))
        repeats = [one for one in tree_of(stage, "forward").root.inside if one.copies > 1]
        inner = [one for around in tree_of(stage, "forward").root.inside for one in around.inside]
        found = [*repeats, *(one for one in inner if one.copies > 1)]
        assert [one.name for one in found] == [f"blocks.0–{BLOCKS - 1} ×{BLOCKS}"], label


def test_layers_are_repeats_though_storage_rotates_from_one_to_the_next(lowered):
    tree = tree_of(lowered.stage(), "forward")
    used = [edge.source for edge in tree.graph.edges if edge.target in ("alloc11", "alloc15")]
    assert used == ["storage2", "storage3"]
    (repeat,) = (one for one in tree.root.inside if one.copies > 1)
    assert repeat.title == f"blocks.2–{BLOCKS - 2} ×{BLOCKS - 3} · storage rotates"
    assert "storage rotates" in lowered.draw().svg


def test_in_a_comparison_storage_rotates_only_where_memory_is_planned(lowered):
    stages = lowered.stage().parent, lowered.stage().id
    for expansion in (Expansion(), Expansion(every=False)):
        views = compared_views(lowered.tree, *stages, "forward", ViewState(expansion))
        names = [
            [one.name for one in (*view.graph.nodes, *view.graph.regions) if " ×" in one.name]
            for view in (views.before, views.after)
        ]
        assert [["rotates" in name for name in each] for each in names] == [[False], [True]]


def test_two_stages_are_compared_by_the_same_layers_without_weights_that_nothing_uses():
    class Unused(Model):
        def __init__(self):
            super().__init__()
            self.unused = nn.Linear(4, 4)

    spec = {"forward": {"x": nn.spec.Tensor((1, 4), "float32")}}
    session = Session(Unused().export_tvm(spec)[0], function="forward").apply("LegalizeOps")
    views = compared_views(session.tree, "0", "1", "forward", ViewState())
    for view in (views.before, views.after):
        assert view.where("unused.weight") is None
        assert view.part is None
        assert "blocks.0–9 ×10" in view.figure().svg


def test_a_saved_session_keeps_the_layers(tmp_path):
    spec = {"forward": {"x": nn.spec.Tensor((1, 4), "float32")}}
    mod = Model().export_tvm(spec)[0]
    names = [node.id for node in Session(mod).graph().nodes if node.kind not in INPUT_KINDS]
    layer = (LayerPart("only", "Layer"),)
    session = Session(mod, layers={"forward": dict.fromkeys(names, (layer,))}).apply("LegalizeOps")
    session.save(tmp_path / "saved.irviz")
    opened = Session.load(tmp_path / "saved.irviz")
    for stage in opened.tree.stages:
        nodes = graph_of(stage, "forward").nodes
        assert {node.layers for node in nodes if node.kind is NodeKind.CALL_TIR} <= {(layer,)}
    assert opened.stage("0").layers == session.stage("0").layers


def test_layers_are_written_once_and_read_back():
    layers = {"main": {f"lv{n}": ((LayerPart("h.0", "Block"),), ()) for n in range(3)}}
    encoded = json.loads(json.dumps(encode_layers(layers)))
    assert encoded["layers"] == [[["h.0", "Block"]], []]
    assert decode_layers(encoded) == layers


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {"layers": []},
        {"layers": 1, "functions": {}},
        {"layers": [[["a"]]], "functions": {}},
        {"layers": [[["a", 1]]], "functions": {}},
        {"layers": [], "functions": {"main": []}},
        {"layers": [], "functions": {"main": {"lv": [0]}}},
        {"layers": [[]], "functions": {"main": {"lv": [-1]}}},
        {"layers": [[]], "functions": {"main": {"lv": [True]}}},
        {"layers": [[]], "functions": {"main": {"lv": "0"}}},
    ],
)
def test_anything_else_is_refused(data):
    with pytest.raises(EncodingError, match="layer"):
        decode_layers(data)


def test_the_history_of_a_node_has_its_layers(lowered):
    node = next(node.id for node in lowered.graph().nodes if node.id.startswith("alloc"))
    history = lowered.history(node)
    assert history.layers == ("blocks.0.up",)
    assert "in blocks.0.up" in repr(history)


class Wide(nn.Module):
    def __init__(self):
        self.blocks = nn.ModuleList([Block(inner) for inner in (4, 4, 6, 4)])

    def forward(self, x: nn.Tensor):
        for block in self.blocks:
            x = block(x)
        return x


def test_two_layers_of_a_model_are_compared_node_by_node_also_where_their_sizes_differ():
    spec = {"forward": {"x": nn.spec.Tensor((1, 4), "float32")}}
    session = Session(Wide().export_tvm(spec)[0], function="forward")
    assert not session.compare_layers("blocks.0", "blocks.1").functions[0].changed_nodes
    (wider,) = session.compare_layers("blocks.0", "blocks.2").functions
    assert {one.change.value for one in wider.changed_nodes} == {"changed"}
    aspects = [what.aspect.value for one in wider.changed_nodes for what in one.differences]
    assert set(aspects) == {"shape"}
    with pytest.raises(NotFoundError, match=r"serves a layer 'blocks\.7'; layers are blocks\.0, "):
        session.compare_layers("blocks.0", "blocks.7")

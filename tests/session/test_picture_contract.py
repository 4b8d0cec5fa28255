"""Nothing in the pictures of a recording is false, as a second reader of their SVG finds."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import tvm
from tvm.relax.frontend import nn

import irviz
from irviz.course.mlp import MyModuleTwoBlocks
from irviz.session.session import Session

pytestmark = [pytest.mark.build, pytest.mark.worker]


def _from_file(path):
    path = Path(__file__).parents[2] / path
    spec = importlib.util.spec_from_file_location(f"irviz_{path.stem}", path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


bench = _from_file("bench/pictures.py")


class Layer(nn.Module):
    """A norm and an attention of one head, beside which the input goes past."""

    def __init__(self):
        self.norm = nn.LayerNorm(16)
        self.query, self.key, self.value, self.out = (nn.Linear(16, 16) for _ in range(4))

    def forward(self, x: nn.Tensor):
        here = self.norm(x)
        scores = nn.op.matmul(self.query(here), nn.op.permute_dims(self.key(here), [0, 2, 1]))
        here = nn.op.matmul(nn.op.softmax(scores), self.value(here))
        return nn.op.add(x, self.out(here))


class Embeddings(nn.Module):
    """Words and their places."""

    def __init__(self):
        self.words, self.places = nn.Embedding(32, 16), nn.Embedding(8, 16)
        self.norm = nn.LayerNorm(16)

    def forward(self, words: nn.Tensor, places: nn.Tensor):
        return self.norm(nn.op.add(self.words(words), self.places(places)))


class Encoder(nn.Module):
    """A small text encoder, whose layers are told by the names of its parameters."""

    def __init__(self):
        self.embeddings = Embeddings()
        self.layers = nn.ModuleList([Layer() for _ in range(3)])
        self.norm = nn.LayerNorm(16)

    def forward(self, words: nn.Tensor, places: nn.Tensor):
        x = self.embeddings(words, places)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


@pytest.fixture(scope="module")
def recorded():
    tokens = nn.spec.Tensor((1, 8), "int32")
    spec = {"forward": {"words": tokens, "places": tokens}}
    mod = Encoder().export_tvm(spec)[0]
    with irviz.record() as recording:
        tvm.compile(mod, "llvm")
    return recording.session().select_function("forward")


def check(session, groups=4):
    counts = bench.false_pictures(session, groups)
    assert counts.pictures.keys() >= {"drawn", "page", "toggled", "compared"}
    assert counts.found == []


def test_the_pictures_of_a_recorded_encoder_are_true(recorded):
    check(recorded)


def test_a_layer_stays_inside_of_its_dataflow_block(recorded):
    """Its stages share a layout, and later ones have no dataflow block."""
    state = bench.State.of(recorded.checkout("0").select_function("forward"))
    shown = bench.stage_pictures.scene(state, "current")
    assert shown.view.placed is not None
    assert 'class="block dataflow"' in shown.figure.svg
    assert 'class="block layer"' in shown.figure.svg
    assert bench.violations(shown.figure.svg, shown.view.graph) == []


def test_blocks_that_a_pass_merges_are_drawn_where_they_are():
    session = Session(MyModuleTwoBlocks)
    for name in ("LegalizeOps", "ConvertToDataflow", "FuseOps", "ToNonDataflow"):
        session = session.apply(name)
    found = bench.false_pictures(session, 4).found
    assert found == []


def test_a_stage_of_an_opened_recording_is_known_by_the_next_one(recorded, tmp_path):
    """So nothing is read of it twice, which the first history after opening waits for."""
    opened = irviz.load(recorded.save(tmp_path / "work.irviz"))
    stages = {one.id: one for one in opened.stages}
    assert all(one.made_from is stages.get(one.parent) for one in opened.stages)

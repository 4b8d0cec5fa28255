"""The first picture of a function shows something of it, however it is divided."""

import importlib.util
from pathlib import Path

import pytest
from tvm.relax.frontend import nn

from irviz.limits import MOST_NODES
from irviz.model.folding.expansion import Expansion
from irviz.model.folding.group_tree import Container
from irviz.session.session import Session
from irviz.session.shown_function import ViewState

FUSION = ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps", "FuseTIR", "CallTIRRewrite")


class Norm(nn.Module):
    """A norm as it is imported for inference, of four parameters."""

    def __init__(self):
        shape = (1, 8, 1, 1)
        self.scale, self.shift = (nn.Parameter(shape, "float32") for _ in range(2))
        self.mean, self.variance = (nn.Parameter(shape, "float32") for _ in range(2))

    def forward(self, x: nn.Tensor):
        return (x - self.mean) / nn.op.sqrt(self.variance) * self.scale + self.shift


class Residual(nn.Module):
    """Two convolutions, each with a norm, around what goes past them."""

    def __init__(self):
        self.convs = nn.ModuleList([nn.Conv2D(8, 8, 3, padding=1, bias=False) for _ in range(2)])
        self.norms = nn.ModuleList([Norm() for _ in range(2)])

    def forward(self, x: nn.Tensor):
        here = nn.op.relu(self.norms[0](self.convs[0](x)))
        return nn.op.add(x, nn.op.relu(self.norms[1](self.convs[1](here))))


class Network(nn.Module):
    """Residual blocks with something different between them, so that nothing repeats itself."""

    def __init__(self, blocks):
        self.blocks = nn.ModuleList([Residual() for _ in range(blocks)])

    def forward(self, x: nn.Tensor):
        between = (nn.op.tanh, nn.op.exp, nn.op.sigmoid, nn.op.silu, nn.op.negative, nn.op.relu)
        for index, block in enumerate(self.blocks):
            x = between[index % len(between)](block(x))
        return x


def network(blocks):
    spec = {"forward": {"x": nn.spec.Tensor((1, 8, 4, 4), "float32")}}
    return Network(blocks).export_tvm(spec)[0]


def below(container):
    for child in container.children:
        if isinstance(child, Container):
            yield child
            yield from below(child)


@pytest.fixture(scope="module")
def stacks():
    """Return bench/made_modules.py, which makes what is measured."""
    path = Path(__file__).parents[2] / "bench" / "made_modules.py"
    spec = importlib.util.spec_from_file_location("irviz_bench_made_modules", path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def check_stages(module):
    function = "main" if "main" in module else "forward"
    session = Session(module, function=function, isolate=False)  # these passes end no process
    check(session)
    for step in FUSION:
        session = session.apply(step)
        assert not session.current.error
        check(session)


def check(session):
    view = session.view()
    containers = tuple(one.id for one in below(view.visible.tree.root))
    leaves = tuple(f"leaves:{node.id}" for node in view.whole.nodes)
    all_open = session.view(state=ViewState(Expansion(opened=(*leaves, *containers))))
    assert min(8, len(all_open.graph.nodes)) <= len(view.graph.nodes) <= MOST_NODES


@pytest.mark.parametrize("blocks", [1, 3, 5, 9, 30])
def test_something_is_seen_of_a_network_at_every_stage_of_its_fusion(blocks):
    check_stages(network(blocks))


@pytest.mark.parametrize("layers", [1, 2, 8, 48])
def test_something_is_seen_of_a_stack_at_every_stage_of_its_fusion(modules, layers):
    check_stages(modules.stack(layers))


@pytest.mark.parametrize("make", ["decoder", "exported"])
@pytest.mark.parametrize("layers", [1, 2, 8])
def test_something_is_seen_of_a_decoder_stack_at_every_stage_of_its_fusion(stacks, make, layers):
    check_stages(getattr(stacks, make)(stacks.BINDINGS * layers))

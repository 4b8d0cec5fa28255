"""Nine models as users import them: every stage of their compilation is drawn."""

import importlib.util
from pathlib import Path
from xml.etree import ElementTree

import pytest
import tvm

import irviz

torch = pytest.importorskip("torch", reason="this needs PyTorch: pip install 'irviz[torch]'")

pytestmark = [
    pytest.mark.models,
    pytest.mark.torch,
    pytest.mark.build,
    # of torch's own code, which TVM's importer runs
    pytest.mark.filterwarnings(
        r"ignore:`isinstance\(treespec, LeafSpec\)` is deprecated:FutureWarning"
    ),
    pytest.mark.filterwarnings("ignore:TVM imported:UserWarning"),  # said once the model is open
    pytest.mark.filterwarnings(r"ignore:The tensor attributes? self\.\S+_flat_weights:UserWarning"),
]

PIPELINES = ("default", "default_build")


def _architectures():
    """Return architectures.py beside this file; the tests are no package to import it from."""
    path = Path(__file__).with_name("architectures.py")
    spec = importlib.util.spec_from_file_location("irviz_test_architectures", path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


MODELS = _architectures().MODELS


@pytest.fixture(scope="module", params=MODELS)
def session(request):
    """Return the session of a model, once for all of its tests."""
    model, inputs = MODELS[request.param]()
    return irviz.load(model.eval(), inputs=inputs)


def check_drawn(session):
    """Check that the SVG of the current stage has every node, value and edge of its view."""
    graph = session.view().graph
    drawing = session.draw()
    groups = list(ElementTree.fromstring(drawing.svg).iter("{http://www.w3.org/2000/svg}g"))

    def ids(kind, key):
        return [one.get(key) for one in groups if one.get("class", "").split()[:1] == [kind]]

    returned = [None] * bool(graph.outputs)
    assert ids("node", "data-node") == [*(node.id for node in graph.nodes), *returned]
    ends = [(edge.source, edge.target) for edge in graph.edges]
    ends += [(output, "return") for output in graph.outputs]
    assert list(zip(ids("edge", "data-source"), ids("edge", "data-target"), strict=True)) == ends
    assert min(drawing.width, drawing.height) > 32
    assert "nan" not in drawing.svg


def test_every_recorded_stage_of_a_model_is_drawn(session):
    with irviz.record() as recording:
        tvm.compile(session.current.module, "llvm")
    recorded = recording.session()
    main = [one for one in recorded.stages if "main" in recorded.checkout(one.id).functions]
    assert len(main) > 10  # then only the kernels are left
    for stage in recorded.stages:
        here = recorded.checkout(stage.id)
        if stage.is_unchanged:  # its module, and so its picture, are those of the stage before
            continue
        if here.functions:
            one = "main" if "main" in here.functions else here.functions[0]
            check_drawn(here.select_function(one))
        else:  # the kernels for a GPU, of which there are none
            assert stage.label == "tirx.Filter"


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_model_is_drawn_after_a_pipeline(session, pipeline):
    made = session.apply(pipeline)
    assert not made.current.error
    check_drawn(made)
    assert len(made.view().graph.nodes) >= 8


def test_at_least_eight_nodes_of_a_model_are_shown_at_every_stage_of_its_fusion(session):
    assert len(session.view().graph.nodes) >= 8
    for step in ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps", "FuseTIR"):
        session = session.apply(step)
        assert not session.current.error
        assert len(session.view().graph.nodes) >= 8

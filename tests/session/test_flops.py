"""Nodes and groups tell how many floating-point operations they take."""

# ruff: noqa: N805, N812 - TVMScript has its own rules for names

import pickle

import pytest
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R

from irviz.model.folding.group_tree import group_facts
from irviz.session.session import Session
from irviz.session.stage_cache import graph_of, prim_func_flops


@I.ir_module
class Model:
    @R.function
    def main(
        x: R.Tensor((1, 3, 32, 32), "float32"),
        w: R.Tensor((8, 3, 3, 3), "float32"),
        rows: R.Tensor(("n", 4), "float32"),
        v: R.Tensor((4, 5), "float32"),
    ):
        with R.dataflow():
            conv = R.nn.conv2d(x, w, padding=1)
            relu = R.nn.relu(conv)
            flat = R.reshape(relu, (2, 4096))
            product = R.matmul(flat, R.permute_dims(flat))
            symbolic = R.matmul(rows, v)
            R.output(product, symbolic)
        return product, symbolic


@I.ir_module
class Endless:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Endless
        y: R.Tensor((4,), "float32") = cls.main(x)
        return R.add(y, y)


@pytest.mark.parametrize("module", [Model, relax.transform.LegalizeOps()(Model)])
def test_operators_and_prim_funcs_take_the_same(module):
    graph = graph_of(Session(module).stage(), "main")
    assert [graph[one].flops for one in ("conv", "relu", "flat", "product", "symbolic")] == [
        2 * (8 * 32 * 32) * (3 * 3 * 3),
        8 * 32 * 32,
        0,
        2 * (2 * 2) * 4096,
        None,
    ]
    known = [graph[one] for one in ("conv", "relu")]
    assert dict(group_facts(known))["FLOPs"] == "451 k"
    with_symbolic = dict(group_facts([*known, graph["symbolic"]]))["FLOPs"]
    assert with_symbolic.startswith("≥ 451 k: sizes are symbolic")
    assert dict(group_facts([graph["symbolic"]]))["FLOPs"].startswith("not known")


NORMS = {
    "batch_norm": lambda x, a, b: R.nn.batch_norm(x, a, b, a, b, 1, training=False)[0],
    "group_norm": lambda x, a, b: R.nn.group_norm(x, a, b, 4, channel_axis=1, axes=[2, 3]),
    "instance_norm": lambda x, a, b: R.nn.instance_norm(x, a, b, channel_axis=1, axes=[2, 3]),
    "layer_norm": lambda x, a, b: R.nn.layer_norm(x, a, b, axes=[-1]),
    "rms_norm": lambda x, a, _: R.nn.rms_norm(x, a, axes=[-1]),
    "softmax": lambda x, *_: R.nn.softmax(x),
    "log_softmax": lambda x, *_: R.nn.log_softmax(x),
    "gelu": lambda x, *_: R.nn.gelu(x),
    "variance": lambda x, *_: R.variance(x, axis=-1),
    "std": lambda x, *_: R.std(x, axis=-1),
    "max_pool2d": lambda x, *_: R.nn.max_pool2d(x, (3, 3), (2, 2), (1, 1)),
}


@pytest.mark.parametrize("name", NORMS)
def test_operators_of_several_loops_take_about_what_tvm_counts_after_lowering(name):
    builder = relax.BlockBuilder()
    shapes = {"x": (2, 16, 32, 16), "a": (16,), "b": (16,)}
    given = [relax.Var(one, relax.TensorType(shape, "float32")) for one, shape in shapes.items()]
    with builder.function("main", given):
        with builder.dataflow():
            result = builder.emit_output(NORMS[name](*given))
        builder.emit_func_output(result)
    modules = builder.get(), relax.transform.LegalizeOps()(builder.get())
    before, after = (
        sum(node.flops or 0 for node in graph_of(Session(module).stage(), "main").nodes)
        for module in modules
    )
    assert before == pytest.approx(after, rel=0.1)


def test_a_function_that_calls_itself_takes_what_is_not_known():
    graph = graph_of(Session(Endless).stage(), "main")
    assert graph["y"].flops is None


def test_only_the_flops_that_are_asked_for_are_counted(monkeypatch):
    counted = []

    def count(mod):
        counted.append(mod)
        return 5.0

    monkeypatch.setattr("irviz.session.stage_cache.estimate_tir_flops", count)
    prim_func_flops.cache_clear()
    graph = graph_of(Session(relax.transform.LegalizeOps()(Model)).stage(), "main")
    assert not counted
    assert (graph["conv"].flops, graph["conv"].flops, len(counted)) == (5.0, 5.0, 1)
    prim_func_flops.cache_clear()


def test_a_pickled_graph_has_the_flops_as_numbers():
    graph = graph_of(Session(Model).stage(), "main")
    copy = pickle.loads(pickle.dumps(graph))
    assert copy == graph
    assert [node.work for node in copy.nodes] == [node.flops for node in graph.nodes]

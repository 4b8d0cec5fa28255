"""Torch computes the calls that TVM lacks, in every process that runs a model with them."""

import re
import sys

import numpy as np
import pytest
import tvm_ffi
from tvm import ir

import irviz
from irviz.errors import LoadError, RunError

torch = pytest.importorskip("torch", reason="this needs PyTorch: pip install 'irviz[torch]'")
nn = torch.nn

pytestmark = [
    pytest.mark.filterwarnings(r"ignore:`isinstance\(treespec, LeafSpec\)`:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*torch computes it"),
    pytest.mark.torch,
    pytest.mark.worker,
]
X = torch.linspace(-1, 1, 24).reshape(4, 6)


def calling(function):
    """Return a model with a layer that calls a function."""

    class Layer(nn.Module):
        def forward(self, *values):
            return function(*values)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([Layer()])

        def forward(self, *values):
            return self.blocks[0](*values)

    return Model()


def opened(function, *inputs, **options):
    return irviz.load(calling(function), inputs=inputs, missing="opaque", **options)


def check(session):
    result = session.run()
    assert str(result.origin).startswith("equals torch"), result.origin
    return result


def torch_callees(session):
    return [one.callee for one in session.graph().nodes if one.callee.startswith("torch.")]


def test_what_tvm_lacks_is_computed_by_torch():
    with pytest.warns(UserWarning, match=r"special_erfcx.*: torch computes it"):
        session = opened(lambda x: torch.special.erfcx(x) + 1, X)
    assert torch_callees(session) == ["torch.aten.special_erfcx.default"]
    assert session.draw().svg
    check(session)
    check_later = session.apply("LegalizeOps").apply("FuseOps").apply("FuseTIR")
    assert check_later.compare("3", "0").verdict.value == "equal"
    assert len(session.trace().visits) >= 3


def test_several_results_and_arguments_of_every_kind():
    def function(x, n):
        value, at = torch.kthvalue(x, 2, dim=1, keepdim=True)
        rows = torch.special.polygamma(1, x[:, :2].abs() + 1)
        return value, at, torch.fmod(torch.logcumsumexp(x, 0), 0.5), rows, torch.cummax(n, 1)[0]

    check(opened(function, X, torch.arange(12).reshape(3, 4)))


def test_sizes_that_depend_on_numbers_are_those_of_the_results():
    session = opened(lambda x: (torch.nonzero(x > 0) * 2, x[x > 0.5].exp()), X)
    assert [output.shape for output in check(session).outputs] == [(1, 12, 2), (1, 6)]
    found = session.with_inputs(np.ones((4, 6), "float32")).run().outputs
    assert [output.shape for output in found] == [(1, 24, 2), (1, 24)]


def test_complex_numbers_are_pairs_of_numbers():
    class Turned(nn.Module):
        def __init__(self):
            super().__init__()
            angles = torch.arange(12.0).reshape(4, 3)
            self.register_buffer("turn", torch.polar(torch.ones_like(angles), angles))

        def forward(self, x, z):
            pairs = torch.view_as_complex(x.reshape(4, 3, 2)) * self.turn
            return torch.view_as_real(pairs), torch.fft.fft(z), torch.complex(x, x).abs()

    z = torch.complex(X, X.flip(0))
    session = irviz.load(Turned(), inputs=(X, z), missing="opaque")
    assert session.graph()["z"].type_label == "Tensor[(4, 6, 2)]"
    assert check(session).outputs[1].shape == (1, 4, 6, 2)
    with pytest.raises(LoadError, match="TVM has no complex numbers"):
        irviz.load(Turned(), inputs=(X, z))


def test_a_file_with_such_calls_runs_in_the_sandbox_and_beside_torch(tmp_path):
    program = torch.export.export(
        calling(lambda x: torch.erfinv(x) + torch.fft.rfft(x).real.sum()), (X,)
    )
    torch.export.save(program, tmp_path / "model.pt2")
    inputs = {"values_0": X.numpy() / 2}
    session = irviz.load(tmp_path / "model.pt2", inputs=inputs, missing="opaque")
    confined = session.run()
    assert confined.is_confined or not irviz.worker.sandbox.can_confine()
    trusted = check(session.trust())
    np.testing.assert_array_equal(confined.outputs[0], trusted.outputs[0])
    check(session.trust())  # after torch has run with threads in the worker
    session.save(tmp_path / "work.irviz")
    again = irviz.load(tmp_path / "work.irviz").run()
    np.testing.assert_array_equal(again.outputs[0], trusted.outputs[0])


def test_an_error_of_torch_names_operator_layer_and_line():
    def function(x, at):
        return nn.functional.embedding_bag(at, x, mode="sum")

    session = opened(function, X, torch.tensor([[1, 2]]))
    check(session)
    wrong = session.with_inputs({"values_0": X.numpy(), "values_1": np.array([[1, 9]])})
    words = (
        r"torch\.aten\._embedding_bag.*value 9 .*layer blocks\.0, test_torch_calls\.py, line \d+"
    )
    with pytest.raises(RunError, match=words):
        wrong.run()


def written(callee, text, type_='R.Tensor((2,), "float32")'):
    """Return a session of TVMScript that calls torch."""
    return irviz.load(
        irviz.loaders.load.load_content(
            f"""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2,), "float32")) -> {type_}:
        y = R.call_dps_packed("{callee}", (x, R.str("{text}")), out_ty={type_})
        return y
""".encode(),
            "module.py",
        ).module,
        inputs=np.array([0.25, 0.5], "float32"),
    )


@pytest.mark.parametrize(
    ("callee", "text", "words"),
    [
        ("torch.aten.erfinv_.default", "x0", "it writes to its arguments"),
        ("torch.aten.erfinv.none", "x0", "has no such operator"),
        ("torch.aten.erfinv.default", "x0, 1", "at most 1 argument"),
        ("torch.aten.erfinv.default", "torch.load", "ValueError"),
        ("torch.aten.sum.default", "x0", r"it gives \(\) for \(2,\)"),
        ("torch.aten.load.default", "x0", "which nothing defines"),
        ("torch.ops.load_library", "x0", "which nothing defines"),
    ],
)
def test_what_is_no_call_of_an_operator_is_refused(callee, text, words):
    np.testing.assert_allclose(
        written("torch.aten.erfinv.default", "x0").run().outputs[0][0], [0.2253, 0.4769], atol=1e-4
    )
    with pytest.raises(RunError, match=words):
        written(callee, text).run()


def test_without_torch_an_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    name = "torch.aten.digamma.default"
    session = written(name, "x0")
    session = irviz.Session(
        session.current.module, inputs=session.call_inputs.inputs, isolate=False
    )
    try:
        with pytest.raises(RunError, match=rf"{re.escape(name)}.*install irviz\[torch\].*it is y"):
            session.run()
    finally:
        tvm_ffi.registry.remove_global_func(name)


def test_what_tvm_cannot_build_or_misreads_is_left_to_torch():
    normalised = torch.ops.aten.native_layer_norm.default
    check(opened(lambda x: normalised(x, [6], None, None, 1e-5), X))
    pool = nn.functional.avg_pool3d
    check(opened(lambda x: pool(x, 2, divisor_override=3), X.reshape(1, 1, 2, 3, 4)))
    check(opened(lambda x: nn.functional.max_pool2d(x, 2, return_indices=True), X[None, None]))
    check(
        opened(
            lambda x, y: (torch.cumsum(x.abs().sum(), 0), y.sign(), torch.max(y, 1)[0]), X, X > 0
        )
    )


def test_the_check_that_a_matrix_can_be_decomposed_is_left_out():
    def function(x):
        square = x @ x.mT + torch.eye(4)
        return torch.linalg.inv(square), torch.linalg.cholesky(square), torch.linalg.det(square)

    check(opened(function, X))


def test_a_loop_is_a_function_that_calls_itself():
    from torch._higher_order_ops import while_loop

    def function(x):
        first = torch.tensor(0)
        return while_loop(lambda n, _: n < 5, lambda n, x: (n + 1, x * 1.5 - 1), (first, x))

    session = irviz.load(calling(function), inputs=X)
    assert isinstance(session.current.module["while_loop"].body.body, ir.Var)
    count, _ = check(session).outputs
    assert count == 5


def test_a_choice_is_an_if():
    def function(x):
        return torch.cond(x.sum() > 3, lambda x: x.relu(), lambda x: torch.erfinv(x / 2), (x,))

    session = opened(function, X)
    check(session)
    check(session.with_inputs(X.numpy() + 1))


def test_an_operator_of_another_library_is_drawn_only():
    with torch.library._scoped_library("irviz_tests", "DEF") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
        with pytest.warns(UserWarning, match="can be drawn, but not run"):
            session = opened(lambda x: torch.ops.irviz_tests.twice(x), X)
    assert session.draw().svg
    with pytest.raises(
        RunError, match=r"calls 'torch\.irviz_tests\.twice\.default', which nothing"
    ):
        session.run()

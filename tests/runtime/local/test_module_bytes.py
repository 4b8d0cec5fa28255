"""A module travels to the worker without the constants that the worker can map."""

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import relax

from irviz import Session
from irviz.runtime import build_module
from irviz.runtime import run as run_in_worker
from irviz.runtime.module_bytes import pack_module, unpack_module
from irviz.worker import shared_arrays

N = 600
WEIGHTS = {"w": np.arange(N * N, dtype="float32").reshape(N, N), "b": np.ones(N, "float32")}
X = np.full((1, N), 1 / N, "float32")


def network():
    builder = relax.BlockBuilder()
    shapes = {"x": (1, N), "w": (N, N), "b": (N,)}
    x, w, b = (
        relax.Var(name, relax.TensorType(shape, "float32")) for name, shape in shapes.items()
    )
    with builder.function("main", [x, w, b]):
        product = builder.emit(relax.op.matmul(x, w))
        again = builder.emit(relax.op.matmul(product, w))
        builder.emit_func_output(builder.emit(relax.op.add(again, b)))
    return builder.get()


@pytest.fixture
def session():
    return Session(network(), params=WEIGHTS, inputs=X)


def expected():
    return X @ WEIGHTS["w"] @ WEIGHTS["w"] + WEIGHTS["b"]


@pytest.mark.worker
def test_bound_weights_stay_behind_and_come_back_equal(session):
    mod = session.bind().current.module
    packed = pack_module(mod)
    assert len(packed) < 50_000 < WEIGHTS["w"].nbytes < len(pack_module(mod, whole=True))
    for one in (packed, pack_module(mod, whole=True)):
        assert tvm_ffi.structural_equal(unpack_module(one), mod)


@pytest.mark.worker
def test_text_of_a_module_that_looks_like_a_place_stays_text(session):
    mod = session.bind().current.module
    attrs = {"note": "irviz constant 0"}
    mod = tvm.IRModule(dict(mod.functions.items()), attrs=tvm.ir.make_node("ir.DictAttrs", **attrs))
    assert tvm_ffi.structural_equal(unpack_module(pack_module(mod)), mod)


@pytest.mark.worker
@pytest.mark.build
def test_a_run_is_right_wherever_the_weights_are(session):
    bound = session.bind()
    for one in (session, bound, bound.apply("LegalizeOps"), bound.with_run_config(isolate=False)):
        np.testing.assert_allclose(one.run().outputs[0][0], expected(), rtol=1e-4)


@pytest.mark.worker
@pytest.mark.build
def test_where_the_system_hides_the_memory_of_processes_weights_are_sent(session, monkeypatch):
    def refused(*_):
        raise shared_arrays.UnsharedError("no")

    wholes, real = [], run_in_worker.pack_module
    monkeypatch.setattr(
        run_in_worker,
        "pack_module",
        lambda mod, *, whole: (wholes.append(whole), real(mod, whole=whole))[1],
    )
    monkeypatch.setattr(shared_arrays, "_attached", refused)
    for one in (session, session.bind(), session.bind().apply("LegalizeOps")):
        np.testing.assert_allclose(one.run().outputs[0][0], expected(), rtol=1e-4)
    assert wholes == [False, True] * 3


@pytest.mark.build
def test_large_constants_are_released_with_what_was_built(session):
    from irviz.runtime.vm import LocalModule

    before = dict(build_module._constants)
    built = LocalModule.build(session.bind().current.module, "llvm", None)
    assert len(build_module._constants) == len(before) + 1  # the matrix, once for its two uses
    for _ in range(2):
        found = built.call("main", built.copy_arguments([X]))[0]
        np.testing.assert_allclose(found[0], expected(), rtol=1e-4)
    del built
    assert build_module._constants == before


@pytest.mark.worker
@pytest.mark.build
def test_a_part_of_shared_memory_that_is_not_aligned_is_copied(session):
    weights = session.call_inputs.params["w"]
    x = weights[1:2]  # 2,400 bytes behind the beginning
    assert x.ctypes.data % 64
    found = session.run(x).outputs[0][0]
    np.testing.assert_allclose(found, x @ weights @ weights + WEIGHTS["b"], rtol=1e-4)

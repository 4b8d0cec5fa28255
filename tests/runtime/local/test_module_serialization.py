"""A module travels to the worker without the constants that the worker can map."""

import gc
import weakref

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import relax

from irviz import Session
from irviz.runtime.build_module import build_relax, release_constants
from irviz.runtime.module_serialization import pack_module, unpack_module
from irviz.worker import shared_arrays
from irviz.worker.supervisor import RUNS

N = 600
WEIGHTS = {"w": np.arange(N * N, dtype="float32").reshape(N, N), "b": np.ones(N, "float32")}
X = np.full((1, N), 1 / N, "float32")


def network(matrix=None):
    """Return a function that uses a weight twice, which is a constant if it is given."""
    builder = relax.BlockBuilder()
    shapes = {"x": (1, N), "w": (N, N), "b": (N,)}
    x, w, b = (
        relax.Var(name, relax.TensorType(shape, "float32")) for name, shape in shapes.items()
    )
    weight = w if matrix is None else relax.const(tvm.runtime.from_dlpack(matrix))
    with builder.function("main", [x, w, b] if matrix is None else [x, b]):
        product = builder.emit(relax.op.matmul(x, weight))
        again = builder.emit(relax.op.matmul(product, weight))
        builder.emit_func_output(builder.emit(relax.op.add(again, b)))
    return builder.get()


def aligned_copy(array):
    """Return a copy in memory of its own, which TVM can use as it is."""
    memory = np.empty(array.nbytes + 64, "uint8")
    start = -memory.ctypes.data % 64
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


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


@pytest.fixture
def refusals(tmp_path):
    """Hide the memory of processes from the worker; return the file that says how often."""
    RUNS.stop()
    file = tmp_path / "refusals"
    file.touch()
    RUNS.call(hide_memory, file)
    yield file
    RUNS.stop()


def hide_memory(file):
    """Let no memory of another process be mapped in this process and its forks."""

    def refuse(*_):
        with file.open("a") as log:
            log.write("no")
        raise shared_arrays.UnsharedError("no")

    shared_arrays.Place.open = refuse


@pytest.mark.worker
@pytest.mark.build
def test_where_the_system_hides_the_memory_of_processes_weights_are_sent(session, refusals):
    for one in (session, session.bind(), session.bind().apply("LegalizeOps")):
        before = refusals.stat().st_size
        np.testing.assert_allclose(one.run().outputs[0][0], expected(), rtol=1e-4)
        assert refusals.stat().st_size > before


@pytest.mark.build
def test_large_constants_are_released_with_what_was_built():
    from irviz.runtime.local_vm import LocalModule
    from irviz.runtime.run_config import RunConfig

    matrix = aligned_copy(WEIGHTS["w"])
    mod, held = network(matrix), weakref.ref(matrix.base)
    del matrix
    built = LocalModule.build(mod, RunConfig(), None)
    del mod
    for _ in range(2):
        found = built.call("main", built.copy_arguments([X, WEIGHTS["b"]]))[0]
        np.testing.assert_allclose(found[0], expected(), rtol=1e-4)
    assert held() is not None
    del built
    gc.collect()
    assert held() is None


@pytest.mark.build
def test_a_large_constant_is_kept_once_for_all_its_uses():
    mod = network(aligned_copy(WEIGHTS["w"]))
    built = build_relax(relax.transform.LegalizeOps()(mod), tvm.target.Target("llvm"))
    assert len(built.constants) == 1
    release_constants(built.constants)


@pytest.mark.worker
@pytest.mark.build
def test_a_part_of_shared_memory_that_is_not_aligned_is_copied(session):
    weights = session.call_inputs.params["w"]
    x = weights[1:2]  # 2,400 bytes behind the beginning
    assert x.ctypes.data % 64
    found = session.run(x).outputs[0][0]
    np.testing.assert_allclose(found, x @ weights @ weights + WEIGHTS["b"], rtol=1e-4)

# ruff: noqa: N803, N805, N812
"""Kernels are compiled once, and what is run is always what the module says."""

import contextlib
import os
import pickle
import platform
import shutil
import sys

import numpy as np
import pytest
import tvm
import tvm_ffi
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import ir, relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T
from tvm.support import cc

from irviz.errors import RunError
from irviz.runtime import build_module, kernel_cache
from irviz.runtime.kernel_cache import kernel_store
from irviz.runtime.local_vm import LocalModule
from irviz.runtime.run_config import RunConfig

pytestmark = pytest.mark.build

X = np.linspace(-1, 1, 16, dtype="float32").reshape(4, 4)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Let no kernel be known, and return the folder that they are kept in."""
    monkeypatch.setenv("IRVIZ_KERNELS", str(tmp_path / "kernels"))
    kernel_cache.forget_loaded_kernels()
    return tmp_path / "kernels"


@pytest.fixture
def compilations(monkeypatch):
    """Return the names of the PrimFuncs that TVM has compiled since."""
    names, real = [], tvm.tirx.build

    def build(mod, *rest, **named):
        names.extend(gvar.name_hint for gvar in mod.functions)
        return real(mod, *rest, **named)

    monkeypatch.setattr(tvm.tirx, "build", build)
    return names


def network(*operators):
    """Return a module that applies operators to x one after the other."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([4, 4], "float32"))
    with builder.function("main", [x]):
        value = x
        for operator in operators:
            value = builder.emit(operator(value))
        builder.emit_func_output(value)
    return builder.get()


def outputs(mod, *arguments, function="main"):
    """Return what a module gives."""
    built = LocalModule.build(mod, RunConfig(), None)
    return built.call(function, built.copy_arguments(arguments or [X]))[0]


def outputs_of_tvm(mod, *arguments):
    """Return what TVM alone gives."""
    machine = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    value = machine["main"](*map(tvm.runtime.tensor, arguments or [X]))
    return (
        [value.numpy()] if isinstance(value, tvm.runtime.Tensor) else [one.numpy() for one in value]
    )


def same(first, second):
    return all(map(np.array_equal, first, second, [True] * len(first)))


THREE = (relax.op.tanh, relax.op.exp, relax.op.abs)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Return a folder with the kernels of two networks, and what the first gives."""
    folder = tmp_path_factory.mktemp("kept") / "kernels"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IRVIZ_KERNELS", str(folder))
        kernel_cache.forget_loaded_kernels()
        wanted = outputs(network(*THREE))
        outputs(network(relax.op.negative, relax.op.sqrt))
    return folder, wanted


def test_a_module_is_compiled_once(compilations):
    first = outputs(network(*THREE))
    assert len(compilations) == 3
    assert same(outputs(network(*THREE)), first)
    assert len(compilations) == 3


def test_where_one_kernel_changed_one_kernel_is_compiled(compilations):
    outputs(network(*THREE))
    compilations.clear()
    changed = network(relax.op.tanh, relax.op.negative, relax.op.abs)
    assert same(outputs(changed), outputs_of_tvm(changed))
    assert len([name for name in compilations if name.startswith("irviz_")]) == 1


def test_what_another_process_compiled_is_loaded(kept, folder, compilations):
    shutil.copytree(kept[0], folder)
    assert same(outputs(network(*THREE)), kept[1])
    assert not compilations


def test_a_kernel_is_known_by_what_it_computes_and_not_by_its_name(compilations):
    mod = relax.transform.LegalizeOps()(network(relax.op.tanh))
    gvar = mod.get_global_var("tir_tanh")
    function = mod[gvar].with_attr("global_symbol", "another")
    outputs(mod)
    compilations.clear()
    prim = tvm.IRModule({"another": function})
    built = LocalModule.build(prim, RunConfig(), [1])
    out = built.call("another", built.copy_arguments([X, np.zeros_like(X)]))[0]
    np.testing.assert_allclose(out[0], np.tanh(X), rtol=1e-5)
    assert not compilations


def test_kernels_of_one_name_in_two_modules_are_not_confused():
    def scaled(by):
        @I.ir_module
        class Scaled:
            @T.prim_func(private=True, s_tir=True)
            def scale(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
                for i, j in T.grid(4, 4):
                    with T.sblock("B"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        B[vi, vj] = A[vi, vj] * T.float32(by)

            @R.function
            def main(x: R.Tensor((4, 4), "float32")):
                cls = Scaled
                return R.call_tir(cls.scale, (x,), R.Tensor((4, 4), "float32"))

        return Scaled

    for _ in range(2):
        for by in (2.0, 3.0):
            assert same(outputs(scaled(by)), [X * np.float32(by)])


@pytest.mark.parametrize("damage", ["changed", "cut", "empty", "deleted", "exchanged", "no key"])
def test_a_damaged_folder_changes_no_result(kept, folder, compilations, damage):
    sound, wanted = kept
    shutil.copytree(sound, folder)
    libraries, keys = sorted(folder.glob("*.so")), sorted(folder.glob("*.key"))
    contents = [path.read_bytes() for path in libraries]
    for path, own, other in zip(libraries, contents, [*contents[1:], contents[0]], strict=True):
        made = {"changed": own[:-99] + b"x" + own[-98:], "cut": own[:-99], "empty": b""}
        path.write_bytes({**made, "exchanged": other}.get(damage, own))
        if damage == "deleted":
            path.unlink()
    names = [path.read_text() for path in keys]
    for path, name in zip(keys, [*names[1:], names[0]], strict=True):
        if damage == "no key":
            path.write_text(name)  # of a library that is sound and has other kernels
    assert same(outputs(network(*THREE)), wanted)
    assert compilations


@pytest.mark.parametrize("change", ["of TVM", "of its FFI", "of the processor"])
def test_another_version_of_tvm_or_another_processor_finds_nothing(
    kept, folder, compilations, monkeypatch, change
):
    found, wanted = kept
    shutil.copytree(found, folder)
    if change == "of the processor":
        monkeypatch.setattr(platform, "machine", lambda: "another")
    else:
        monkeypatch.setattr(tvm if change == "of TVM" else tvm_ffi, "__version__", "0.28")
    assert same(outputs(network(*THREE)), wanted)
    assert len(compilations) == 3


def test_another_target_finds_nothing(compilations):
    mod = network(*THREE)
    outputs(mod)
    compilations.clear()
    built = LocalModule.build(mod, RunConfig(target='{"kind": "llvm", "opt-level": 1}'), None)
    assert len(compilations) == 3
    assert same(built.call("main", built.copy_arguments([X]))[0], outputs(mod))


def test_other_settings_of_passes_are_obeyed():
    mod = network(*THREE)
    outputs(mod)
    with tvm.transform.PassContext(config={"tirx.disable_vectorize": True}):
        assert not kernel_cache.can_be_kept()
        assert same(outputs(mod), outputs_of_tvm(mod))
    assert kernel_cache.can_be_kept()


@pytest.mark.parametrize("lacks", ["compiler", "folder"])
def test_kernels_are_kept_without_a_c_compiler_and_without_a_folder(
    compilations, monkeypatch, lacks
):
    if lacks == "compiler":
        monkeypatch.setattr(cc, "get_cc", lambda: None)
    else:
        monkeypatch.setenv("IRVIZ_KERNELS", "")
    wanted = outputs_of_tvm(network(*THREE))
    compilations.clear()
    assert same(outputs(network(*THREE)), wanted)
    assert same(outputs(network(*THREE)), wanted)
    assert len(compilations) == 3
    kernel_cache.forget_loaded_kernels()
    assert same(outputs(network(*THREE)), wanted)
    assert len(compilations) == (3 if lacks == "compiler" else 6)


@I.ir_module
class Calling:
    """Kernels that call others: by name, and as functions of the module."""

    @T.prim_func(s_tir=True)
    def called(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
        T.func_attr({"global_symbol": "called"})
        for i, j in T.grid(4, 4):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)

    @T.prim_func(s_tir=True)
    def packed(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
        T.func_attr({"global_symbol": "packed"})
        T.evaluate(T.call_packed("irviz.test.note", 1))
        for i, j in T.grid(4, 4):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)

    @R.function
    def main(x: R.Tensor((4, 4), "float32")):
        cls = Calling
        a = R.call_dps_packed("called", (x,), R.Tensor((4, 4), "float32"))
        return R.call_tir(cls.packed, (a,), R.Tensor((4, 4), "float32"))


def test_kernels_that_are_called_by_name_or_call_by_name_work():
    for _ in range(2):  # what is registered is looked up anew in each build
        noted = []
        tvm.register_global_func("irviz.test.note", noted.append, override=True)
        assert same(outputs(Calling), [(X + 1) * 2])
        assert noted == [1]


def test_a_kernel_that_relax_calls_by_its_name_is_compiled_once(compilations):
    tvm.register_global_func("irviz.test.note", lambda _: None, override=True)
    for _ in range(2):
        outputs(Calling)
    assert len([name for name in compilations if name.startswith("irviz_")]) == 1
    assert len([name for name in compilations if name == "packed"]) == 2


def test_an_error_of_a_kernel_names_it_as_the_module_does():
    mod = relax.transform.LegalizeOps()(network(relax.op.tanh))
    function = mod["tir_tanh"].with_attr("global_symbol", "tanh")
    built = LocalModule.build(ir.IRModule({"tanh": function}), RunConfig(), [1])
    with pytest.raises(RunError, match="tanh") as caught:
        built.call("tanh", built.copy_arguments([X[:2], X]))
    assert "irviz_" not in str(caught.value)


def test_a_kernel_that_cannot_be_compiled_is_named(monkeypatch):
    mod = network(*THREE)
    real = tvm.tirx.build

    def build(mod, *rest, **named):
        if any("exp" in str(one.script()) for one in mod.functions.values()):
            raise ValueError("no such instruction")
        return real(mod, *rest, **named)

    monkeypatch.setattr(tvm.tirx, "build", build)
    with pytest.raises(
        RunError, match="the PrimFunc 'tir_exp' could not be built: ValueError: no such"
    ):
        outputs(mod)


def test_progress_is_counted_in_kernels(told, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    outputs(network(*THREE))
    first, last = told()  # two are compiled at once, one of them alone
    assert first in ("building kernels: 1 of 3", "building kernels: 2 of 3")
    assert last == "building kernels: 3 of 3"


def test_one_call_forgets_all_kernels(folder, compilations):
    outputs(network(*THREE))
    kernel_cache.forget_kernels()
    assert not list(folder.iterdir())
    compilations.clear()
    outputs(network(*THREE))
    assert len(compilations) == 3


@given(seed=st.integers(0, 10_000))
@settings(max_examples=2)
def test_a_module_gives_the_same_cold_warm_from_disk_and_by_tvm_alone(diff_by_values, seed):
    mod = diff_by_values.random_operators(seed, 6)
    arguments = [
        np.random.default_rng(seed).standard_normal(tuple(map(int, one.ty.shape)), "float32")
        for one in mod["main"].params
    ]
    wanted = outputs_of_tvm(mod, *arguments)
    for forget in (
        kernel_cache.forget_loaded_kernels,
        lambda: None,
        kernel_cache.forget_kernels,
    ):
        assert same(outputs(mod, *arguments), wanted)
        with contextlib.suppress(KeyError):
            forget()
    with kernel_store() as store:
        assert store is not None
    assert build_module.can_be_kept()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="renameat2 is Linux's")
def test_a_planted_kernel_is_not_run_while_folders_are_exchanged(
    exchanged_folders, tmp_path, monkeypatch
):
    """bench/exchanged_folders.py does the same with two users and for longer."""
    own, planted = tmp_path / "own" / "kernels", tmp_path / "planted" / "kernels"
    monkeypatch.setenv("IRVIZ_KERNELS", str(own))
    planted.parent.mkdir(mode=0o700)
    exchanged_folders.plant(planted)
    planted.chmod(0o700)
    monkeypatch.setenv("IRVIZ_KERNELS", str(planted))
    assert exchanged_folders.doubled() == "triples"  # a control: as the user's own it is run
    planted.chmod(0o770)  # but others could have written to it
    monkeypatch.setenv("IRVIZ_KERNELS", str(own))
    with exchanged_folders.exchanging(own.parent, planted.parent) as exchanges:
        assert {exchanged_folders.doubled() for _ in range(40)} == {"doubles"}
        done, failed = exchanges.stdout.readline().split()
    assert (int(done), int(failed)) == (1000, 0)


def test_the_error_of_a_kernel_reaches_another_process():
    found = pickle.loads(pickle.dumps(kernel_cache.KernelError("it could not be built", "exp")))
    assert (str(found), found.name) == ("it could not be built", "exp")

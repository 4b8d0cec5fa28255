# ruff: noqa: N803, N805, N812
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""Python functions that a module calls travel to where it runs, and what they print comes back."""

import ctypes
import functools
import importlib
import inspect
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import cloudpickle
import numpy as np
import pytest
import tvm
import tvm.relax
import tvm.s_tir
import tvm_ffi
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

from irviz.errors import RunError
from irviz.runtime.module_serialization import python_callees
from irviz.runtime.registered_functions import python_function
from irviz.runtime.run import CallInputs, RunConfig, run
from irviz.worker.supervisor import RUNS

pytestmark = pytest.mark.worker

ROOT = Path(__file__).parents[3]
X = np.array([1, 2], "float32")
STATE = {"factor": 2.0}


class Callable:
    """Something that can be called, in several ways."""

    def __init__(self, factor=3.0):
        self.factor = factor

    def __call__(self, x, out):
        """Write a multiple."""
        scaled(self.factor, x, out)

    def method(self, x, out):
        scaled(self.factor, x, out)

    @staticmethod
    def static(x, out):
        scaled(5.0, x, out)


def scaled(factor, x, out):
    np.multiply(np.from_dlpack(x), factor, out=np.from_dlpack(out))


def of_its_module(x, out):
    scaled(STATE["factor"], x, out)


@pytest.fixture
def registered():
    """Return what registers a function for a test, and takes it away afterwards."""
    names = []

    def register(name, function):
        tvm.register_global_func(name, function, override=True)
        names.append(name)
        return name

    yield register
    for name in names:
        tvm_ffi.registry.remove_global_func(name)


@functools.lru_cache
def calling(name):
    """Return the module that calls a function by its name."""
    type_ = R.Tensor((2,), "float32")
    x = relax.Var("x", type_)
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        call = relax.call_dps_packed(name, relax.Tuple([x]), relax.TensorType([2], "float32"))
        builder.emit_func_output(builder.emit(call))
    return builder.get()


def given(name, **place):
    return (
        run(calling(name), inputs=CallInputs(X), config=RunConfig(**place)).outputs[0][0].tolist()
    )


def test_tvms_own_functions_are_known_by_name_alone():
    assert tvm.get_global_func("rpc.test.addone") is not None
    assert python_function("rpc.test.addone") is None
    assert python_function("test.callees.nowhere") is None


def test_a_function_is_known_in_each_way_to_register_it(registered):
    def function():
        """Do nothing."""

    ways = (
        lambda name: tvm.register_global_func(name, function),
        lambda name: tvm_ffi.register_global_func(name)(function),
        lambda name: tvm_ffi.registry.register_global_func(name, override=True)(function),
        lambda name: registered(name, tvm.get_global_func("test.callees.way0")),
    )
    for number, way in enumerate(ways):
        way(name := f"test.callees.way{number}")
        assert python_function(name) is function
    assert tvm.register_global_func(function)() is None
    assert python_function("function") is function


EARLY = """
import tvm
@tvm.register_global_func("test.callees.early")
def early(): pass
from irviz.runtime.registered_functions import python_function
print(python_function("test.callees.early").__name__)
"""


def test_a_function_that_is_registered_before_irviz_is_imported_is_known(tmp_path):
    """TVM calls the entry points of installed packages; this installs irviz's own."""
    project = (ROOT / "pyproject.toml").read_text()
    entry = re.search(
        r'^\[project\.entry-points\."tvm\.backends"\]\nirviz = "(.+)"$', project, re.M
    )
    info = tmp_path / "irviz-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: irviz\nVersion: 0\n")
    (info / "entry_points.txt").write_text(f"[tvm.backends]\nirviz = {entry[1]}\n")
    told = subprocess.run(
        [sys.executable, "-c", EARLY],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (told.stdout, told.stderr) == ("early\n", "")


def test_a_function_that_irviz_did_not_see_says_what_to_do():
    unseen = inspect.unwrap(tvm.register_global_func)
    unseen("test.callees.unseen", functools.partial(scaled, 2.0))
    with pytest.raises(RunError, match="register a function of that name after `import irviz`"):
        given("test.callees.unseen")
    assert given("test.callees.unseen", isolate=False) == [2, 4]


@pytest.mark.parametrize(
    ("function", "factor"),
    [
        (lambda x, out: scaled(7.0, x, out), 7),
        (Callable(), 3),
        (Callable(4.0).method, 4),
        (Callable.static, 5),
        (functools.partial(scaled, 6.0), 6),
        (of_its_module, 2),
    ],
)
def test_whatever_can_be_called_is_found_and_travels(registered, function, factor):
    name = registered("test.callees.any", function)
    assert python_function(name) == function
    assert given(name) == [factor, 2 * factor]


def test_the_function_that_is_registered_now_is_called(registered):
    name = registered("test.callees.again", functools.partial(scaled, 2.0))
    assert given(name) == [2, 4]
    registered(name, functools.partial(scaled, 3.0))
    assert given(name) == [3, 6]
    tvm_ffi.registry.remove_global_func(name)
    assert python_function(name) is None
    with pytest.raises(RunError, match=r"'test\.callees\.again' is not registered any more"):
        given(name)
    registered(name, functools.partial(scaled, 4.0))
    assert given(name) == [4, 8]


def test_a_function_that_others_replace_for_a_while_again_and_again_is_still_known(registered):
    name = registered("test.callees.restored", functools.partial(scaled, 2.0))
    original = tvm.get_global_func(name)
    for factor in range(10):
        registered(name, functools.partial(scaled, float(factor)))
        tvm.register_global_func(name, original, override=True)
    assert given(name) == [2, 4]


def test_what_a_function_reads_of_its_module_is_as_it_is_now(registered, monkeypatch):
    name = registered("test.callees.state", of_its_module)
    assert given(name) == [2, 4]
    monkeypatch.setitem(STATE, "factor", 10.0)
    assert given(name) == [10, 20]


def test_a_function_that_only_a_prim_func_calls_travels(registered, capsys):
    @I.ir_module
    class Inside:
        @T.prim_func(s_tir=True)
        def inner(A: T.Buffer((2,), "float32"), B: T.Buffer((2,), "float32")):
            with T.sblock("all"):
                T.reads(A[0:2])
                T.writes(B[0:2])
                T.call_packed("test.callees.inside", A[0])
                B[0] = A[1]
                B[1] = A[0]

        @R.function
        def main(x: R.Tensor((2,), "float32")):
            cls = Inside
            return R.call_tir(cls.inner, (x,), R.Tensor((2,), "float32"))

    name = registered("test.callees.inside", lambda number: print("called with", number))
    assert list(python_callees(Inside)) == [name]
    assert run(Inside, inputs=CallInputs(X)).outputs[0][0].tolist() == [2, 1]
    assert capsys.readouterr().out == "called with 1.0\n"


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    """Return what writes a module of the reader's own, which no worker finds by itself."""
    RUNS.call(abs, -1)  # it is there before the path is changed
    monkeypatch.syspath_prepend(tmp_path)
    # a file written twice within a second would be taken from its .pyc, as it was the first time
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(text, name="irviz_test_own"):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        importlib.invalidate_caches()
        sys.modules.pop(name, None)
        return importlib.import_module(name)

    yield write
    sys.modules.pop("irviz_test_own", None)
    sys.modules.pop("irviz_test_other", None)


OWN = """
import numpy as np
FACTOR = {factor}
def kernel(x, out):
    np.multiply(np.from_dlpack(x), FACTOR, out=np.from_dlpack(out))
"""
THROUGH = """
import irviz_test_other
def kernel(x, out):
    irviz_test_other.kernel(x, out)
"""


def test_a_module_that_the_worker_cannot_find_is_sent_and_always_as_it_is_now(
    registered, own_module
):
    name = registered("test.callees.own", own_module(OWN.format(factor=8)).kernel)
    assert given(name) == [8, 16]
    registered(name, own_module(OWN.format(factor=9)).kernel)
    assert given(name) == [9, 18]


def test_so_is_a_module_that_such_a_module_uses(registered, own_module):
    before = cloudpickle.list_registry_pickle_by_value()
    own_module(OWN.format(factor=11), "irviz_test_other")
    name = registered("test.callees.through", own_module(THROUGH).kernel)
    assert given(name) == [11, 22]
    assert cloudpickle.list_registry_pickle_by_value() == before


def test_one_that_can_neither_be_sent_nor_found_says_what_to_do(registered, own_module):
    text = OWN.format(factor=1) + "import threading\nLOCK = threading.Lock()\n"
    text += "def locked(x, out):\n    with LOCK:\n        kernel(x, out)\n"
    name = registered("test.callees.locked", own_module(text).locked)
    with pytest.raises(RunError) as caught:
        given(name)
    words = str(caught.value)
    assert words.startswith("'test.callees.locked' cannot be used in the process that runs it: ")
    assert "No module named 'irviz_test_own'" in words
    assert "isolate=False" in words
    assert given(name, isolate=False) == [1, 2]


@pytest.mark.parametrize("kind", ["lock", "file"])
def test_what_cannot_be_sent_is_named_with_advice(registered, tmp_path, kind):
    with (tmp_path / "open").open("w") as file:
        held = threading.Lock() if kind == "lock" else file

        def holds(x, out):
            scaled(1.0 if held else 0.0, x, out)

        name = registered("test.callees.holds", holds)
        with pytest.raises(RunError) as caught:
            given(name)
        words = str(caught.value)
        assert words.startswith("'test.callees.holds' cannot be sent to the process that runs it: ")
        assert "isolate=False, or let it make what it needs when it is called" in words
        assert given(name, isolate=False) == [1, 2]


def test_what_it_prints_is_printed_here_once_it_has_run(registered, capsys):
    def talks(x, out):
        print("from Python: ∀")
        ctypes.CDLL(None).puts(b"from C")
        scaled(2.0, x, out)

    name = registered("test.callees.talks", talks)
    assert given(name) == [2, 4]
    assert sorted(capsys.readouterr().out.splitlines()) == ["from C", "from Python: ∀"]
    given(name)
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_so_is_what_it_printed_before_it_failed(registered, capsys):
    def fails(*_):
        print("on the way out")
        raise ValueError("no more")

    name = registered("test.callees.fails", fails)
    with pytest.raises(RunError, match="no more"):
        given(name)
    assert capsys.readouterr().out == "on the way out\n"


@pytest.mark.parametrize("isolate", [True, False])
def test_what_is_neither_tensor_nor_number_does_not_come_here(registered, isolate):
    class Trap:
        def __reduce__(self):
            return sys.exit, ("it was unpacked",)

    name = registered("test.callees.trap", lambda _: Trap())
    x = relax.Var("x", R.Tensor((2,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        call = relax.call_pure_packed(name, x, ty_args=[relax.ObjectType()])
        builder.emit_func_output(builder.emit(call))
    with pytest.raises(RunError, match="an output is a Trap: give tensors and numbers only"):
        run(builder.get(), inputs=CallInputs(X), config=RunConfig(isolate=isolate))


def test_in_this_process_what_it_raises_is_the_same_error(registered):
    def fails(*_):
        raise ValueError("no more")

    name, words = registered("test.callees.same", fails), []
    for isolate in (True, False):
        with pytest.raises(RunError) as caught:
            given(name, isolate=isolate)
        words.append(str(caught.value))
    assert words[0] == words[1] == "'main' failed as it ran: ValueError: no more"


def test_a_function_that_takes_tvms_name_is_called_and_tvms_own_comes_back(registered):
    before = tvm.get_global_func("rpc.test.addone")
    registered("rpc.test.addone", functools.partial(scaled, 12.0))
    assert given("rpc.test.addone") == [12, 24]
    tvm.register_global_func("rpc.test.addone", before, override=True)
    registered("test.callees.other", functools.partial(scaled, 1.0))
    assert given("test.callees.other") == [1, 2]

"""One function loads every kind of file and model, and refuses others in one sentence."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest
import tvm
from tvm import relax, te
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn.llm.kv_cache import PagedKVCache
from tvm_ffi import structural_equal

import irviz
from irviz.course.mlp import MyModule, MyModuleMixture, MyModuleStatic
from irviz.course.te_functions import matmul_relu
from irviz.errors import LoadError
from irviz.loaders import file_limits
from irviz.loaders.file_limits import FileError, limits_for, read_in_worker
from irviz.loaders.load import is_session_file, load, load_content, read_content, read_path
from irviz.loaders.models import pt2_models
from irviz.worker.responses import exception, packed_call, unpack_answer

pytestmark = pytest.mark.worker

SCRIPT = MyModuleStatic.script()
JSON = tvm.ir.save_json(MyModuleStatic)


def names(module):
    return sorted(gvar.name_hint for gvar in module.functions)


def refusal(what, **options):
    """Return the one sentence that something is refused with."""
    with pytest.raises(LoadError) as caught:
        load(what, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert "Traceback" not in message
    return message


# --- files -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [(SCRIPT, "m.py"), (SCRIPT, "m"), (JSON, "m.json"), (JSON, "m.py")],
)
def test_what_a_file_is_its_content_says_first(tmp_path, text, name):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert structural_equal(load(str(path)).module, MyModuleStatic)


def test_of_a_script_only_the_modules_are_read_and_nothing_is_run(tmp_path):
    telltale = tmp_path / "ran"
    path = tmp_path / "lecture.py"
    body = SCRIPT[SCRIPT.index("@I.ir_module") :]
    path.write_text(
        "import numpy as np\nfrom tvm.script import ir as I, relax as R, tirx as T\n"
        f"open({str(telltale)!r}, 'w').close()\n{body}\nprint(Module.script())\n"
    )
    assert structural_equal(load(path).module, MyModuleStatic)
    assert not telltale.exists()


def test_a_shipped_module_opens_by_its_file():
    file = sys.modules["irviz.course.mlp_static"].__file__
    assert structural_equal(load(file).module, MyModuleStatic)


def test_a_script_of_several_modules_lists_them(tmp_path):
    path = tmp_path / "two.py"
    body = SCRIPT[SCRIPT.index("@I.ir_module") :]
    path.write_text("\n".join(body.replace("Module", name) for name in ("First", "Last")))
    assert refusal(path).endswith("two.py' defines 2 modules: name one of 'First', 'Last'")
    assert structural_equal(load(path, name="Last").module, MyModuleStatic)
    assert "defines no 'C': there is 'First', 'Last'" in refusal(path, name="C")


def test_a_lone_function_of_a_script_is_a_module(tmp_path):
    path = tmp_path / "lone.py"
    path.write_text(matmul_relu(4).script())
    assert names(load(path).module) == ["main"]


def test_what_a_newer_python_wrote_is_read_or_told_how_to_read_it(tmp_path):
    path = tmp_path / "newer.py"
    path.write_text(MyModuleMixture.script(extra_config={"script.use_pep695": True}))
    if sys.version_info >= (3, 12):
        assert structural_equal(load(path).module, MyModuleMixture)
    else:
        assert "line 11, column 16: sizes as type parameters are syntax of Python 3.12: open" in (
            refusal(path)
        )


def test_an_older_dialect_is_upgraded(tmp_path):
    path = tmp_path / "old.py"
    path.write_text(
        "import tvm\nfrom tvm.script import tir as T\n"
        "@tvm.script.ir_module\nclass MyModule:\n    @T.prim_func\n"
        "    def add(A: T.Buffer[(8,), 'float32'], B: T.Buffer[(8,), 'float32']):\n"
        "        for i in range(8):\n            with T.block('B'):\n"
        "                vi = T.axis.spatial(8, i)\n                B[vi] = A[vi] + T.float32(1)\n"
    )
    assert names(load(path).module) == ["add"]


def test_a_file_of_one_module_takes_no_name(tmp_path):
    path = tmp_path / "m.json"
    path.write_text(JSON)
    assert "is TVM's JSON, which holds one module: leave out 'A'" in refusal(path, name="A")


def test_dropped_content_is_opened_as_a_file_is():
    assert structural_equal(load_content(SCRIPT.encode(), "dropped.py").module, MyModuleStatic)


# --- what is in memory -------------------------------------------------------------------------


def test_a_module_is_taken_as_it_is():
    assert load(MyModule).module is MyModule
    session = irviz.load(MyModule, inputs="zeros")
    assert (session.stages[0].module, session.call_inputs.inputs) == (MyModule, "zeros")


def test_a_function_becomes_a_module_under_its_symbol():
    lone = MyModuleStatic["linear0"]
    session = irviz.load(lone)
    assert (session.function, names(session.stages[0].module)) == ("linear0", ["linear0"])
    assert session.run("zeros").outputs[0].shape[-2:] == (1, 128)


def test_a_function_without_a_symbol_is_main():
    bare = matmul_relu(4).without_attr("global_symbol")
    assert names(load(bare).module) == ["main"]
    assert irviz.load(bare).run().outputs[0].shape[-2:] == (4, 4)


def test_a_relax_function_becomes_a_module():
    x = relax.Var("x", relax.TensorType((2, 3), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("twice", [x]):
        builder.emit_func_output(builder.emit(relax.op.add(x, x)))
    session = irviz.load(builder.get()["twice"], inputs=np.ones((2, 3), "float32"))
    assert session.function == "twice"
    assert (session.run().outputs[0] == 2).all()


class Layer(nn.Module):
    def __init__(self):
        self.linear = nn.Linear(4, 3)

    def forward(self, x):
        return nn.op.relu(self.linear(x))


X = np.linspace(-1, 1, 8, dtype="float32").reshape(2, 4)


@pytest.mark.parametrize("given", [X, [X], {"x": X}, {"forward": {"x": X}}])
def test_a_module_of_relax_nn_is_exported_with_the_weights_it_has(given):
    layer, source = Layer(), np.random.default_rng(0)
    weight = source.normal(size=(3, 4)).astype("float32")
    layer.linear.weight.data, layer.linear.bias.data = weight, np.ones(3, "float32")
    session = irviz.load(layer, inputs=given)
    (found,) = session.run().outputs
    np.testing.assert_allclose(found[0], np.maximum(X @ weight.T + 1, 0), rtol=1e-5, atol=1e-5)
    assert session.bind().current.error == ""


def test_a_module_of_relax_nn_may_have_no_weights_yet():
    session = irviz.load(Layer(), inputs={"x": nn.spec.Tensor(["rows", 4], "float32")})
    assert (session.call_inputs.params, session.call_inputs.inputs, session.function) == (
        {},
        None,
        "forward",
    )
    assert session.run().outputs[0].shape[-1] == 3


def test_a_module_of_relax_nn_asks_for_its_sizes():
    assert "Layer has no sizes of its own: give the specs" in refusal(Layer())
    assert "which has no size" in refusal(Layer(), inputs="random")
    assert "2 inputs were given, and Layer.forward takes x" in refusal(Layer(), inputs=[X, X])
    assert "Layer cannot be exported by TVM" in refusal(Layer(), inputs=X[:, :3].copy())


class Decoder(nn.Module):
    """A model as mlc-llm has them: several methods, a paged cache, and specs of its own."""

    def __init__(self):
        self.embedding, self.qkv = nn.Embedding(16, 8), nn.Linear(8, 24, bias=False)

    def embed(self, tokens):
        return self.embedding(tokens)

    def prefill(self, embedded, cache):
        batch, length, _ = embedded.shape
        qkv = nn.op.reshape(self.qkv(embedded), (batch, length, 6, 4))
        return cache.attention_with_fused_qkv(0, qkv, 2, 1.0), cache

    decode = prefill

    def get_default_spec(self):
        modes = {"$": {"param_mode": "packed", "effect_mode": "none"}}
        methods = {"embed": {"tokens": nn.spec.Tensor(["length"], "int32")}, **cached("length")}
        specs = {name: {**one, **modes} for name, one in methods.items()}
        return nn.spec.ModuleSpec.from_raw(specs, self)


def cached(length):
    cache = nn.spec.Object(object_type=PagedKVCache)
    return {
        "prefill": {"embedded": nn.spec.Tensor([1, length, 8], "float32"), "cache": cache},
        "decode": {"embedded": nn.spec.Tensor([1, 1, 8], "float32"), "cache": cache},
    }


@pytest.mark.parametrize("given", [None, Decoder().get_default_spec(), cached("n")])
def test_a_module_of_relax_nn_may_have_several_methods_and_a_paged_cache(given):
    session = irviz.load(Decoder(), inputs=given)
    expected = {"prefill", "decode"} | (set() if isinstance(given, dict) else {"embed"})
    assert set(session.functions) == expected
    for name in session.functions:
        shown = session.select_function(name)
        assert shown.draw().svg
        if name != "embed":
            callees = {node.callee for node in shown.graph().nodes}
            assert "vm.builtin.attention_kv_cache_attention_with_fused_qkv" in callees


def test_a_module_of_relax_nn_without_forward_asks_for_specs_of_its_methods():
    assert "Decoder has no method 'forward': give a dict of specs" in refusal(Decoder(), inputs=X)


def test_params_stand_in_the_place_of_those_that_come_with_it():
    layer = Layer()
    layer.linear.weight.data = layer.linear.bias.data = None
    weights = {"linear.weight": np.zeros((3, 4), "float32"), "linear.bias": np.ones(3, "float32")}
    session = irviz.load(layer, inputs=X, params=weights)
    assert (session.run().outputs[0] == 1).all()


@pytest.mark.parametrize("what", [3, None, object(), [MyModule], te.placeholder((3,))])
def test_what_is_no_model_is_named(what):
    assert refusal(what).endswith("an IRModule, or a model of TVM, torch or ONNX")


def test_a_name_is_for_files():
    assert "'main' names a module of a file" in refusal(MyModule, name="main")


# --- what is no file of these -------------------------------------------------------------------


def test_a_misspelt_name_of_tvmscript_has_a_suggestion(tmp_path):
    path = tmp_path / "m.py"
    path.write_text(SCRIPT.replace("R.call_tir(", "R.calltir(", 1))
    assert refusal(path).endswith("did you mean R.call_tir?")


def test_what_is_no_file_is_a_sentence(tmp_path):
    assert refusal(tmp_path).endswith("is a directory: give the path of a file in it")
    assert refusal(tmp_path / "none").endswith("check its name and permissions")
    assert "embedded null" in refusal("a\0b")
    assert "File name too long" in refusal("x" * 300)
    (tmp_path / "loop").symlink_to("loop")
    assert "Too many levels of symbolic links): check" in refusal(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path / "pipe").endswith(
        "is a device or a pipe: give the path of a regular file"
    )


@pytest.mark.parametrize("text", [SCRIPT, JSON, "x" * 5000])
def test_a_text_in_place_of_a_path_is_a_sentence(text):
    with pytest.raises(
        LoadError, match=r"is a text, .* write it to a \.py file, and give"
    ) as caught:
        irviz.load(text)
    assert len(str(caught.value)) < 250


def test_a_file_that_may_not_be_read_is_a_sentence(tmp_path, monkeypatch):
    def forbidden(path, *_):
        raise PermissionError(13, "Permission denied", str(path))

    path = tmp_path / "m.py"
    path.write_text(SCRIPT)
    monkeypatch.setattr(type(path), "read_bytes", forbidden)  # root may read any file
    with pytest.raises(FileError, match=r"\(Permission denied\): check its name and permissions$"):
        read_path(path, "m.py", "")
    monkeypatch.setattr(type(path), "open", forbidden)
    assert not is_session_file(path)


def test_a_file_with_commands_in_it_runs_none(tmp_path):
    telltale = tmp_path / "ran"
    command = f"__import__('os').system('touch {telltale}') or 128"
    path = tmp_path / "m.py"
    path.write_text(SCRIPT.replace("R.Tensor((1, 784)", f"R.Tensor(({command}, 784)", 1))
    assert "m.py', line " in refusal(path)
    assert not telltale.exists()


# --- limits of time and memory -----------------------------------------------------------------


def test_reading_that_ends_its_process_is_one_sentence():
    with pytest.raises(FileError, match=r"^was not opened: it ended the process that tried it"):
        read_in_worker(os._exit, 1)


def test_reading_that_does_not_end_is_stopped_at_the_limit():
    with pytest.raises(FileError, match=r"^takes longer than 0.3 s to open and was stopped: give"):
        read_in_worker(time.sleep, 100, seconds=0.3)


def test_reading_gets_the_share_of_a_file_in_the_free_memory(monkeypatch):
    monkeypatch.setattr(file_limits, "memory_share", lambda: 1 << 20)
    with pytest.raises(FileError, match=r"^takes more than 1,048,576 bytes of memory to open"):
        read_in_worker(bytes, 1 << 28)


def test_a_file_that_becomes_too_much_is_refused_before_the_caller_gets_it(monkeypatch):
    monkeypatch.setattr(file_limits, "MIN_UNPACKED", 1000)

    def failure_of(content, size, kind=bytes):
        def read():
            with limits_for(size, 1):
                return content

        return unpack_answer(packed_call(read), None, kind)[1]

    assert failure_of(b"0" * 900, 10) is None
    too_large = exception(failure_of(b"0" * 1001, 10))
    assert isinstance(too_large, FileError)
    assert "becomes more than 1,000 bytes, the limit for a file of 10 bytes" in str(too_large)
    assert exception(failure_of(np.zeros(1001, "uint8"), 10, np.ndarray)).args == too_large.args
    assert failure_of(np.zeros(1500, "uint8"), 100, np.ndarray) is None  # twenty times its size
    assert unpack_answer(packed_call(lambda: b"0" * 1001), None, bytes)[1] is None  # of no file


def test_a_long_string_in_an_annotation_does_not_end_the_process(tmp_path):
    """libcst parses such strings, and its parser ends the process when they are nested deeply."""
    path = tmp_path / "m.py"
    path.write_text(SCRIPT.replace('dtype="float32"', f'dtype="{"(" * 3000}"', 1))
    assert "m.py'" in refusal(path)
    assert "m.py'" in refusal(path.rename(tmp_path / "old_m.py"))


# --- extras -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("package", "content", "name"),
    [("torch", b"PK\3\4", "a.pt2"), ("onnx", b"\x08\x07", "a.onnx")],
)
def test_without_a_package_the_error_says_which_extra_to_install(
    monkeypatch, package, content, name
):
    monkeypatch.setattr(pt2_models, "plain_archive", bytes)
    monkeypatch.setitem(sys.modules, package, None)  # so Python finds none
    with pytest.raises(LoadError, match=rf"install irviz\[{package}\]"):
        read_content(content, name)


def test_loading_what_is_no_model_of_theirs_needs_neither_package():
    code = (
        "import sys; sys.modules['torch'] = sys.modules['onnx'] = None\n"
        "from irviz.loaders.load import load\n"
        "from irviz.course.mlp import MyModule\n"
        "assert load(MyModule).module is MyModule\n"
        "try:\n    load(3)\nexcept ValueError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "3, of the type int, is not a model" in done.stdout

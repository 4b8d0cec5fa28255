"""Complete JSON of TVM is read; a damaged file is one sentence and never a crash."""

import json
import os
import re
import sys

import pytest
import tvm
from tvm import tirx
from tvm_ffi import structural_equal

from irviz.course.mlp import MyModuleStatic
from irviz.errors import LoadError
from irviz.ir.function_graph import extract
from irviz.loaders import tvm_json
from irviz.loaders.file_limits import FileError
from irviz.loaders.load import load
from irviz.loaders.tvm_json import module_from_json

pytestmark = pytest.mark.worker

TEXT = tvm.ir.save_json(MyModuleStatic)


@pytest.fixture
def written(tmp_path):
    """Return a function that writes a file and returns its path."""

    def write(content, name="mod.json"):
        path = tmp_path / name
        if isinstance(content, dict):
            content = json.dumps(content)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def load_module(path):
    return load(path).module


def refusal(path):
    """Return the one sentence that a file is refused with."""
    with pytest.raises(LoadError) as caught:
        load_module(path)
    message = str(caught.value)
    assert repr(str(path)) in message
    assert "\n" not in message
    assert "Traceback" not in message
    assert len(message) < 2000 + len(str(path))
    return message


def nodes_of(kind):
    content = json.loads(TEXT)
    return content, [node for node in content["nodes"] if node["type"] == kind]


# --- what is read ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mod.json", "-o é 線"])
def test_a_saved_module_comes_back(written, name):
    path = written(TEXT, name)
    assert structural_equal(load_module(path), MyModuleStatic)


def test_a_module_with_constants_and_several_functions_comes_back(written, modules):
    mod = modules.EveryKind
    loaded = load_module(str(written(tvm.ir.save_json(mod))))
    assert structural_equal(loaded, mod)
    assert extract(loaded) == extract(mod)


def test_a_relative_name_is_meant_from_here(written, monkeypatch):
    monkeypatch.chdir(written(TEXT).parent)
    assert structural_equal(load_module("mod.json"), MyModuleStatic)


def test_nothing_that_lies_beside_the_file_is_run(written, monkeypatch):
    path = written(TEXT)
    monkeypatch.chdir(path.parent)
    written("raise SystemExit('ran')", "tvm.py")
    written("raise SystemExit('ran')", "irviz.py")
    assert structural_equal(load_module(path), MyModuleStatic)


# --- what is refused before TVM sees it --------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[" * 200_000, "it is not JSON"),
        (b"{hello", "it is not JSON (Expecting property name"),
        (b"[]", "it is JSON without TVM's 'nodes' and 'root_index'"),
        (b"null", "it is JSON without"),
        (b'{"nodes": {}, "root_index": 0}', "it is JSON without"),
        (b'{"nodes": []}', "it is JSON without"),
        (TEXT[: len(TEXT) // 2].encode(), "it is not JSON"),
        (TEXT[:-1].encode(), "it is not JSON"),
    ],
)
def test_what_is_no_such_json_says_what_it_is(written, content, words):
    message = refusal(written(content))
    assert f"is not an IRModule in TVM's JSON: {words}" in message
    assert message.endswith("write one with open(path, 'w').write(tvm.ir.save_json(mod))")


def test_a_missing_file_and_a_directory_are_named(tmp_path):
    assert refusal(tmp_path / "none").endswith("check its name and permissions")
    assert refusal(tmp_path).endswith("is a directory: give the path of a file in it")


def test_code_that_would_be_run_with_the_module_is_refused(written):
    code = tvm.get_global_func("runtime.CSourceModuleCreate")("int one = 1;", "c", ["one"], None)
    text = tvm.ir.save_json(MyModuleStatic.with_attr("external_mods", [code]))
    assert "carries compiled or C code" in refusal(written(text))


# --- what TVM cannot read, in a process that may die of it -------------------------------------


def test_what_may_never_end_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(LoadError, match="is a device or a pipe"):
        load_module(tmp_path / "pipe")
    with pytest.raises(LoadError, match="Not a directory"):
        load_module(tmp_path / "pipe" / "mod.json")


def test_an_index_that_leads_out_of_the_file_is_refused(written):
    content, arrays = nodes_of("ffi.Array")
    arrays[-1]["data"][-1] = 10**9
    assert refusal(written(content)).count("invalid node index 1000000000")


def test_a_node_that_holds_itself_is_damage_that_crashes_only_the_trial(written):
    content, arrays = nodes_of("ffi.Array")
    arrays[-1]["data"][-1] = content["nodes"].index(arrays[-1])
    assert "was not opened: it ended the process that tried it" in refusal(written(content))


@pytest.mark.parametrize("root", [-1, "x", 0])
def test_a_root_that_is_no_module_is_refused(written, root):
    refusal(written({**json.loads(TEXT), "root_index": root}))


def test_another_object_of_tvm_is_named(written):
    message = refusal(written(tvm.ir.save_json(MyModuleStatic["main"])))
    assert "it holds a Function, not an IRModule; write one with" in message


def test_a_node_of_an_unknown_type_is_refused(written):
    content, _ = nodes_of("ffi.Array")
    content["nodes"][-1]["type"] = "relax.expr.Nonsense"
    assert re.search("is not an IRModule in TVM's JSON: .*Nonsense", refusal(written(content)))


def test_nodes_that_are_missing_or_moved_are_refused(written):
    content = json.loads(TEXT)
    del content["nodes"][len(content["nodes"]) // 2]
    refusal(written(content))


def test_a_field_that_is_missing_is_refused(written):
    content, calls = nodes_of("ir.Call")
    del calls[-1]["data"]["args"]
    assert "args" in refusal(written(content))


def test_a_variable_where_a_block_should_be_is_refused(written):
    content, blocks = nodes_of("relax.expr.DataflowBlock")
    (variable, *_) = (i for i, n in enumerate(content["nodes"]) if n["type"] == "ir.Var")
    blocks[0]["data"]["bindings"] = variable
    refusal(written(content))


def test_what_an_older_tvm_wrote_is_read(written):
    content, variables = nodes_of("ir.Var")
    for node in variables:
        node["type"] = "relax.expr.Var"
        node["data"]["name_hint"] = node["data"].pop("name")
    content["metadata"]["tvm_version"] = "0.26.0"
    assert structural_equal(load_module(written(content)), MyModuleStatic)


# --- what is far larger than its file ----------------------------------------------------------


def doubled(times):
    """Return the JSON of a PrimFunc with a sum whose two sides are one object, again and again."""
    size = tirx.Var("n", "int64")
    total = size
    for _ in range(times):
        total = tirx.Add(total, total)
    return tvm.ir.save_json(tvm.IRModule({"main": tirx.PrimFunc([size], tirx.Evaluate(total))}))


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux only")
def test_what_is_far_larger_when_it_is_printed_is_refused_by_its_memory(written, monkeypatch):
    assert load_module(written(doubled(5))), "it is small when it is printed"
    monkeypatch.setattr(tvm_json, "DRAWING_BYTES", 1 << 26)
    text = doubled(19)
    assert len(text) < 4000
    with pytest.raises(FileError, match=r"takes more than 67,108,864 bytes of memory to draw"):
        module_from_json(text, "a.json")
    monkeypatch.setattr(tvm_json, "DRAWING_BYTES", 1 << 30)
    monkeypatch.setattr(tvm_json, "DRAWING_SECONDS", 0.0)
    with pytest.raises(FileError, match=r" s to draw, and at most 0 s are admitted: give"):
        module_from_json(doubled(12), "a.json")

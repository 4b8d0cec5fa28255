"""Each file without a module is refused in one sentence with its kind, the reason and a way out."""

import bz2
import gzip
import io
import json
import lzma
import os
import pickle
import re
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pytest

import irviz
from irviz.cli.main import main
from irviz.course.mlp import MyModuleStatic
from irviz.errors import LoadError
from irviz.loaders.load import READABLE, load_content

onnx = pytest.importorskip("onnx", reason="this needs onnx: pip install 'irviz[onnx]'")

pytestmark = pytest.mark.worker

TELLTALE = Path(tempfile.gettempdir(), f"irviz-ran-{os.getpid()}")
SCRIPT = MyModuleStatic.script()


class Runs:
    """An object whose pickle leaves a file where it is read."""

    def __reduce__(self):
        return os.mkdir, (str(TELLTALE),)


def zipped(*names, **options):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name in names:
            archive.writestr(name, options.get("content", b"x"))
    return file.getvalue()


def notebook(*cells):
    made = [{"cell_type": "code", "source": cell} for cell in cells]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "cells": made}).encode()


def model(operator="Relu", domain="", weights="", **fields):
    """Return a model of one node, which may have weights in another file."""
    x, y = (onnx.helper.make_tensor_value_info(name, 1, [2]) for name in "xy")
    given = ["x", "w"] if weights else ["x"]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(operator, given, ["y"], domain=domain)], "g", [x], [y]
    )
    if weights:
        tensor = graph.initializer.add(name="w", data_type=1, dims=[2], data_location=1)
        tensor.external_data.add(key="location", value=weights)
    made = onnx.helper.make_model(graph, **fields)
    made.opset_import.add(domain="of.mine", version=1)
    return made


MODEL = model().SerializeToString()
TAR = io.BytesIO()
with tarfile.open(fileobj=TAR, mode="w") as archive:
    archive.addfile(tarfile.TarInfo("lib0.o"))
INDEX = b'{"irviz session": 99, "irviz": "9.0"}'
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 132\n"
READ = f"give {READABLE}"
EXPORT = "save it again with torch.export.save("
AS_ONNX = "give the model itself, as ONNX or .pt2"
WEIGHTS = f"which holds weights and no graph: {AS_ONNX}, and the weights as params="
BY_TF = "convert it to ONNX with python -m tf2onnx.convert"
STABLEHLO = "is MLIR: import StableHLO with tvm.relax.frontend.stablehlo.from_stablehlo, and give"
UNREAD = "and no IRModule can be read from it: give the module it is made of"
COMPILED = f"is compiled, {UNREAD}"
LIBRARY = b"\x7fELF\x02\0__tvm_ffi_relu\0__tvm_ffi__library_bin\0__tvm_ffi_add\0"
TVM_JSON = "it is JSON without TVM's 'nodes' and 'root_index'; write one with"
NO_MODULE = "defines no module: write `@I.ir_module` above a class of functions"
UNPACK = "unpack it, and give the model that is in it"

WRONG = {
    # Weights, arrays and pickles.
    "weights.pkl": (pickle.dumps(Runs()), "is a pickle, which may run anything as it is read"),
    "old.pt": (b"\x80\x02}q\x00.", "was not read: save the model with torch.export.save("),
    "state_dict.pt": (zipped("m/data.pkl", content=pickle.dumps(Runs())), EXPORT),
    "whole.pth": (zipped("m/data.pkl", "m/data/0"), "is a pickle from torch.save, which may run"),
    "script.pt": (
        zipped("m/data.pkl", "m/code/m.py"),
        "is TorchScript, which is code, not a torch",
    ),
    "m.safetensors": (b"\x80" + bytes(7) + b'{"w":', f"is .safetensors, {WEIGHTS}"),
    "long.safetensors": (b"\x91" + bytes(7) + b'{"w":', f"is .safetensors, {WEIGHTS}"),
    "m.safetensors.index.json": (b'{"weight_map": {}}', "lists the files of weights, and has no"),
    "index.json": (b'{"metadata": {"size": 8},\n"weight_map": {}}', f"has no graph: {AS_ONNX}"),
    "m.gguf": (b"GGUF\x03\0\0\0", f"is GGUF, {WEIGHTS}"),
    "ggml.bin": (b"lmgg\x01\0\0\0", f"is GGML, {WEIGHTS}"),
    "m.params": (bytes.fromhex("b79c04054f8de5f7"), "is .params of TVM, which holds weights"),
    "m.npz": (zipped("w0.npy"), "is an .npz, which holds arrays: give it as params= or inputs="),
    "m.npy": (b"\x93NUMPY\x01", "is an array: give it as params or inputs, beside a module"),
    "m.h5": (b"\x89HDF\r\n", f"is HDF5, which holds arrays: {AS_ONNX}"),
    "m.ckpt.index": (bytes(8), "is not a kind of file that irviz reads: it is not text in UTF-8"),
    # Models of other frameworks.
    "m.keras": (zipped("metadata.json", "config.json"), f"is a Keras model: {BY_TF}"),
    "saved.zip": (zipped("m/saved_model.pb"), f"is a SavedModel of TensorFlow: {BY_TF}"),
    "saved_model.pb": (b"\x08\x01\x12", f"is a graph of TensorFlow: {BY_TF}"),
    "frozen.pb": (b"\x0a\x10\x0a\x01x", f"is a graph of TensorFlow: {BY_TF}"),
    "m.pbtxt": (b'node {\n name: "x"\n}', f"is a graph of TensorFlow: {BY_TF}"),
    "m.tflite": (b"\x1c\0\0\0TFL3", "is not a complete TensorFlow Lite model (unpack_from"),
    "text.tflite": (b"hello", "is not a TensorFlow Lite model: TFL3 is not at its byte 4; write"),
    "m.mlmodel": (b"\x08\x04\x12", f"is a Core ML model: {AS_ONNX}"),
    "m.mlpackage.zip": (zipped("m/Manifest.json"), f"is a Core ML package: {AS_ONNX}"),
    "m.mlir": (b"module {", STABLEHLO),
    "mlir.txt": (b"// of jax\n#loc = loc(unknown)\nmodule @jit attributes {", STABLEHLO),
    "m.mlirbc": (b"ML\xefR\x0d", STABLEHLO),
    "hlo.txt": (b"HloModule f\n\nENTRY main {\n}\n", f"is HLO: {AS_ONNX}, or StableHLO as an"),
    "m.xml": (b'<?xml version="1.0"?>\n<net name="g">', f"is an OpenVINO model: {AS_ONNX}"),
    "m.pte": (b"\x1c\0\0\0ET12", f"is an ExecuTorch program, which is lowered: {AS_ONNX}"),
    "m.ort": (b"\x1c\0\0\0ORTM", f"is a model in the format of ONNX Runtime: {AS_ONNX}"),
    "m.nnef": (b"version 1.0;\ngraph g(x) -> (y) {}", f"is NNEF: {AS_ONNX}"),
    "m.pdmodel": (b"\x0a\x04\x08\0", "is a Paddle model: convert it to ONNX with paddle2onnx"),
    "m.prototxt": (b'name: "LeNet"\nlayer {\n}', f"is a Caffe model: {AS_ONNX}"),
    "config.json": (b'{"model_type": "llama"}', f"describes a model without its graph: {AS_ONNX}"),
    # Programs that are compiled, and what older versions of TVM wrote.
    "m.so": (b"\x7fELF\x02", COMPILED),
    "tvm.so": (LIBRARY, f"is compiled by TVM, has the kernels ['add', 'relu'], {UNREAD}"),
    "tvm.tar": (
        gzip.compress(LIBRARY),
        f"is compiled by TVM, has the kernels ['add', 'relu'], {UNREAD}",
    ),
    "m.dll": (b"MZ\x90\0\x03", COMPILED),
    "m.dylib": (b"\xcf\xfa\xed\xfe", COMPILED),
    "m.engine": (b"ftrt\0\0", COMPILED),
    "m.ll": (b"; ModuleID = 'm'", COMPILED),
    "kernel.cu": (b"__global__ void k() {}", COMPILED),
    "m.pyc": (b"\xa7\x0d\r\n\0\0\0\0", "is compiled Python: give the .py file"),
    "aot.pt2": (
        zipped("m/archive_format", "m/data/aotinductor/m.so"),
        "is compiled by AOTInductor",
    ),
    "m.tar": (TAR.getvalue(), f"is a tar archive: {UNPACK}"),
    "graph.json": (b'{"nodes": [{"op": "null", "name": "x"}], "heads": []}', COMPILED),
    "relay.json": (b'{\n "root": 1, "nodes": []}', "is the JSON of an older TVM: print the module"),
    "relay.txt": (b'#[version = "0.0.5"]\ndef @main() {}', "is Relay, which TVM has removed: give"),
    # Damaged files of the kinds that are read.
    "cut.onnx": (MODEL[:-9], "is not a complete ONNX model (Error parsing"),
    "model.pb": (b"\x08\x07\x12", "save it again with onnx.save(model, path)"),
    "parsed.onnx": (
        b"<ir_version: 8>\ng (float[2] x) => () {}",
        "onnx.save(onnx.parser.parse_model",
    ),
    "proto.onnx": (
        b"ir_version: 8\ngraph {\n}",
        "is ONNX as text: write the model with onnx.save(",
    ),
    "none.onnx": (model("Add", weights="w.bin").SerializeToString(), "no such file: put it there"),
    "up.onnx": (model("Add", weights="../w").SerializeToString(), "which is not in its folder, so"),
    "root.onnx": (model("Add", weights="/etc/hostname").SerializeToString(), "they were not read"),
    "ir.onnx": (model(ir_version=2).SerializeToString(), "IR version 2, and the oldest that is"),
    "own.onnx": (model("Mine", "of.mine").SerializeToString(), "Mine of node 'y': Operator Mine"),
    "text.pt2": (
        b"hello",
        "is not a torch.export program: it is not a zip archive; write one with",
    ),
    "cut.pt2": (
        zipped("m/archive_format")[:-9],
        "is damaged or cut short (File is not a zip file)",
    ),
    "entry.pt2": (b"PK\x03\x04", EXPORT),
    "bomb.pt2": (
        zipped("m/archive_format", "m/models/m.json", content=bytes(80 << 20)),
        "bytes unpacked, far more than packed; save it again with",
    ),
    "other.zip": (
        zipped("m/m.onnx"),
        "is a zip archive, not a torch.export program; unpack it, and",
    ),
    "none.zip": (b"PK\x05\x06" + bytes(18), "is an empty zip archive: give one of a model"),
    "new.irviz": (zipped("index.json", "objects.json", content=INDEX), "by a newer irviz, '9.0'"),
    "cut.irviz": (
        zipped("index.json")[:-9],
        "is damaged or cut short: File is not a zip file; save",
    ),
    "text.irviz": (b"hello", "where a file that Session.save wrote was expected"),
    "cut.json": (
        b'{"root_index": 1, "nodes": [',
        "is not an IRModule in TVM's JSON: it is not JSON",
    ),
    "deep.json": (b"[" * (1 << 20), "it is not JSON"),
    "tokenizer.json": (b'{"version": "1.0"}', TVM_JSON),
    "list.json": (b"[1, 2]", TVM_JSON),
    "cut.ipynb": (notebook("x")[:-9], "is not a notebook: it is not JSON ("),
    "empty.ipynb": (notebook(), "has no cell of Python: give a notebook that defines modules"),
    "torch.ipynb": (notebook("import torch"), f"(its cells as one text) {NO_MODULE}"),
    # Python, and texts in other encodings.
    "torch.py": (f"import os\nos.mkdir({str(TELLTALE)!r})".encode(), NO_MODULE),
    "build.py": (
        b"def build():\n    return bb.get()",
        "if code builds the module, run it, and give",
    ),
    "cut.py": (SCRIPT[: SCRIPT.index("R.call_tir(") + 12].encode(), "this is not Python: '(' was"),
    "syntax.py": (
        b"def f(:\n",
        "line 1, column 7: this is not Python: invalid syntax; correct this",
    ),
    "long.py": (b"1+" * 200_000 + b"1", "an expression nested too deeply is refused: split it"),
    "large.py": (b"a" * (100 << 20), "a text of 104,857,600 characters is refused: up to"),
    "utf16.py": (SCRIPT.encode("utf-16"), "is text in UTF-16: save it in UTF-8"),
    "latin.py": ("caf\u00e9 = 1".encode("latin-1"), "not text in UTF-8, as byte 3 is 0xe9; give"),
    "binary.py": (b"\x89...", "is not TVMScript: it is not text in UTF-8, as byte 0 is 0x89; give"),
    "nul.py": (bytes(64), "is not TVMScript: it is not text in UTF-8, as byte 0 is 0x00; give"),
    # Empty files, and files of another kind.
    "empty": (b"", f"is not a kind of file that irviz reads: it is empty; {READ}"),
    "empty.onnx": (b"", f"is not an ONNX model: it is empty; {READ}"),
    "space.py": (b" \n", f"is not TVMScript: it is empty; {READ}"),
    "mark.py": (b"\xef\xbb\xbf", f"is not TVMScript: it is empty; {READ}"),
    "pointer.onnx": (LFS, "is a pointer of Git LFS, in place of a file: get the file with git lfs"),
    "pointer.pt2": (LFS, "is a pointer of Git LFS, in place of a file: get the file with git lfs"),
    "page.onnx": (b"\n<!DOCTYPE html>\n<html>", "is a web page: if it was downloaded in place"),
    "page.py": (b"<html lang=en><body>404", "is a web page: if it was downloaded in place"),
    "m.onnx.gz": (gzip.compress(MODEL), f"is compressed: {UNPACK}"),
    "m.onnx.bz2": (bz2.compress(MODEL), f"is compressed: {UNPACK}"),
    "m.onnx.xz": (lzma.compress(MODEL), f"is compressed: {UNPACK}"),
    "m.onnx.zst": (b"\x28\xb5\x2f\xfd\x04", f"is compressed: {UNPACK}"),
    "m.7z": (b"7z\xbc\xaf\x27\x1c", f"is compressed: {UNPACK}"),
    "m.png": (b"\x89PNG\r\n\x1a\n", "is an image: give it as inputs, beside a model"),
    "m.bmp": (b"BM\x9a\0\0\0\0\0\0\0", "is an image: give it as inputs, beside a model"),
    "m.svg": (b'<svg xmlns="http://www.w3.org/2000/svg"/>', "is an image: give it as inputs"),
    "m.pdf": (b"%PDF-1.7", "is a PDF: give a model"),
    "m.csv": (b"a,b\n1,2\n", f"is not a kind of file that irviz reads: {READ}"),
    "m.cfg": (b"[net]\nbatch=1\n", f"is not a kind of file that irviz reads: {READ}"),
    "m.txt": (b"Dear reader,", f"is not a kind of file that irviz reads: {READ}"),
}
"""The content of each file, and words of the sentence that refuses it."""
WAY_OUT = re.compile(
    r"[:;,] (?:if .*, )?(?:get|give|save|write|convert|unpack|import|print|put|open|update|export"
    r"|correct|split|download|missing|read)\b|: up to| was expected"
)
OF_PATHS = "none.onnx", "up.onnx", "root.onnx", "new.irviz", "cut.irviz", "text.irviz"
"""Files that are refused for another reason where only their content is given."""


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_refused_in_one_sentence(tmp_path, capsys, name):
    content, words = WRONG[name]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(LoadError) as caught:
        irviz.load(path)
    message = str(caught.value)
    assert words in message
    assert message.startswith(repr(str(path)))
    assert len(message) < 400 + len(str(path))
    assert WAY_OUT.search(message)
    assert main(["draw", str(path), "-o", str(tmp_path / "a.svg")]) == 2
    assert capsys.readouterr() == ("", f"irviz: {message}\n")
    with pytest.raises(LoadError) as dropped:  # as on the page
        load_content(content, name)
    is_same = str(dropped.value) == message.replace(str(path), name)
    assert is_same or (name in OF_PATHS and WAY_OUT.search(str(dropped.value)))
    assert path.read_bytes() == content
    assert not TELLTALE.exists()
    assert [one.name for one in tmp_path.iterdir()] == [name]

"""The language for GPUs is read, nothing of it is compiled, and large numbers cost nothing."""

import contextlib
import os
import sys

import pytest
import tvm
from tvm.support import nvcc
from tvm_ffi import structural_equal

from irviz.errors import LoadError
from irviz.loaders.load import read_content
from irviz.loaders.notebook_cells import read_cell
from irviz.loaders.tvmscript.admission import RefusedError, admit
from irviz.loaders.tvmscript.allowed_names import AXES, INTRINSICS, MEANINGS, TILE

SOURCE = "#error this is not CUDA"
KERNEL = f"""
@T.prim_func
def main(A: T.Buffer((4,), "uint32")):
    T.device_entry()
    T.thread_id([32])
    T.cuda.func_call("f", A.data, source_code={SOURCE!r})
"""
IMPORTS = """import numpy as np
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tile
from tvm.tirx.layout import ComposeLayout, R, S, TileLayout, laneid, unknown, wg_local_layout
from tvm.tirx.layout import tx as thread
"""
BY_IMPORTS = """
@T.prim_func
def main(m: T.int32):
    T.device_entry()
    T.thread_id([32])
    A = T.alloc_local((8,), layout=TileLayout(S[8 : 4 @ laneid] + R[4 : 1 @ thread] + 2 @ laneid))
    B = T.alloc_shared((512,), layout=ComposeLayout(3, 3, 3, TileLayout(S[512])))
    C = T.alloc_local((128, m), layout=wg_local_layout(4))
    Tile.cta.fill(A, T.float32(0))
    T.evaluate(B[0] + C[0, 0])
"""
BY_FULL_NAMES = """
@T.prim_func
def main(m: T.int32):
    T.device_entry()
    T.thread_id([32])
    A = T.alloc_local((8,), layout=T.TileLayout(
        T.S[8 : 4 @ Axis.laneid] + T.R[4 : 1 @ Axis.tx] + 2 @ Axis.laneid))
    B = T.alloc_shared((512,), layout=T.ComposeLayout(3, 3, 3, T.TileLayout(T.S[512])))
    C = T.alloc_local((128, m), layout=tvm.tirx.layout.wg_local_layout(4))
    Tx.cta.fill(A, T.float32(0))
    T.evaluate(B[0] + C[0, 0])
"""


def read(text):
    """Return the only function of a text, as opening a file reads it."""
    (function,) = read_content(text.encode(), "kernel.py").module.functions.values()
    return function


# --- names that are imported -------------------------------------------------------------------


def test_names_that_a_file_imports_from_tvms_layouts_mean_what_they_mean_there():
    assert structural_equal(read(IMPORTS + BY_IMPORTS), tvm.script.from_source(BY_FULL_NAMES))
    cell = read_cell(IMPORTS + BY_IMPORTS).modules["main"]
    assert structural_equal(cell["main"], read(IMPORTS + BY_IMPORTS))
    admitted = admit(
        IMPORTS.replace("import numpy as np\n", "").replace("unknown, ", "") + BY_IMPORTS
    )
    assert admitted.imported["thread"] == "Axis.tx"
    assert "import" not in admitted.text
    with pytest.raises(RefusedError, match="this import is refused"):
        admit(IMPORTS.replace("import numpy as np\n", "") + BY_IMPORTS)


def test_a_name_that_the_text_binds_is_not_the_imported_one():
    text = (
        "from tvm.tirx.layout import m, laneid as n\n"
        + """
@T.prim_func
def main(m: T.int32):
    n = T.alloc_local((4,))
    T.evaluate(n[m])
"""
    )
    assert admit(text).imported == {}
    assert structural_equal(read(text), tvm.script.from_source(text.partition("\n")[2]))


def test_no_import_takes_the_name_of_something_else():
    for name in ("T", "tvm", "open", "range", "metadata_", "__builtins__", "_x"):
        imported = admit(f"from tvm.tirx.layout import S as {name}\n" + KERNEL).imported
        assert imported == ({name: "T.S"} if name == "metadata_" else {})


def test_a_refusal_of_an_imported_name_has_the_place_in_the_text():
    with pytest.raises(RefusedError) as caught:
        admit("from tvm.tirx.layout import laneid\n" + KERNEL + "    T.evaluate(laneid)\n")
    assert (caught.value.line, caught.value.column) == (8, 16)


@pytest.mark.parametrize("meaning", sorted(set(MEANINGS.values())))
def test_what_may_be_imported_is_what_tvm_has_there(meaning):
    (module, name) = next(key for key, value in MEANINGS.items() if value == meaning)
    there = getattr(sys.modules[module], name)
    names = {"T": tvm.script.tirx, "Tx": tvm.script.tirx.tile, "tvm": tvm}
    names["Axis"] = tvm.tirx.layout.Axis
    root, *path = meaning.split(".")
    found = names[root]
    for part in path:
        found = getattr(found, part)
    assert found is there


# --- what each name does -----------------------------------------------------------------------


def test_an_intrinsic_is_what_tvm_wraps_as_the_call_of_an_operator():
    """So a later version of TVM cannot give one of these names to something else."""
    for path in INTRINSICS:
        found = tvm.script.tirx
        for name in path.split("."):
            found = getattr(found, name)
        is_wrapped = hasattr(found, "__tir_op_name__") or hasattr(found, "__tir_call_op_name__")
        is_raw = path == "s_tir.cp_async_raw" or path.startswith("cuda.__")
        assert is_wrapped or is_raw, path


def test_a_tile_operation_is_one_of_tvms():
    tile = tvm.script.tirx.tile
    plain = {name for name in TILE if "." not in name}
    assert plain == {
        name for name in tile.__all__ if type(getattr(tile, name)).__name__ == "ScopedOp"
    }
    assert set(tvm.tirx.layout._AXIS_NAMES) == AXES


# --- nothing is compiled -----------------------------------------------------------------------


@pytest.mark.worker
def test_source_code_of_cuda_stays_text(tmp_path, monkeypatch):
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("nvcc", "nvrtc", "gcc", "g++", "clang"):
        program = folder / name
        program.write_text(f"#!/bin/sh\ntouch {tmp_path}/MARK\nexit 1\n", encoding="utf-8")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    assert SOURCE in read(KERNEL).script()
    assert not (tmp_path / "MARK").exists()
    target = tvm.target.Target({"kind": "cuda", "arch": "sm_80"})
    with target, pytest.raises(Exception):  # noqa: B017, PT011 - TVM raises what it likes
        nvcc.compile_cuda(SOURCE, target_format="ptx", compiler="nvcc")
    assert (tmp_path / "MARK").exists()  # this is what compiling it does


def test_no_lambda_is_kept():
    text = KERNEL + "    T.cuda.wait_until(A[0], A.data, lambda v: v > T.uint32(3))\n"
    text += "    T.tile.select(A, A, T.uint32(1), lambda i: i < 3)\n"
    assert tvm.ir.load_json(tvm.ir.save_json(read(text))) is not None


# --- bounds ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "layout",
    [
        f"T.TileLayout(T.S[{', '.join(['2'] * 63)}])",
        f"T.TileLayout(T.S[({'4611686018427387904, ' * 64})])",
        f"T.TileLayout(T.S[4 : {2**127} @ Axis.laneid])",
        f"T.TileLayout(T.S[4] + T.R[{2**62} : {2**62}] + {2**62})",
        "T.ComposeLayout(32, 32, 32, T.TileLayout(T.S[4]))",
        "T.ComposeLayout(3, 3, 3, " * 20 + "T.TileLayout(T.S[4])" + ")" * 20,
        "T.TileLayout(T.S[0])",
        "T.TileLayout(T.S[-4 : -1])",
    ],
)
def test_large_and_odd_numbers_of_a_layout_are_read_or_are_one_sentence(layout):
    text = f"""
@T.prim_func
def main():
    T.device_entry()
    A = T.alloc_local((4,), layout={layout})
    B = A.view(2, 2).sub[0, :].permute(0)
    T.evaluate(B[0])
"""
    with contextlib.suppress(LoadError):
        admit(text)
        read(text)
        return
    with pytest.raises(LoadError) as caught:
        read(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000

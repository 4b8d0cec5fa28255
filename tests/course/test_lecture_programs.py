"""The programs of the lectures, chapter by chapter, open in their old spelling, are drawn and run.

Chapters 4 and 6, whose texts are in tests/course_programs, are held word for word by
tests/loaders/upgrade/test_course_programs.py. The programs here are ours: each has the construct
for which a chapter has its program. What cannot be run is here with the reason that irviz gives.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import tvm

import irviz
from irviz.errors import IrvizError

pytestmark = [pytest.mark.worker, pytest.mark.build]

IMPORTS = """
import tvm
from tvm.ir.module import IRModule
from tvm.script import tir as T, relax as R
"""
ADD = """
@tvm.script.ir_module
class Add:
    @T.prim_func
    def main(A: T.Buffer[96, "float32"], B: T.Buffer[96, "float32"], C: T.Buffer[96, "float32"]):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i in range(96):
            with T.block("C"):
                vi = T.axis.spatial(96, i)
                C[vi] = A[vi] + B[vi]
"""
TWO_FUNCTIONS = """
@tvm.script.ir_module
class TwoFunctions:
    @T.prim_func
    def double(A: T.Buffer[(4, 8), "float32"], B: T.Buffer[(4, 8), "float32"]):
        for i, j in T.grid(4, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)

    @T.prim_func
    def total(A: T.Buffer[(4, 8), "float32"], B: T.Buffer[(4,), "float32"]):
        for i, k in T.grid(4, 8):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                vk = T.axis.reduce(8, k)
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]
"""
PRODUCT = """
@tvm.script.ir_module
class Product:
    @T.prim_func
    def main(A: T.Buffer[(64, 64), "float32"], B: T.Buffer[(64, 64), "float32"],
             C: T.Buffer[(64, 64), "float32"]) -> None:
        for i, j, k in T.grid(64, 64, 64):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0.0
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""
MIXTURE = """
@tvm.script.ir_module
class Mixture:
    @T.prim_func
    def twice(X: T.Buffer((1, 8), "float32"), Y: T.Buffer((1, 8), "float32")):
        Z = T.alloc_buffer((1, 8), "float32")
        for i, j in T.grid(1, 8):
            with T.block("Z"):
                vi, vj = T.axis.remap("SS", [i, j])
                Z[vi, vj] = X[vi, vj]
        for i, j in T.grid(1, 8):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = Z[vi, vj] + Z[vi, vj]

    @R.function
    def main(x: R.Tensor((1, 8), "float32")):
        cls = Mixture
        with R.dataflow():
            lv = R.call_tir(cls.twice, (x,), R.Tensor((1, 8), dtype="float32"))
            out = R.call_dps_packed("env.relu", (lv,), R.Tensor((1, 8), dtype="float32"))
            R.output(out)
        return out
"""
WINDOW = """
@tvm.script.ir_module
class Window:
    @T.prim_func
    def main(A: T.Buffer[(66,), "float32"], B: T.Buffer[(64,), "float32"]) -> None:
        for i in T.grid(64):
            with T.block("B"):
                vi = T.axis.remap("S", [i])
                B[vi] = A[vi] + A[vi + 1] + A[vi + 2]
"""
BLOCKS = """
@tvm.script.ir_module
class Blocks:
    @T.prim_func
    def main(A: T.Buffer[(32, 32), "float32"], B: T.Buffer[(32, 32), "float32"],
             C: T.Buffer[(32, 32), "float32"]) -> None:
        for i0, j0, k0 in T.grid(4, 4, 4):
            with T.block("tile-8x8"):
                vi0, vj0, vk0 = T.axis.remap("SSR", [i0, j0, k0])
                with T.init():
                    for i1, j1 in T.grid(8, 8):
                        with T.block("zero"):
                            vi1, vj1 = T.axis.remap("SS", [i1, j1])
                            C[vi0 * 8 + vi1, vj0 * 8 + vj1] = T.float32(0)
                for i1, j1, k1 in T.grid(8, 8, 8):
                    with T.block("add"):
                        vi1, vj1, vk1 = T.axis.remap("SSR", [i1, j1, k1])
                        C[vi0 * 8 + vi1, vj0 * 8 + vj1] += \\
                            A[vi0 * 8 + vi1, vk0 * 8 + vk1] * B[vj0 * 8 + vj1, vk0 * 8 + vk1]
"""
BUFFERS = "\n".join(
    f'    {name} = T.match_buffer({name.lower()}, (8, 8), "float32", offset_factor=8{{{name}}}, '
    f'scope="global.{scope}")'
    for name, scope in {"A": "A_reg", "B": "B_reg", "C": "accumulator"}.items()
)
ROOT = """
    with T.block("root"):
        T.reads(C[0:8, 0:8], A[0:8, 0:8], B[0:8, 0:8])
        T.writes(C[0:8, 0:8])
"""
DESCRIPTION = f"""
@T.prim_func
def description(a: T.handle, b: T.handle, c: T.handle) -> None:
{BUFFERS.format(A="", B="", C="")}{ROOT}
        for i, j, k in T.grid(8, 8, 8):
            with T.block(""):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]
"""
STRIDES = {name: f", strides=[s{name.lower()}, 1]" for name in "ABC"}
IMPLEMENTATION = f"""
@T.prim_func
def implementation(a: T.handle, b: T.handle, c: T.handle) -> None:
    sa = T.var("int32")
    sb = T.var("int32")
    sc = T.var("int32")
{BUFFERS.format(**STRIDES)}{ROOT}
        T.evaluate(T.call_extern("mm8", C.access_ptr("w"), A.access_ptr("r"), B.access_ptr("r"),
                                 sa, sb, sc, dtype="int32"))
"""
OPERATORS = """
@tvm.script.ir_module
class Operators:
    @R.function
    def main(x: Tensor((3, 4), "float32"), y: Tensor((3, 4), "float32")):
        with R.dataflow():
            lv0 = relax.multiply(x, y)
            gv0 = relax.add(lv0, y)
            R.output(gv0)
        return gv0
"""


@dataclass(frozen=True)
class Program:
    """A module or function of a chapter, and what NumPy makes of its inputs, or why it cannot run.

    Attributes:
        inputs: The shapes of what is given.
    """

    chapter: int
    name: str
    text: str
    inputs: tuple[tuple[int, ...], ...]
    result: Any
    function: str = ""


PROGRAMS = (
    Program(2, "Add", ADD, ((96,), (96,)), np.add),
    Program(3, "TwoFunctions", TWO_FUNCTIONS, ((4, 8),), lambda a: 2 * a, "double"),
    Program(3, "TwoFunctions", TWO_FUNCTIONS, ((4, 8),), lambda a: a.sum(axis=1), "total"),
    Program(5, "Product", PRODUCT, ((64, 64), (64, 64)), np.matmul),
    Program(5, "Mixture", MIXTURE, ((1, 8),), lambda x: np.maximum(2 * x, 0)),
    Program(7, "Window", WINDOW, ((66,),), lambda a: a[:-2] + a[1:-1] + a[2:]),
    Program(8, "Blocks", BLOCKS, ((32, 32), (32, 32)), lambda a, b: a @ b.T),
    Program(
        8,
        "description",
        DESCRIPTION,
        ((8, 8), (8, 8), (8, 8)),
        lambda a, b, c: c + a @ b.T,
    ),
    Program(8, "implementation", IMPLEMENTATION, ((8, 8), (8, 8), (8, 8)), "ended the process"),
    Program(9, "Operators", OPERATORS, ((3, 4), (3, 4)), lambda x, y: x * y + y),
)


@pytest.fixture
def opened(tmp_path):
    """Open a program as a notebook of its chapter, in the old spelling, with random arrays."""

    def opened(program):
        cells = [
            {"cell_type": "code", "source": source, "metadata": {}, "outputs": []}
            for source in (IMPORTS, "!nvidia-smi", program.text)
        ]
        path = tmp_path / f"chapter_{program.chapter}.ipynb"
        path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}))
        numbers = np.random.default_rng(0)
        arrays = [numbers.standard_normal(shape, dtype="float32") for shape in program.inputs]
        session = irviz.load(path, name=program.name, function=program.function)
        names = [each.name for each in session.current.module[session.function].params]
        return irviz.Session(
            session.current.module,
            function=session.function,
            inputs=dict(zip(names, arrays, strict=False)),
        ), arrays

    return opened


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: f"{each.chapter}: {each.name}")
def test_a_program_opens_is_drawn_and_gives_what_numpy_gives(program, opened):
    session, arrays = opened(program)
    assert "<svg" in session.draw().svg
    if isinstance(program.result, str):
        with pytest.raises(IrvizError, match=program.result):
            session.run()
        return
    (output,) = session.run().outputs
    assert np.allclose(output[0], program.result(*arrays), atol=1e-4)


# --- What the chapters make of their programs by schedules ----------------------------------------


def at_random(sch):
    i, j, k = sch.get_loops("C")
    outer, inner = sch.split(j, factors=sch.sample_perfect_tile(j, n=2, decision=[16, 4]))
    sch.reorder(i, outer, k, inner)
    sch.decompose_reduction(sch.get_sblock("C"), k)


def on_threads(sch):
    (i,) = sch.get_loops("C")
    outer, inner = sch.split(i, factors=[None, 32])
    sch.bind(outer, "blockIdx.x")
    sch.bind(inner, "threadIdx.x")


def in_shared_memory(sch):
    """Let the threads of a block fetch together what they read."""
    block = sch.get_sblock("B")
    (i,) = sch.get_loops(block)
    outer, inner = sch.split(i, factors=[None, 16])
    sch.bind(outer, "blockIdx.x")
    sch.bind(inner, "threadIdx.x")
    shared = sch.cache_read(block, 0, "shared")
    sch.compute_at(shared, inner)
    _, thread = sch.split(sch.get_loops(shared)[-1], factors=[None, 16])
    sch.bind(thread, "threadIdx.x")


def in_registers(sch):
    """Tile a product for a GPU: local sums, unrolled, with both operands fetched together."""
    block = sch.get_sblock("C")
    local = sch.cache_write(block, 0, "local")
    i, j, k = sch.get_loops(block)
    i0, i1, i2 = sch.split(i, factors=[None, 4, 4])
    j0, j1, j2 = sch.split(j, factors=[None, 4, 4])
    k0, k1 = sch.split(k, factors=[None, 8])
    sch.unroll(k1)
    sch.reorder(i0, j0, i1, j1, k0, k1, i2, j2)
    sch.reverse_compute_at(local, j1)
    sch.bind(i0, "blockIdx.y")
    sch.bind(j0, "blockIdx.x")
    sch.bind(sch.fuse(i1, j1), "threadIdx.x")
    for operand in (0, 1):
        shared = sch.cache_read(block, operand, "shared")
        sch.compute_at(shared, k0)
        _, thread, four = sch.split(sch.fuse(*sch.get_loops(shared)[-2:]), factors=[None, 16, 4])
        sch.vectorize(four)
        sch.bind(thread, "threadIdx.x")
    sch.decompose_reduction(block, k0)


def in_tiles(sch):
    """Make a block of 8 by 8 of a product, with its operands and its sums in special memory."""
    i, j, k = sch.get_loops("C")
    (i, i1), (j, j1), (k, k1) = (sch.split(each, factors=[None, 8]) for each in (i, j, k))
    sch.reorder(i, j, k, i1, j1, k1)
    tile = sch.blockize(i1)
    for operand, register in enumerate(("A_reg", "B_reg")):
        sch.compute_at(sch.cache_read(tile, operand, f"global.{register}"), k)
    sch.reverse_compute_at(sch.cache_write(tile, 0, "global.accumulator"), j)
    sch.decompose_reduction(tile, k)


GPU = "cannot be run on the CPU: its loops are bound to blockIdx"
SCHEDULES = (
    (PROGRAMS[3], at_random, ""),
    (PROGRAMS[0], on_threads, GPU),
    (PROGRAMS[5], in_shared_memory, GPU),
    (PROGRAMS[3], in_registers, GPU),
    (PROGRAMS[3], in_tiles, ""),
)


@pytest.mark.parametrize(
    ("program", "schedule", "reason"), SCHEDULES, ids=[each[1].__name__ for each in SCHEDULES]
)
def test_a_schedule_of_a_chapter_is_drawn_and_runs_unless_it_is_for_a_gpu(
    program, schedule, reason, opened
):
    session, arrays = opened(program)
    session = session.schedule("main", schedule)
    assert "<svg" in session.draw().svg
    assert session.diff("0", session.current.id)
    if reason:
        with pytest.raises(IrvizError, match=reason):
            session.run()
        return
    (output,) = session.run().outputs
    assert np.allclose(output[0], program.result(*arrays), atol=1e-4)


def test_a_tensorized_block_is_drawn_and_cannot_run_without_the_function_that_it_calls(opened):
    text = PRODUCT.replace("Product", "Transposed").replace("B[vk, vj]", "B[vj, vk]")
    session, _ = opened(Program(8, "Transposed", text, ((64, 64), (64, 64)), ""))
    description, implementation = (opened(each)[0].current.module for each in PROGRAMS[7:9])
    tvm.s_tir.TensorIntrin.register(
        "mm8", description["description"], implementation["implementation"], override=True
    )

    def tensorized(sch):
        in_tiles(sch)
        sch.tensorize(sch.get_sblock("C_o_update"), "mm8")

    session = session.schedule("main", tensorized)
    assert "mm8" in session.current.module.script()
    assert "<svg" in session.draw().svg
    with pytest.raises(IrvizError, match="ended the process"):
        session.run()


def test_every_chapter_with_programs_beyond_those_that_are_held_word_for_word_is_here():
    assert {program.chapter for program in PROGRAMS} == {2, 3, 5, 7, 8, 9}

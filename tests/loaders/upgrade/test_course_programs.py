"""Every program of the course's chapters upgrades unchanged, builds, runs and gives NumPy's result.

The chapters are in tests/course_programs as they were published: their code, without the prose.
Three kinds of cells are not run. Cells that fetch FashionMNIST by torchvision: PRELUDE has one of
irviz's digits for them. Cells that fetch the weights by wget: the file is there already, with
irviz's weights. Fragments that no chapter runs: `lv0 = R.call_tir(...)` alone, `...`, or a cell
that is no Python. One chapter was scraped, and its code lost the line breaks and some cells; its
restored copy differs from the scraped one in white space only, which is tested as well, and the
cells that are missing are in LOST.
"""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from irviz.course.digits import digits, mlp_params
from irviz.loaders.upgrade.upgrade import upgrade_document

pytest.importorskip("torch", reason="this needs PyTorch: pip install 'irviz[torch]'")

pytestmark = pytest.mark.torch

FOLDER = Path(__file__).parents[2] / "course_programs"
CHAPTERS = [
    path
    for path in sorted(FOLDER.iterdir())
    if path.suffix in (".txt", ".rst") and "scraped" not in path.name
]
TOLERANCE = 1e-5

PRELUDE = """
import numpy as np, torch, tvm
from irviz.course.digits import class_names, digits
img = digits().images[0].reshape(1, 28, 28)
label = digits().labels[:1]
"""
LOST = {
    "te": "from tvm import te\n",
    "C": "C = te_matmul(A, B)\n",
}
# What a chapter only shows is built and run by the test: PrimFuncs, and modules of a builder.
RUN = """
def ran(what, *arrays, out=None):
    given = [tvm.runtime.tensor(np.array(array)) for array in arrays]
    if out is None:
        return relax.VirtualMachine(tvm.compile(what, target="llvm"), tvm.cpu())["main"](*given)
    rest = [tvm.runtime.empty(shape, "float32") for shape in out]
    tvm.compile(what, target="llvm")["main"](*given, *rest)
    return rest[-1]

def drawn(*shape):
    return np.random.default_rng(0).standard_normal(shape, dtype="float32")

def relative_difference(result, reference):
    return (result - reference) / np.abs(reference).max()
"""


@dataclass(frozen=True)
class Program:
    """A program of a chapter: its cells by number, and what is its result once they are run.

    A cell in words is not the chapter's. With `into`, the last cell is a function alone: it takes
    the place of `main` in the module of that cell.
    """

    chapter: str
    name: str
    cells: tuple[int | str, ...]
    result: str = "nd_res"
    expected: str = "the MLP"
    into: int | None = None
    kernels: str = ""

    @property
    def id(self) -> str:
        return re.sub(r"\W+", "_", f"{self.chapter.split('.')[0]} {self.name}")


LOOPS = "by_loops = result\n"
BOTH = ("np.concatenate([by_loops, result])", "the MLP, twice")


def of_29_cells(name: str) -> list[Program]:
    """Return the programs of a chapter on the MLP in 29 cells: of any year they are the same."""
    data = (0, PRELUDE, 2, 4, 5, 18)
    run = (16, 17, 19)
    return [
        Program(name, "NumPy", (0, PRELUDE, 4, 5), "res"),
        Program(name, "NumPy by loops and calls", (0, PRELUDE, 4, 5, 6, LOOPS, 9, 12), *BOTH),
        Program(name, "MyModule", (*data, 7, 15, *run, 20)),
        Program(name, "MyModuleWithExternCall", (*data, 21, 23, 24)),
        Program(name, "MyModuleMixture", (*data, 25, 23, 26)),
        Program(name, "bound parameters", (*data, 25, 23, 27, 28)),
        Program(
            name,
            "two blocks",
            (*data, 14, *run),
            expected="the MLP" if "2024" in name else "the first block",
            into=7,
            kernels="" if "2024" in name else LINEAR1,
        ),
    ]


# In the chapters of 2022, two blocks are a sketch: linear1 gets an allocation that nothing fills
# for its weight, and sizes that MyModule's linear1 has not. It is run with a linear1 of the
# sizes that it is called with, which adds the bias and reads no weight.
LINEAR1 = """
    @T.prim_func
    def linear1(X: T.Buffer[(1, 128), "float32"],
                W: T.Buffer[(1, 128), "float32"],
                B: T.Buffer[(128,), "float32"],
                Z: T.Buffer[(1, 128), "float32"]):
        for i, j in T.grid(1, 128):
            with T.block("Z"):
                vi, vj = T.axis.remap("SS", [i, j])
                Z[vi, vj] = X[vi, vj] + B[vj]
"""
ZH = "mlp_2024_zh.txt"
HEADER = "from tvm.script import ir as I\n"  # a comment at the head of what TVM prints
ZH_DATA = (0, PRELUDE, 2, 4, 5, 17)
PRINTED = "mlp_2022_en_printed.txt"
IMPORTS = (
    "import tvm\nfrom tvm import relax\nfrom tvm.script import tir as T, relax as R\n" + PRELUDE
)
WEIGHTS = """
import pickle
mlp_params = pickle.load(open("fasionmnist_mlp_params.pkl", "rb"))
data_nd = tvm.nd.array(img.reshape(1, 784))
nd_params = {k: tvm.nd.array(v) for k, v in mlp_params.items()}
# TVM says that it leaves the constants out of what it prints; here they are.
weights = [relax.const(mlp_params[k], "float32") for k in ("w0", "b0", "w1", "b1")]
metadata = {"ir.GenericConst": weights}
"""
KERNELS = """
@tvm.register_func("env.linear", override=True)
def env_linear(x, w, b, out):
    np.from_dlpack(out)[:] = np.from_dlpack(x) @ np.from_dlpack(w).T + np.from_dlpack(b)

@tvm.register_func("env.relu", override=True)
def env_relu(x, out):
    np.maximum(np.from_dlpack(x), 0, out=np.from_dlpack(out))
"""
RUN_MODULE = """
vm = relax.VirtualMachine(relax.vm.build(Module, target="llvm"), tvm.cpu())
"""
ALL = 'nd_res = vm["main"](data_nd, *(nd_params[k] for k in ("w0", "b0", "w1", "b1")))\n'
ONE = 'nd_res = vm["main"](data_nd)\n'

FX = "frameworks_2022_zh_restored.txt"
TE = (0, LOST["te"], RUN, 2, 3, 5, LOST["C"])
BUILDER = (0, 1, LOST["te"], RUN, 3, 5)
MLP = (*BUILDER, PRELUDE, 26, 20, 21, 23, 24, 28, 29, 30)
SQUARE = "drawn(128, 128), drawn(128, 128) + 1"

PROGRAMS = [
    *of_29_cells("mlp_2022_zh.txt"),
    *of_29_cells("mlp_2022_en.rst"),
    *of_29_cells("mlp_2024_ko.txt"),
    Program(PRINTED, "MyModule as printed", (IMPORTS, WEIGHTS, 0, RUN_MODULE, ALL)),
    Program(
        PRINTED, "bound parameters as printed", (IMPORTS, WEIGHTS, KERNELS, 1, RUN_MODULE, ONE)
    ),
    Program(ZH, "NumPy", (0, PRELUDE, 4, 5), "res"),
    Program(ZH, "NumPy by loops and calls", (0, PRELUDE, 4, 5, 6, LOOPS, 9, 10), *BOTH),
    Program(ZH, "MyModule", (*ZH_DATA, 7, 13, 15, 16, 18)),
    Program(ZH, "two blocks", (*ZH_DATA, 12, 15, 16, 18), into=7),
    Program(ZH, "MyModule as printed", (*ZH_DATA, HEADER, 14, RUN_MODULE, 18)),
    Program(ZH, "MyModuleWithExternCall", (*ZH_DATA, 19, 20, 21)),
    Program(ZH, "MyModuleMixture", (*ZH_DATA, 22, 20, 23)),
    Program(ZH, "bound parameters", (*ZH_DATA, 22, 20, 24, 26)),
    Program(
        ZH, "bound parameters as printed", (*ZH_DATA, WEIGHTS, 20, HEADER, 25, RUN_MODULE, ONE)
    ),
    Program(
        FX,
        "matmul by TE",
        (*TE, 4),
        f"ran(te.create_prim_func([A, B, C]), {SQUARE}, out=[(128, 128)])",
        "matmul",
    ),
    Program(
        FX,
        "relu of 10",
        (*TE, 6),
        "ran(te.create_prim_func([X1, Y1]), drawn(10), out=[(10,)])",
        "relu of 10",
    ),
    Program(
        FX,
        "relu of 10 by 20",
        (*TE, 7),
        "ran(te.create_prim_func([X2, Y2]), drawn(10, 20), out=[(10, 20)])",
        "relu of 10 by 20",
    ),
    Program(
        FX,
        "fused",
        (*TE, 8, 9),
        f"ran(te.create_prim_func([A, B, D]), {SQUARE}, out=[(128, 128)])",
        "relu of matmul",
    ),
    Program(
        FX,
        "fused, the intermediate passed",
        (*TE, 8, 10),
        f"ran(te.create_prim_func([A, B, C, D]), {SQUARE}, out=[(128, 128)] * 2)",
        "relu of matmul",
    ),
    Program(
        FX, "BlockBuilder", (*BUILDER, 11, 12, 14), f"ran(MyModule, {SQUARE})", "relu of matmul"
    ),
    Program(
        FX,
        "from_fx by TE",
        (*BUILDER, 20, 21, 23, 24),
        "relative_difference(ran(MyModule, drawn(1, 128)).numpy(), "
        "model(torch.from_numpy(drawn(1, 128))).detach().numpy())",
        "nothing",
    ),
    Program(FX, "from_fx by TOPI", (*MLP, 31, 32)),
    Program(
        FX, "from_fx by operators", (*MLP, 31, 33), "ran(MLPModuleHighLevel, img.reshape(1, 784))"
    ),
]


def cells(text: str, name: str) -> list[str]:
    """Return the cells of a chapter's text."""
    if name.endswith(".rst"):
        found = re.split(r"^\.\. code:: python\n", text, flags=re.MULTILINE)[1:]
        return [textwrap.dedent(cell) for cell in found]
    return re.findall(r"^ ?```[^\n]*\n(.*?)^ ?```[ ]*$", text, re.DOTALL | re.MULTILINE)


def with_main(module: str, main: str, kernels: str) -> str:
    """Return the text of a module with another `main`, and with kernels instead of its own."""
    head, _, _ = module.partition("    @R.function")
    if kernels:  # the one of that name there is another
        head = head.partition("    @T.prim_func\n    def linear1")[0] + kernels
    return f"{head}\n{textwrap.indent(main, '    ')}"


def old(program: Program) -> str:
    """Return a program's chapter, its cells and those in words, as Markdown in the old dialect."""
    texts = cells((FOLDER / program.chapter).read_text(encoding="utf-8"), program.chapter)
    chosen = []
    for cell in program.cells:
        text = texts[cell] if isinstance(cell, int) else cell
        if program.into is not None and text.lstrip().startswith("@R.function"):
            text = with_main(texts[program.into], text, program.kernels)
        chosen.append(f"```python\n{text}\n```\n")
    return "".join(chosen)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Upgrade all programs and run them in one process of their own; return what each gave."""
    folder = tmp_path_factory.mktemp("programs")
    with (folder / "fasionmnist_mlp_params.pkl").open("wb") as file:
        pickle.dump(mlp_params(), file)
    for program in PROGRAMS:
        new = upgrade_document(old(program), "program.md")
        text = "\n".join(cells(new.text, "program.md")) + f"\nresult = {program.result}\n"
        (folder / f"{program.id}.py").write_text(text, encoding="utf-8")
    command = [sys.executable, FOLDER / "running.py", folder]
    environment = {**os.environ, "MPLBACKEND": "agg"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return pickle.loads((folder / "results.pkl").read_bytes())


def expected(what: str) -> np.ndarray:
    """Return what NumPy gives."""

    def drawn(*shape):
        return np.random.default_rng(0).standard_normal(shape, dtype="float32")

    weights, x = mlp_params(), digits().images[:1]
    first = np.maximum(x @ weights["w0"].T + weights["b0"], 0)
    product = drawn(128, 128) @ (drawn(128, 128) + 1)
    return {
        "the MLP": lambda: first @ weights["w1"].T + weights["b1"],
        "the MLP, twice": lambda: np.repeat(first @ weights["w1"].T + weights["b1"], 2, axis=0),
        "the first block": lambda: first + weights["b0"],
        "matmul": lambda: product,
        "relu of matmul": lambda: np.maximum(product, 0),
        "relu of 10": lambda: np.maximum(drawn(10), 0),
        "relu of 10 by 20": lambda: np.maximum(drawn(10, 20), 0),
        "nothing": lambda: np.zeros((1, 128), "float32"),
    }[what]()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.id)
def test_a_program_of_the_course_upgrades_runs_and_gives_what_numpy_gives(program, results):
    result = results[program.id]
    assert not isinstance(result, str), result
    wanted = expected(program.expected)
    assert result.shape == wanted.shape
    assert np.abs(result - wanted).max() <= TOLERANCE * max(1, np.abs(wanted).max())


def test_every_chapter_is_in_the_table_and_no_program_is_there_twice():
    assert {program.chapter for program in PROGRAMS} == {path.name for path in CHAPTERS}
    assert len({program.id for program in PROGRAMS}) == len(PROGRAMS) == 41


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.name)
def test_an_upgraded_chapter_is_left_as_it_is(path):
    new = upgrade_document(path.read_text(encoding="utf-8"), path.name)
    again = upgrade_document(new.text, path.name)
    assert again.text == new.text
    assert new.text != path.read_text(encoding="utf-8")


def test_the_restored_chapter_is_the_scraped_one_but_for_white_space():
    scraped = (FOLDER / "frameworks_2022_zh_scraped.txt").read_text(encoding="utf-8").splitlines()
    restored = cells((FOLDER / FX).read_text(encoding="utf-8"), FX)
    assert len(scraped) == len(restored)
    for line, cell in zip(scraped, restored, strict=True):
        numbers = re.match(r"(?:\d+ )+", line).group()
        assert numbers.split() == [str(number + 1) for number in range(len(numbers.split()))]
        code = line.removeprefix(numbers)
        assert re.sub(r"\s", "", code) == re.sub(r"\s", "", cell)

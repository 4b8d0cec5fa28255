"""The shape of the house: rooms, sizes and names that reviews would otherwise have to watch."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "irviz"
MODULES = sorted(PACKAGE.rglob("*.py"))
STATIC = sorted((PACKAGE / "app" / "static").glob("*.js"))
MOST_LINES = 300
BANNED = re.compile(r"(^|_)(utils?|helpers?|common|misc|manager|handler)(_|$)", re.IGNORECASE)


def imported(path: Path) -> set[str]:
    """Return the names of the modules that a file imports, at any depth."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def loaded_by(statement: str) -> set[str]:
    """Return the modules that a fresh Python has loaded after a statement."""
    code = f"{statement}\nimport sys; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("path", [*MODULES, *STATIC], ids=lambda path: path.name)
def test_no_file_grows_past_300_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_names_say_what_a_thing_is(path: Path) -> None:
    definitions = (ast.ClassDef, ast.FunctionDef)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = [path.stem, *(n.name for n in ast.walk(tree) if isinstance(n, definitions))]
    words = [re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name) for name in names]
    assert [word for word in words if BANNED.search(word)] == []


@pytest.mark.parametrize("room", ["model", "view"])
def test_data_and_pictures_know_no_tvm_and_no_widgets(room: str) -> None:
    for path in (PACKAGE / room).glob("*.py"):
        roots = {name.partition(".")[0] for name in imported(path)}
        assert roots.isdisjoint({"tvm", "tvm_ffi", "ipywidgets", "anywidget"}), path.name


def test_one_module_runs_the_layout_engine() -> None:
    users = [path for path in MODULES if "pygraphviz" in imported(path)]
    assert [str(path.relative_to(PACKAGE)) for path in users] == ["view/engine.py"]


def test_inner_packages_hold_nothing() -> None:
    inner = [path for path in MODULES if path.name == "__init__.py" and path.parent != PACKAGE]
    assert [path for path in inner if path.read_text(encoding="utf-8")] == []


def test_importing_irviz_loads_nothing_heavy() -> None:
    heavy = {"tvm", "torch", "onnx", "matplotlib", "numpy", "networkx", "ipywidgets", "pygraphviz"}
    assert loaded_by("import irviz").isdisjoint(heavy)


def test_using_irviz_loads_no_framework_and_no_plotting() -> None:
    loaded = loaded_by("import irviz; irviz.explore, irviz.draw, irviz.Session, irviz.library")
    by_tvm = loaded_by("import tvm.relax")  # it loads torch by itself, where that is installed
    assert "tvm" in loaded
    assert (loaded - by_tvm).isdisjoint({"torch", "onnx", "matplotlib", "sklearn", "voila"})


def test_every_public_name_is_there_and_listed() -> None:
    import irviz

    for name in irviz.__all__:
        assert getattr(irviz, name) is not None
        assert name in dir(irviz)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = irviz.nothing


def test_the_wheel_holds_the_data_the_page_and_the_types_marker(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        "irviz/py.typed",
        "irviz/app/static/canvas.js",
        "irviz/app/static/canvas.css",
        "irviz/app/static/explorer.css",
        "irviz/app/static/explorer.ipynb",
        "irviz/course/data/mlp_params.npz",
        "irviz/course/data/digits.npz",
    }
    assert wanted <= names
    assert not [name for name in names if name.startswith(("tests/", "notebooks/", "bench/"))]

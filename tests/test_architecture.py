"""What `import irviz` loads, what it offers, and what the wheel holds."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.worker

ROOT = Path(__file__).parents[1]
TEMPLATES = ROOT / "irviz" / "view" / "templates"
VIEWER = ROOT / "irviz" / "explorer" / "viewer"


def loaded_by(statement: str) -> set[str]:
    """Return the modules that a fresh Python has loaded after a statement."""
    code = f"{statement}\nimport sys; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_irviz_loads_nothing_heavy() -> None:
    heavy = {"tvm", "torch", "onnx", "matplotlib", "numpy", "networkx", "ipywidgets", "pygraphviz"}
    assert loaded_by("import irviz").isdisjoint(heavy)


def test_a_page_is_served_before_tvm_and_numpy_are_loaded() -> None:
    assert loaded_by("import irviz.cli.page_server").isdisjoint({"tvm", "numpy", "ipywidgets"})


def test_using_irviz_loads_no_framework_and_no_plotting() -> None:
    loaded = loaded_by("import irviz; irviz.explore, irviz.draw, irviz.Session, irviz.library")
    by_tvm = loaded_by("import tvm.relax")  # it loads torch by itself, where that is installed
    assert "tvm" in loaded
    assert (loaded - by_tvm).isdisjoint(
        {"torch", "onnx", "matplotlib", "networkx", "sklearn", "tornado"}
    )


def test_every_public_name_is_there_and_listed() -> None:
    import irviz

    for name in irviz.__all__:
        assert getattr(irviz, name) is not None
        assert name in dir(irviz)
    with pytest.raises(AttributeError, match="attribute nothing"):
        _ = irviz.nothing


def test_the_wheel_holds_the_data_the_page_the_bundles_and_the_types_marker(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        "irviz/py.typed",
        "irviz/cli/page/index.html.j2",
        "irviz/cli/page/logo.svg.j2",
        "irviz/cli/page/start.html.j2",
        "irviz/cli/page/static/page.js",
        "irviz/cli/page/static/start.js",
        "irviz/cli/page/static/page.css",
        "irviz/course/data/mlp_params.npz",
        "irviz/course/data/digits.npz",
    }
    assert wanted <= names
    templates = {f"irviz/view/templates/{path.name}" for path in TEMPLATES.glob("*")}
    assert len(templates) >= 5
    assert templates <= names
    of_page = {name for name in names if name.startswith("irviz/cli/page/")}
    assert of_page == {name for name in wanted if name.startswith("irviz/cli/page/")}
    of_viewer = [*VIEWER.glob("*.py"), *VIEWER.glob("static/*")]  # not what they are made from
    assert {"viewer.js", "viewer.css"} < {path.name for path in of_viewer}
    expected = {str(path.relative_to(ROOT)) for path in of_viewer}
    assert {name for name in names if name.startswith("irviz/explorer/viewer/")} == expected
    assert not [name for name in names if name.startswith(("tests/", "notebooks/", "bench/"))]


def test_the_picture_of_the_packages_shows_todays_imports() -> None:
    command = [sys.executable, str(ROOT / "assets" / "architecture.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")

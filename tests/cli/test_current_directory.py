"""No process of irviz takes modules from the folder of the file that it opens."""

import base64
import contextlib
import importlib.metadata
import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

import irviz as package
from irviz.cli.page_launcher import served
from irviz.course.mlp import MyModule
from irviz.view.graph.graph_figure import draw_placed, place_graph

pytestmark = pytest.mark.worker
MODEL = """
from tvm.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 2), "float32")):
        y = R.add(x, x)
        return y
"""
HOSTILE = """
with open({ran!r}, "a") as file:
    file.write({name!r} + " ")
"""


@pytest.fixture(scope="module")
def downloaded(tmp_path_factory):
    """Return the folder of a model and of a module for every name that a process may import."""
    folder = tmp_path_factory.mktemp("downloaded")
    ran = folder.parent / "ran"
    names = {
        *sys.stdlib_module_names,
        *importlib.metadata.packages_distributions(),
        *("sitecustomize", "usercustomize", "loky", "pywebview"),
    }
    for name in filter(str.isidentifier, names):
        (folder / f"{name}.py").write_text(HOSTILE.format(ran=str(ran), name=name))
    (folder / "model_file.py").write_text(MODEL)
    return folder


@pytest.fixture
def folder(downloaded, monkeypatch):
    """Return that folder, in which commands are run; none of its modules has run."""
    (downloaded.parent / "ran").unlink(missing_ok=True)
    monkeypatch.chdir(downloaded)
    return downloaded


def irviz(*arguments):
    command = [Path(sys.executable).with_name("irviz"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_module_in_the_current_directory_does_run_where_python_looks_there(folder):
    # Python 3.13 itself ends with an error, as it takes its `linecache` from there
    subprocess.run([sys.executable, "-c", "import json"], check=False, stderr=subprocess.DEVNULL)
    assert (folder.parent / "ran").read_text()


@pytest.mark.parametrize(
    "arguments",
    [
        ("draw", "model_file.py", "-o", "../drawn.svg"),
        ("upgrade", "model_file.py"),
    ],
)
def test_no_command_runs_one(folder, arguments):
    done = irviz(*arguments)
    assert done.returncode == 0, done.stderr
    assert not (folder.parent / "ran").exists()


def first_picture(url):
    """Return the SVG in a page, once the file has been opened."""
    with urllib.request.urlopen(url.replace("/?", "/opened?"), timeout=60) as opened:
        assert json.load(opened)["model"]
    with urllib.request.urlopen(url, timeout=60) as page:
        [data] = re.findall(rb'src="data:image/svg[+]xml;base64,([^"]*)"', page.read())
    return base64.b64decode(data).decode()


@contextlib.contextmanager
def page_of_command(*arguments):
    """Yield the address of the page that a command serves, from the current directory."""
    command = [Path(sys.executable).with_name("irviz"), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield re.search(r"http://\S+", process.stdout.readline())[0]
        finally:
            process.terminate()


def test_the_server_of_the_page_runs_none(folder):
    with served(str(folder / "model_file.py")) as (_, url):
        assert first_picture(url)
    assert not (folder.parent / "ran").exists()


def test_the_command_that_serves_a_page_runs_none(folder):
    with page_of_command("open", "--new", "--no-browser", "model_file.py") as url:
        assert first_picture(url)
    assert not (folder.parent / "ran").exists()


def test_a_page_that_is_served_from_where_irviz_is_has_the_layout_of_others(monkeypatch):
    def size(picture):
        return re.search(r'viewBox="[^"]*"', picture)[0]

    monkeypatch.chdir(Path(package.__file__).parents[1])
    with page_of_command("demo", "--no-browser") as url:
        found = first_picture(url)
    plain = draw_placed(place_graph(package.graph(MyModule), seconds=0))
    assert size(found) == size(package.draw(MyModule).svg) != size(plain.svg)

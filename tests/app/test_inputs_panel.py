"""The reader chooses what a run is given, and is told what that is, or why it cannot be."""

import html
import re

import numpy as np
import pytest
from PIL import Image
from tvm import ir, relax, tirx

from irviz.app.inputs_panel import InputsPanel
from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MODULES, MyModule, MyModuleStatic
from irviz.runtime.inputs import argument_lists

SYMBOLIC, STATIC = MyModule["main"], MyModuleStatic["main"]
PARAMS = mlp_params()
X = np.zeros((3, 784), "float32")


class Host:
    """Keeps what a panel reports, as the explorer does, and uses it as a reader does."""

    def __init__(self, function=SYMBOLIC, params=None, **options):
        self.heard = []
        self.panel = InputsPanel(lambda *chosen: self.heard.append(chosen), **options)
        self.params = PARAMS if params is None else params
        self.panel.show(function, self.params)

    def find(self, name):
        found = [one for one in self._all() if f"irviz-inputs-{name}" in one._dom_classes]
        assert len(found) == 1
        return found[0]

    def _all(self):
        stack = [self.panel.widget]
        while stack:
            widget = stack.pop()
            yield widget
            stack += getattr(widget, "children", ())

    def choose(self, source):
        self.find("source").value = source

    def type(self, path):
        self.choose("file")
        self.find("path").value = str(path)

    @property
    def sizes(self):
        return {one.description: one for one in self.find("sizes").children}

    @property
    def line(self):
        return html.unescape(re.sub(r"<br>", "; ", re.sub(r"</?p[^>]*>", "", self.html)))

    @property
    def html(self):
        return self.find("line").value

    def sees(self, name):
        return self.find(name).layout.display != "none"


def refuses(host, words):
    assert "irviz-error" in host.html
    assert words in host.line
    return True


# --- where inputs come from --------------------------------------------------------------------


def test_what_will_be_given_is_said_at_first():
    assert Host().line == "x: Tensor[(1, 784)] random, seed 0"
    assert Host(given=X).line == "x: Tensor[(1, 784)] as given, 3 cases"
    assert Host(given="zeros").line == "x: Tensor[(1, 784)] zeros"
    assert Host(seed=4).line == "x: Tensor[(1, 784)] random, seed 4"
    assert Host().heard == []


def test_own_inputs_can_be_chosen_where_there_are_some():
    assert [name for name, _ in Host().find("source").options] == ["random", "zeros", "file"]
    host = Host(given=X)
    assert host.find("source").options[0] == ("as given", "given")
    host.choose("zeros")
    host.choose("given")
    assert host.heard == [("zeros", 0, {}), (X, 0, {})]
    assert host.heard[1][0] is X


def test_a_choice_is_heard_with_the_seed():
    host = Host()
    host.find("seed").value = 7
    host.choose("zeros")
    assert host.heard == [("random", 7, {}), ("zeros", 7, {})]
    assert host.line == "x: Tensor[(1, 784)] zeros"


def test_a_seed_and_a_file_are_asked_for_where_they_matter():
    host = Host(given=X)
    assert not host.sees("seed")
    host.choose("random")
    assert host.sees("seed")
    host.choose("file")
    assert not host.sees("seed")
    assert Host(given={"x": "random"}).sees("seed")


def test_all_inputs_are_named_but_not_too_many():
    host = Host(STATIC, {})
    assert host.line.startswith("x: Tensor[(1, 784)] random, seed 0; w0: Tensor[(128, 784)] random")
    assert host.line.endswith("; … and 1 more")
    bound = relax.transform.BindParams("main", {"x": X[:1]})(MyModuleStatic)["main"]
    assert Host(bound).line == "no inputs: the parameters are all given"


# --- sizes -------------------------------------------------------------------------------------


def test_sizes_are_asked_for_where_nothing_tells_them():
    assert Host().sizes == {}
    host = Host(params={})
    assert {name: field.value for name, field in host.sizes.items()} == {"m": 8, "n": 8, "k": 8}
    host.sizes["n"].value = 128
    assert host.heard == [("random", 0, {"n": 128})]
    assert "b0: Tensor[(128,)] random" in host.line
    assert Host(params={}, given={**PARAMS, "x": X}).sizes == {}
    assert list(Host(params={}, given={**PARAMS, "x": "zeros", "w0": "zeros"}).sizes) == ["m"]


def test_sizes_are_asked_for_once_and_stay_while_stages_change():
    host = Host(params={}, sizes={"m": 5})
    host.sizes["n"].value = 16
    host.panel.show(STATIC, host.params)
    assert host.sizes == {}
    assert not host.sees("sizes")
    host.panel.show(MODULES["MyModuleMixture"]["main"], host.params)
    host.panel.show(MyModule["main"], dict(host.params))
    assert {name: field.value for name, field in host.sizes.items()} == {"m": 5, "n": 16, "k": 8}
    assert host.heard == [("random", 0, {"m": 5, "n": 16})]


def test_sizes_that_arrays_tell_are_not_said_again():
    host = Host(params={}, given={**PARAMS, "x": X}, sizes={"n": 5, "q": 2})
    assert host.line.startswith("x: Tensor[(1, 784)] as given, 3 cases")
    host.choose("random")
    host.choose("given")
    assert [sizes for _, _, sizes in host.heard] == [{"n": 5, "q": 2}, {"q": 2}]


def test_a_size_that_cannot_be_is_told_and_nothing_is_heard():
    host = Host(params={})
    host.sizes["n"].value = 10**12
    assert refuses(host, "take 68,000,000,000,064 bytes")
    assert refuses(host, "runs are still given what was chosen before")
    assert host.heard == []
    host.panel.show(STATIC, host.params)
    assert refuses(host, "runs are still given what was chosen before")
    host.panel.show(SYMBOLIC, host.params)
    host.sizes["n"].value = 4
    assert [sizes for _, _, sizes in host.heard] == [{"n": 4}]
    assert "error" not in host.html


def test_a_size_is_shown_as_it_is_taken():
    n = tirx.Var("n", "int64")
    x = relax.Var("x", relax.TensorType([n // 16, n], "float32"))
    function = relax.Function([x], relax.SeqExpr([], x), x.ty)
    assert Host(function).sizes["n"].value == 16


# --- files -------------------------------------------------------------------------------------


def test_an_image_is_made_to_fit_the_input(tmp_path):
    picture = np.rint(digits().images[0].reshape(28, 28) * 255).astype("uint8")
    Image.fromarray(picture).save(tmp_path / "five.png")
    host = Host()
    host.choose("file")
    assert host.heard == []
    assert refuses(host, "give the path of an .npy, an .npz, an image, or a folder of images")
    host.type(tmp_path / "five.png")
    assert host.line == f"x: Tensor[(1, 784)] from {tmp_path / 'five.png'}"
    ((inputs, _, _),) = host.heard
    (case,) = argument_lists(SYMBOLIC, inputs, PARAMS)
    assert (case[0][0] == digits().images[0]).all()


def test_a_folder_of_images_has_a_case_for_each(tmp_path):
    for number in range(3):
        Image.new("L", (5, 5), number).save(tmp_path / f"{number}.png")
    host = Host(STATIC)
    host.type(tmp_path)
    assert host.line.endswith(", 3 cases")


def test_arrays_of_a_file_tell_the_sizes(tmp_path):
    np.savez(tmp_path / "all.npz", x=X, **PARAMS)
    host = Host(params={}, sizes={"n": 3})
    host.type(tmp_path / "all.npz")
    assert host.sizes == {}
    assert host.heard[0][2] == {}
    assert "w0: Tensor[(128, 784)] from" in host.line


def test_what_no_file_holds_is_made_up(tmp_path):
    n = tirx.Var("n", "int64")
    types = {
        "x": relax.TensorType([n], "float32"),
        "s": relax.ShapeType([n]),
        "k": ir.PrimType("int64"),
    }
    params = [relax.Var(name, type_) for name, type_ in types.items()]
    np.save(tmp_path / "x.npy", np.zeros(5, "float32"))
    host = Host(relax.Function(params, relax.SeqExpr([], params[0]), params[0].ty))
    host.type(tmp_path / "x.npy")
    assert "s: Shape[(5,)]; k: int64 8" in host.line
    assert list(host.sizes) == ["k"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none.png", "No such file or directory"),
        ("text.png", "is neither arrays nor a whole image"),
        ("wrong.npy", "'x' has dtype float64, the function wants float32"),
        ("", "is a folder without images"),
        ("~nobody-of-this-name/x.npy", "home"),
    ],
)
def test_a_file_that_is_none_is_told_and_nothing_is_heard(tmp_path, name, words):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "text.png").write_text("text")
    np.save(folder / "wrong.npy", np.zeros((1, 784)))
    host = Host(given=X)
    host.type(name if name.startswith("~") else folder / name if name else tmp_path)
    assert refuses(host, words)
    assert host.heard == []


def test_a_file_that_was_mended_is_read_again(tmp_path):
    host = Host()
    host.type(tmp_path / "x.npy")
    assert refuses(host, "No such file")
    np.save(tmp_path / "x.npy", X)
    host.find("read").click()
    assert len(host.heard) == 1
    assert "3 cases" in host.line


def test_all_stages_are_given_what_the_file_held(tmp_path):
    np.save(tmp_path / "x.npy", X)
    host = Host()
    host.type(tmp_path / "x.npy")
    (tmp_path / "x.npy").unlink()
    host.panel.show(STATIC, host.params)
    assert "3 cases" in host.line
    assert len(host.heard) == 1


# --- the rest ----------------------------------------------------------------------------------


def test_a_stage_that_the_inputs_do_not_fit_says_so():
    host = Host(given=np.zeros((3, 700), "float32"))
    assert refuses(host, "'x' has shape (1, 700), the function wants (1, m)")
    assert "before" not in host.line


def test_nothing_is_shown_of_a_function_without_such_inputs():
    host = Host()
    host.panel.show(None, host.params)
    assert host.panel.widget.layout.display == "none"
    host.choose("zeros")
    assert host.heard == []
    host.panel.show(SYMBOLIC, host.params)
    assert host.panel.widget.layout.display == ""


def test_a_prim_func_is_given_what_is_named_as_its_own():
    x = np.ones((1, 5), "float32")
    host = Host(MODULES["MyModuleMixture"]["linear0"], given={"X": x, "y": x})
    assert host.line.startswith("X: Tensor[(1, 5)] as given; W: Tensor[(8, 5)] random, seed 0; ")
    assert list(host.sizes) == ["n"]
    assert host.sees("seed")
    host = Host(MODULES["MyModuleMixture"]["linear0"], params={"X": x})
    assert host.line.startswith("X: Tensor[(1, 8)] random, seed 0; ")


def test_names_are_text_and_no_html():
    x = relax.Var("<img src=x>", relax.TensorType([2], "float32"))
    host = Host(relax.Function([x], relax.SeqExpr([], x), x.ty))
    assert "<img" not in host.html
    assert "&lt;img src=x&gt;: Tensor[(2,)] random" in host.html

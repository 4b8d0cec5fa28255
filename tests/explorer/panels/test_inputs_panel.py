"""The reader chooses what a run is given, and is told what that is, or why it cannot be."""

import html
import re

import numpy as np
import pytest
from PIL import Image
from tvm import ir, relax, tirx

from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MODULES, MyModule, MyModuleStatic
from irviz.explorer.actions import Focus, SetInputs, SetSession
from irviz.explorer.panels.results_panel import InputsPanel
from irviz.runtime.call_inputs import plan_inputs
from irviz.session.session import Session
from irviz.transforms.stage import Stage
from tests.cached_models import effects

SYMBOLIC, STATIC = MyModule["main"], MyModuleStatic["main"]
PARAMS = mlp_params()
X = np.zeros((3, 784), "float32")


@pytest.fixture
def hosted(desk_class):  # noqa: C901 - a class
    """Returns the panel for a function, used as a reader does."""

    class Host(desk_class):
        def __init__(self, function=SYMBOLIC, params=None, given=None, seed=0, sizes=None):
            self.heard = []
            self.params = PARAMS if params is None else params
            arguments = {"inputs": given, "seed": seed, "sizes": sizes, "params": self.params}
            super().__init__(Session(_module(function), **arguments), InputsPanel)
            self.store.listen(self.listen)

        def listen(self, action, _):
            if isinstance(action, SetInputs):
                self.heard.append((action.inputs, action.seed, dict(action.sizes)))

        def show(self, function):
            """Let a stage have this function."""
            stage = Stage(str(len(self.session.stages)), _module(function), parent="0")
            self.dispatch(SetSession(self.session.add_stages([stage])))

        def part(self, name):
            return self.find(f"irviz-inputs-{name}")

        def choose(self, source):
            self.part("source").value = source

        def type(self, path):
            self.choose("file")
            self.part("path").value = str(path)

        @property
        def sizes(self):
            return {one.description: one for one in self.part("sizes").children}

        @property
        def line(self):
            return html.unescape(re.sub(r"<br>", "; ", re.sub(r"</?p[^>]*>", "", self.shown)))

        @property
        def shown(self):
            return self.part("line").value.strip()

        def offers(self, name):
            return self.sees(f"irviz-inputs-{name}")

    return Host


def _module(function):
    """Return a module with a function to look at, which is "main"."""
    if function is None:
        return ir.IRModule({})
    return ir.IRModule({"main": function.with_attr("global_symbol", "main")})


def refuses(host, words):
    assert "irviz-error" in host.shown
    assert words in host.line
    return True


# --- where inputs come from --------------------------------------------------------------------


def test_what_will_be_given_is_said_at_first(hosted):
    assert hosted().line == "x: Tensor[(1, 784)] random, seed 0"
    assert hosted(given=X).line == "x: Tensor[(1, 784)] as given, 3 cases"
    assert hosted(given="zeros").line == "x: Tensor[(1, 784)] zeros"
    assert hosted(seed=4).line == "x: Tensor[(1, 784)] random, seed 4"
    assert hosted().heard == []


def test_own_inputs_can_be_chosen_where_there_are_some(hosted):
    assert [name for name, _ in hosted().part("source").options] == ["random", "zeros", "file"]
    host = hosted(given=X)
    assert host.part("source").options[0] == ("as given", "given")
    host.choose("zeros")
    host.choose("given")
    assert host.heard == [("zeros", 0, {}), (X, 0, {})]
    assert host.heard[1][0] is X


def test_a_choice_is_heard_with_the_seed(hosted):
    host = hosted()
    host.part("seed").value = 7
    host.choose("zeros")
    assert host.heard == [("random", 7, {}), ("zeros", 7, {})]
    assert host.line == "x: Tensor[(1, 784)] zeros"


def test_a_seed_and_a_file_are_asked_for_where_they_matter(hosted):
    host = hosted(given=X)
    assert not host.offers("seed")
    host.choose("random")
    assert host.offers("seed")
    host.choose("file")
    assert not host.offers("seed")
    assert hosted(given={"x": "random"}).offers("seed")


def test_all_inputs_are_named_but_not_too_many(hosted):
    host = hosted(STATIC, {})
    assert host.line.startswith("x: Tensor[(1, 784)] random, seed 0; w0: Tensor[(128, 784)] random")
    assert host.line.endswith("; … and 1 more")
    bound = relax.transform.BindParams("main", {"x": X[:1]})(MyModuleStatic)["main"]
    assert hosted(bound).line == "no inputs: the parameters are all given"


# --- sizes -------------------------------------------------------------------------------------


def test_sizes_are_asked_for_where_nothing_tells_them(hosted):
    assert hosted().sizes == {}
    host = hosted(params={})
    assert {name: field.value for name, field in host.sizes.items()} == {"m": 8, "n": 8, "k": 8}
    host.sizes["n"].value = 128
    assert host.heard == [("random", 0, {"n": 128})]
    assert "b0: Tensor[(128,)] random" in host.line
    assert hosted(params={}, given={**PARAMS, "x": X}).sizes == {}
    assert list(hosted(params={}, given={**PARAMS, "x": "zeros", "w0": "zeros"}).sizes) == ["m"]


def test_sizes_are_asked_for_once_and_stay_while_stages_change(hosted):
    host = hosted(params={}, sizes={"m": 5})
    host.sizes["n"].value = 16
    host.show(STATIC)
    assert host.sizes == {}
    assert not host.offers("sizes")
    host.show(MODULES["MyModuleMixture"]["main"])
    host.show(MyModule["main"])
    assert {name: field.value for name, field in host.sizes.items()} == {"m": 5, "n": 16, "k": 8}
    assert host.heard == [("random", 0, {"m": 5, "n": 16})]


def test_sizes_that_arrays_tell_are_not_said_again(hosted):
    host = hosted(params={}, given={**PARAMS, "x": X}, sizes={"n": 5, "q": 2})
    assert host.line.startswith("x: Tensor[(1, 784)] as given, 3 cases")
    host.choose("random")
    host.choose("given")
    assert [sizes for _, _, sizes in host.heard] == [{"n": 5, "q": 2}, {"q": 2}]


def test_a_size_that_cannot_be_is_told_and_nothing_is_heard(hosted):
    host = hosted(params={})
    host.sizes["n"].value = 10**12
    assert refuses(host, "take 68,000,000,000,064 bytes")
    assert refuses(host, "runs are still given what was chosen before")
    assert host.heard == []
    host.show(STATIC)
    assert refuses(host, "runs are still given what was chosen before")
    host.show(SYMBOLIC)
    host.sizes["n"].value = 4
    assert [sizes for _, _, sizes in host.heard] == [{"n": 4}]
    assert "error" not in host.shown


def test_a_size_is_shown_as_it_is_taken(hosted):
    n = tirx.Var("n", "int64")
    x = relax.Var("x", relax.TensorType([n // 16, n], "float32"))
    function = relax.Function([x], relax.SeqExpr([], x), x.ty)
    assert hosted(function).sizes["n"].value == 16


# --- files -------------------------------------------------------------------------------------


@pytest.mark.worker
def test_an_image_is_made_to_fit_the_input(hosted, tmp_path):
    picture = np.rint(digits().images[0].reshape(28, 28) * 255).astype("uint8")
    Image.fromarray(picture).save(tmp_path / "five.png")
    host = hosted()
    host.choose("file")
    assert host.heard == []
    words = "give the path of an .npy, an .npz, an image, or a folder of images"
    assert words in host.error_at("irviz-inputs-path")
    host.type(tmp_path / "five.png")
    assert host.line == f"x: Tensor[(1, 784)] from {tmp_path / 'five.png'}"
    ((inputs, _, _),) = host.heard
    (case,) = plan_inputs(SYMBOLIC, inputs, PARAMS).argument_lists()
    assert (case[0][0] == digits().images[0]).all()


@pytest.mark.worker
def test_a_folder_of_images_has_a_case_for_each(hosted, tmp_path):
    for number in range(3):
        Image.new("L", (5, 5), number).save(tmp_path / f"{number}.png")
    host = hosted(STATIC)
    host.type(tmp_path)
    assert host.line.endswith(", 3 cases")


def test_arrays_of_a_file_tell_the_sizes(hosted, tmp_path):
    np.savez(tmp_path / "all.npz", x=X, **PARAMS)
    host = hosted(params={}, sizes={"n": 3})
    host.type(tmp_path / "all.npz")
    assert host.sizes == {}
    assert host.heard[0][2] == {}
    assert "w0: Tensor[(128, 784)] from" in host.line


def test_what_no_file_holds_is_made_up(hosted, tmp_path):
    n = tirx.Var("n", "int64")
    types = {
        "x": relax.TensorType([n], "float32"),
        "s": relax.ShapeType([n]),
        "k": ir.PrimType("int64"),
    }
    params = [relax.Var(name, type_) for name, type_ in types.items()]
    np.save(tmp_path / "x.npy", np.zeros(5, "float32"))
    host = hosted(relax.Function(params, relax.SeqExpr([], params[0]), params[0].ty))
    host.type(tmp_path / "x.npy")
    assert "s: Shape[(5,)]; k: int64 8" in host.line
    assert list(host.sizes) == ["k"]


@pytest.mark.worker
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none.png", "No such file or directory"),
        ("text.png", "is neither an array nor a whole image"),
        ("wrong.npy", "'x' has dtype float64, the function wants float32"),
        ("", "is a folder without images"),
        ("~nobody-of-this-name/x.npy", "home"),
    ],
)
def test_a_file_that_is_none_is_told_and_nothing_is_heard(hosted, tmp_path, name, words):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "text.png").write_text("text")
    np.save(folder / "wrong.npy", np.zeros((1, 784)))
    host = hosted(given=X)
    host.type(name if name.startswith("~") else folder / name if name else tmp_path)
    assert words in host.error_at("irviz-inputs-path") or refuses(host, words)
    assert host.heard == []


def test_a_file_that_was_mended_is_read_again(hosted, tmp_path):
    host = hosted()
    host.type(tmp_path / "x.npy")
    assert "No such file" in host.error_at("irviz-inputs-path")
    assert "runs are still given what was chosen before" in host.error_at("irviz-inputs-path")
    np.save(tmp_path / "x.npy", X)
    host.part("read").click()
    assert len(host.heard) == 1
    assert "3 cases" in host.line
    assert host.error_at("irviz-inputs-path") == ""


def test_all_stages_are_given_what_the_file_held(hosted, tmp_path):
    np.save(tmp_path / "x.npy", X)
    host = hosted()
    host.type(tmp_path / "x.npy")
    (tmp_path / "x.npy").unlink()
    host.show(STATIC)
    assert "3 cases" in host.line
    assert len(host.heard) == 1


# --- the rest ----------------------------------------------------------------------------------


def test_a_stage_that_the_inputs_do_not_fit_says_so(hosted):
    host = hosted(given=np.zeros((3, 700), "float32"))
    assert refuses(host, "'x' has shape (1, 700), the function wants (1, m)")
    assert "before" not in host.line


def test_nothing_is_shown_of_a_function_without_such_inputs(hosted):
    host = hosted()
    host.show(None)
    assert host.panel.widget.layout.display == "none"
    host.choose("zeros")
    assert host.heard == []
    host.show(SYMBOLIC)
    assert host.panel.widget.layout.display == ""


def test_a_prim_func_is_given_what_is_named_as_its_own(hosted):
    x = np.ones((1, 5), "float32")
    host = hosted(MODULES["MyModuleMixture"]["linear0"], given={"X": x, "y": x})
    assert host.line.startswith("X: Tensor[(1, 5)] as given; W: Tensor[(8, 5)] random, seed 0; ")
    assert list(host.sizes) == ["n"]
    assert host.offers("seed")
    host = hosted(MODULES["MyModuleMixture"]["linear0"], params={"X": x})
    assert host.line.startswith("X: Tensor[(1, 8)] random, seed 0; ")


def test_names_are_text_and_no_html(hosted):
    x = relax.Var("<img src=x>", relax.TensorType([2], "float32"))
    host = hosted(relax.Function([x], relax.SeqExpr([], x), x.ty))
    assert "<img" not in host.shown
    assert "&lt;img src=x&gt;: Tensor[(2,)] random" in host.shown


def test_inputs_that_were_given_to_another_function_are_not_said_to_be_used(desk_class):
    """A PrimFunc takes arrays by the names of its parameters, and random numbers for others."""
    desk = desk_class(Session(MyModule, params=PARAMS, inputs=X), InputsPanel)
    source = desk.find("irviz-inputs-source")
    assert source.label == "as given"
    desk.dispatch(Focus("relu0"))
    assert source.label == "random, as nothing given fits"
    assert "random, seed 0" in desk.text("irviz-inputs-line")
    desk.dispatch(Focus("main"))
    assert source.label == "as given"


def test_a_cache_is_said_to_be_made(desk_class):
    desk = desk_class(Session(effects()), InputsPanel)
    desk.dispatch(Focus("prefill"))
    assert [one.description for one in desk.find("irviz-inputs-sizes").children] == ["length"]
    desk.dispatch(Focus("decode"))
    assert not desk.sees("irviz-inputs-sizes")
    made = "packed_effects: made by _initialize_effect(), after prefill of 8 tokens"
    desk = desk_class(Session(effects("packed")).select_function("decode"), InputsPanel)
    assert made in desk.text("irviz-inputs-line")

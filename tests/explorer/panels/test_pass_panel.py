"""A pass is found by name or words, asked for what it takes, previewed and applied."""

import numpy as np
import pytest
from tvm import IRModule, relax

from irviz.course.digits import mlp_params
from irviz.course.mlp import MODULES
from irviz.explorer.actions import SetField, SetLimit, SetSession
from irviz.explorer.effects import Effects
from irviz.explorer.panels.pass_panel import PassPanel
from irviz.model.graph.graph import NodeKind
from irviz.session.session import Session
from irviz.transforms.passes.catalog import GROUPS, catalog, register_pass
from irviz.transforms.passes.parameters import ParameterKind
from tests.event_loop import in_kernel, until

pytestmark = pytest.mark.worker

PARAMS = mlp_params()


@pytest.fixture
def opened_panel(desk_class):  # noqa: C901 - a class
    """Returns the panel on one of the course's modules, used as a reader does."""

    class Passes(desk_class):
        def __init__(self, name="MyModuleStatic"):
            super().__init__(Session(MODULES[name], params=PARAMS), PassPanel, effects=Effects)

        def type(self, words):
            self.find("irviz-pass-name").value = words

        @property
        def form(self):
            return self.panel.form

        def field(self, name):
            return self.form.fields[name]

        def apply(self):
            self.press("Apply pass")
            return self.session.current

        def preview(self):
            self.press("Preview")
            return self.words

        @property
        def words(self):
            return self.html("irviz-pass-preview")

        @property
        def list(self):
            return self.find("irviz-pass-name")

        @property
        def found(self):
            return [card["name"] for card in self.list.cards]

        @property
        def chosen(self):
            return self.list.chosen

        def card(self, name):
            return next(card for card in self.list.cards if card["name"] == name)

    return Passes


@pytest.fixture
def desk(opened_panel):
    return opened_panel()


# --- finding -----------------------------------------------------------------------------------


def test_at_first_the_passes_of_the_course_that_fit_the_stage_are_listed(opened_panel):
    desk = opened_panel("MyModuleHighLevel")
    assert desk.found[0] == "relax.LegalizeOps"
    assert "relax.FuseOps" not in desk.found
    desk.type("LegalizeOps")
    desk.apply()
    desk.type("")
    assert "relax.LegalizeOps" not in desk.found
    assert {"relax.AnnotateTIROpPattern", "relax.FuseOps"} <= set(desk.found)


def test_all_passes_can_be_listed_by_group_and_none_is_chosen(desk):
    desk.find("irviz-pass-group").value = "all passes"
    assert desk.found == [entry.full_name for entry in catalog()]
    assert desk.chosen == ""
    card = desk.card("relax.FoldConstant")
    assert (card["title"], card["tag"]) == ("FoldConstant", "relax")
    assert card["summary"].startswith("Fold constant")


def test_words_narrow_the_list_and_a_whole_name_chooses(desk):
    desk.type("dead code")
    assert desk.found == ["relax.DeadCodeElimination"]
    assert desk.chosen == ""
    desk.type("FuseOps")
    assert desk.found[:2] == ["relax.FuseOps", "relax.FuseOpsByPattern"]
    assert desk.chosen == "relax.FuseOps"
    desk.type("s_tir.StmtSimplify")
    assert desk.chosen == "s_tir.StmtSimplify"


def test_a_group_can_be_looked_at_alone(desk):
    assert desk.find("irviz-pass-group").options[2:] == GROUPS
    desk.find("irviz-pass-group").value = "pipelines"
    assert {full_name.partition(".")[0] for full_name in desk.found} == {"pipeline"}
    desk.type("zero")
    assert desk.chosen == "pipeline.zero"


def test_choosing_from_the_list_shows_the_form(desk):
    desk.find("irviz-pass-group").value = "relax"
    desk.list.chosen = "relax.FuseOps"
    assert list(desk.form.fields) == ["fuse_opt_level"]
    desk.type("fold")
    assert desk.chosen == ""
    assert desk.form.fields == {}


def test_what_is_typed_stays_when_the_session_goes_on(desk):
    desk.type("FuseOps")
    desk.field("fuse_opt_level").value = "3"
    field = desk.field("fuse_opt_level")
    desk.apply()
    assert desk.find("irviz-pass-name").value == "FuseOps"
    assert desk.chosen == "relax.FuseOps"
    assert desk.field("fuse_opt_level") is field
    assert field.value == "3"


@pytest.mark.usefixtures("forgets_registrations")
def test_a_pass_that_is_registered_later_is_listed(desk):
    desk.find("irviz-pass-group").value = "all passes"

    @register_pass("of <mine>")
    def of_mine(depth: int = 2):
        """Do <it>."""
        return relax.transform.FuseOps(depth)

    desk.dispatch(SetSession(desk.session.rename("0", "another name")))
    assert "yours.of <mine>" in desk.found
    desk.type("of <mine>")
    assert desk.card("yours.of <mine>")["summary"] == "Do <it>."
    desk.field("depth").value = "1"
    assert desk.apply().label == "of <mine>(depth=1)"


# --- forms -------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", catalog(), ids=lambda entry: entry.full_name)
def test_every_parameter_has_a_fitting_control_or_says_that_it_is_for_code(opened_panel, entry):
    desk = opened_panel("MyModule")
    desk.find("irviz-pass-group").value = "all passes"
    desk.list.chosen = entry.full_name
    form = desk.form
    if entry.code_only:
        assert form.fields == {}
        assert desk.button("Apply pass").disabled
        assert desk.button("Preview").disabled
        assert "<code>session.apply(" in desk.html("irviz-pass-code")
        return
    for one in entry.parameters:
        if one.kind is ParameterKind.CODE:
            assert one.name not in form.fields
            hints = [getattr(row, "value", "") for row in form.widget.children]
            assert any(f"{one.name} is for code" in hint for hint in hints)
        else:
            wanted = {
                ParameterKind.BOOL: "Checkbox",
                ParameterKind.CHOICE: "Dropdown",
                ParameterKind.FUNCTION: "Dropdown",
                ParameterKind.TARGET: "Combobox",
                ParameterKind.DEVICE: "Combobox",
                ParameterKind.PATTERNS: "Combobox",
                ParameterKind.VARS: "Chips",
                ParameterKind.NAMES: "Chips",
                ParameterKind.FUNCTIONS: "Chips",
                ParameterKind.PARAMS: "Chips",
            }.get(one.kind)
            control = type(form.fields[one.name]).__name__
            assert control == wanted or (wanted is None and control == "Text")
    empty = {"binding_map", "desired_layouts"}
    if not empty & form.fields.keys():  # what a form begins with is what is applied
        given = form.arguments()
        required = {one.name for one in entry.parameters if one.is_required}
        assert required <= given.keys() <= required | {"work_dir"}


def test_a_number_and_a_choice_and_a_flag_are_given(desk):
    desk.type("TopologicalSort")
    desk.field("direction").value = "from-outputs"
    assert desk.apply().label == "TopologicalSort(direction='from-outputs')"
    desk.type("EliminateCommonSubexpr")
    desk.field("call_only").value = True
    assert desk.apply().label == "EliminateCommonSubexpr(call_only=True)"
    desk.type("HoistIfThenElse")
    assert desk.field("variant").options == (("–", None), ("basic", "basic"))
    assert desk.apply().label == "s_tir.HoistIfThenElse"
    assert [stage.error for stage in desk.session.stages] == [""] * 4


def test_a_number_beyond_those_of_tvm_is_refused_at_its_field_and_makes_no_stage(desk):
    desk.type("FuseOps")
    field, below = desk.field("fuse_opt_level"), "irviz-pass-fuse_opt_level"
    for number in ("99999999999999999999", "-99999999999999999999", "1e20", "two"):
        field.value = number
        desk.apply()
        assert number in desk.error_at(below)
        assert "takes a whole number of 64 bits" in desk.error_at(below)
        assert len(desk.session.stages) == 1
    field.value = "1"
    assert desk.error_at(below) == ""
    assert desk.apply().label == "FuseOps(fuse_opt_level=1)"


def test_lists_are_written_with_commas(desk):
    desk.type("LegalizeOps")
    desk.field("skip_ops").value = " relax.add, relax.matmul "
    assert desk.apply().label == "LegalizeOps(skip_ops=['relax.add', 'relax.matmul'])"


def test_parameters_are_those_of_the_chosen_function(opened_panel, modules):
    desk = opened_panel()
    desk.dispatch(SetSession(Session(modules.EveryKind)))
    desk.type("Gradient")
    names = [name for name, _ in desk.field("func_name").options]
    assert desk.field("func_name").value == desk.session.function
    for name in names:
        desk.field("func_name").value = name
        params = [param.name for param in desk.session.stages[0].module[name].params]
        assert desk.field("require_grads").options == params


def test_the_sessions_arrays_are_bound(desk):
    desk.type("BindParams")
    assert desk.field("params").value == ["w0", "b0", "w1", "b1"]
    desk.field("params").value = ["w0", "b1"]
    stage = desk.apply()
    assert (stage.error, stage.label) == ("", "BindParams(func_name='main', params={w0, b1})")
    assert [param.name for param in stage.module["main"].params] == ["x", "b0", "w1"]


def test_arrays_can_be_read_from_a_file(desk, tmp_path):
    np.savez(tmp_path / "weights.npz", w1=PARAMS["w1"])
    desk.type("BindParams")
    desk.form.paths["params"].value = str(tmp_path / "weights.npz")
    assert desk.apply().label == "BindParams(func_name='main', params={w1})"
    desk.form.paths["params"].value = str(tmp_path / "nothing.npz")
    desk.apply()
    assert "nothing.npz" in desk.error_at("irviz-pass-file")
    assert len(desk.session.stages) == 2


def test_sizes_are_written_by_the_names_of_the_variables(opened_panel):
    desk = opened_panel("MyModule")
    desk.type("BindSymbolicVars")
    field = desk.field("binding_map")
    assert sorted(field.placeholder.split(", ")) == ["k=1", "m=1", "n=1"]
    field.value = "n=128, m = 784"
    stage = desk.apply()
    assert (stage.error, stage.label) == (
        "",
        "BindSymbolicVars(binding_map={'n': 128, 'm': 784})",
    )
    assert desk.field("binding_map").placeholder == "k=1"
    field.value = "n is 128"
    desk.apply()
    below = "irviz-pass-binding_map"
    assert "binding_map is 'n is 128', and takes sizes by the name" in desk.error_at(below)
    assert desk.said == ""
    field.value = ""
    desk.apply()
    assert "binding_map is empty, and takes sizes by the name" in desk.error_at(below)
    field.value = "k=2"
    assert desk.error_at(below) == ""


def test_layouts_are_written_by_the_names_of_the_operators(desk):
    desk.type("ConvertLayout")
    desk.field("desired_layouts").value = "relax.nn.conv2d: NHWC, OHWI; relax.nn.conv1d: NWC"
    assert desk.form.arguments() == {
        "desired_layouts": {"relax.nn.conv2d": ("NHWC", "OHWI"), "relax.nn.conv1d": ("NWC",)}
    }
    desk.field("desired_layouts").value = "NHWC"
    desk.apply()
    assert "write relax.nn.conv2d: NHWC, OHWI" in desk.error_at("irviz-pass-desired_layouts")


def test_a_target_is_chosen_or_written(desk):
    desk.type("BindTarget")
    assert desk.field("target").value == "llvm"
    assert "cuda" in desk.field("target").options
    desk.field("target").value = '{"kind": "llvm", "num-cores": 2}'
    assert desk.apply().error == ""
    desk.field("target").value = "nonsense"
    desk.apply()
    assert "'nonsense' is not a target" in desk.error_at("irviz-pass-target")


# --- applying ----------------------------------------------------------------------------------


def test_a_part_of_a_name_is_enough_to_apply_the_first_pass_that_it_fits(desk):
    desk.type("fuse")
    assert desk.found[0] == "relax.FuseOps"
    assert desk.apply().label == "FuseOps"
    assert desk.chosen == "relax.FuseOps"


def test_words_that_fit_no_pass_are_refused_until_something_else_is_typed_or_chosen(desk):
    desk.type("NoSuchPass")
    desk.apply()
    below = "irviz-pass-name"
    assert "no pass has 'NoSuchPass' in its name or in what it does" in desk.error_at(below)
    desk.type("")
    assert desk.error_at(below) == ""
    desk.apply()
    assert "no pass is chosen: choose one from the list" in desk.error_at(below)
    desk.list.chosen = "relax.FuseOps"
    assert desk.error_at(below) == ""
    assert desk.apply().label == "FuseOps"
    assert len(desk.session.stages) == 2


def test_a_suggested_pass_has_what_it_would_change_once_that_is_known(opened_panel):
    desk = opened_panel("MyModuleHighLevel")
    assert desk.card("relax.LegalizeOps")["would"] == ""

    @in_kernel
    async def look():
        desk.dispatch(SetField("tab", "Transform"))
        await until(lambda: desk.card("relax.LegalizeOps")["would"] == "would change 7 nodes")
        await until(lambda: desk.card("relax.DeadCodeElimination")["would"])

    assert desk.card("relax.DeadCodeElimination")["would"] == "would change nothing"
    desk.type("LegalizeOps")
    desk.apply()
    assert desk.card("relax.LegalizeOps")["would"] == ""  # of this stage it is not known


def test_a_preview_says_what_would_change_and_changes_nothing(desk):
    desk.type("LowerInitBlock")
    words = "it would change: 2 bindings; 3 functions changed (main, linear0, linear1)"
    assert words in desk.preview()
    assert len(desk.session.stages) == 1
    desk.type("FoldConstant")
    assert desk.words == ""
    assert "it would change nothing" in desk.preview()


def test_a_preview_names_the_nodes_that_it_would_change(opened_panel):
    desk = opened_panel("MyModuleHighLevel")
    operators = {n.id for n in desk.session.graph().nodes if n.kind is NodeKind.OPERATOR}
    desk.type("LegalizeOps")
    desk.preview()
    assert operators
    assert set(desk.state.preview.nodes) == operators
    desk.dispatch(SetField("preview", None))
    assert desk.state.preview is None
    assert desk.words == ""


def test_a_preview_is_forgotten_when_it_is_of_something_else(desk):
    desk.type("FuseOps")
    assert desk.preview()
    desk.field("fuse_opt_level").value = "0"
    assert desk.words == ""
    assert desk.preview()
    desk.dispatch(SetLimit("seconds", 30.0))
    assert desk.words
    desk.apply()
    assert desk.words == ""


def test_a_preview_of_what_fails_or_ends_the_process_says_so(desk):
    desk.type("Gradient")
    assert "it would fail: InternalError" in desk.preview()
    assert 'class="irviz-error"' in desk.words
    desk.type("NarrowDataType")
    assert "it would fail: CrashedError: it ended the process" in desk.preview()
    desk.type("NoSuchPass")
    assert desk.preview() == ""
    assert "no pass has 'NoSuchPass'" in desk.error_at("irviz-pass-name")


def test_tuning_has_no_preview(desk, tmp_path):
    desk.type("MetaScheduleTuneTIR")
    desk.field("work_dir").value = str(tmp_path)
    assert desk.field("max_trials_global").value == "16"
    assert "it cannot be tried apart" in desk.preview()


def test_a_module_without_relax_functions_has_none_to_choose(opened_panel):
    prim_funcs = {
        g: f for g, f in MODULES["MyModuleStatic"].functions.items() if "main" not in g.name_hint
    }
    desk = opened_panel()
    desk.dispatch(SetSession(Session(IRModule(prim_funcs))))
    desk.type("Gradient")
    assert desk.field("func_name").options == ()
    desk.apply()
    words = "func_name is empty, and takes the name of a Relax function"
    assert words in desk.error_at("irviz-pass-func_name")
    desk.type("LowerInitBlock")
    assert desk.apply().error == ""

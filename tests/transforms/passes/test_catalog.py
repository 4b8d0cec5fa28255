"""The catalog lists every pass of TVM, its pipelines and the user's own, and finds them."""

import inspect
import re
import warnings

import pytest
import tvm
from tvm import relax, s_tir, tirx

from irviz.course.mlp import MODULES
from irviz.errors import TransformError
from irviz.transforms.apply_transform import apply_transform
from irviz.transforms.passes import pass_metadata
from irviz.transforms.passes.catalog import GROUPS, TargetUse, catalog, find, search
from irviz.transforms.passes.pass_transform import named_pass
from irviz.transforms.stage import Stage, Transform

NAMESPACES = {"relax": relax.transform, "tirx": tirx.transform, "s_tir": s_tir.transform}


def names(group):
    return [entry.name for entry in catalog() if entry.group == group]


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_whatever_makes_a_pass_without_arguments_is_there(namespace):
    """TVM itself is asked what makes a pass, which the catalog does not do."""
    there = {entry.name for entry in catalog() if entry.namespace == namespace}
    found = set()
    for name, member in vars(NAMESPACES[namespace]).items():
        if name[0].isupper() and callable(member):
            with warnings.catch_warnings(record=True) as outdated:
                warnings.simplefilter("always")
                try:
                    made = member()
                except (TypeError, ValueError, RuntimeError):
                    continue
            if isinstance(made, tvm.ir.transform.Pass) and not outdated:
                found.add(name)
    assert len(found) > 20
    assert found <= there


def test_those_with_required_arguments_are_there_too():
    assert {"BindParams", "Gradient", "BindSymbolicVars", "FuseOpsByPattern"} <= set(names("relax"))
    assert {"BindTarget", "NarrowDataType", "Filter"} <= set(names("tirx"))
    assert "ThreadSync" in names("s_tir")


def test_what_is_no_pass_is_not_there():
    everything = {entry.name for entry in catalog()}
    assert everything.isdisjoint(
        {
            *("FunctionPass", "DataflowBlockPass", "PrimFuncPass", "FusionPattern", "Callable"),
            *("PatternCheckContext", "HoistedConditionals", "HoistedLetBindings"),
            *("function_pass", "dataflowblock_pass", "prim_func_pass", "Optional"),
        }
    )
    assert not [name for name in everything if name.endswith("Config")]


def test_what_tvm_calls_outdated_is_not_there():
    for name in pass_metadata.NO_ENTRY:
        with pytest.warns(UserWarning, match="renamed"):
            getattr(relax.transform, name)()
        with pytest.raises(TransformError):
            find(name)


@pytest.mark.parametrize("entry", catalog(), ids=lambda entry: entry.full_name)
def test_every_entry_can_be_found_and_says_what_it_does(entry):
    assert find(entry.full_name) == entry
    assert entry in search(entry.name)[:3]
    assert entry.group in GROUPS
    assert entry.summary == entry.summary.strip()
    assert entry.summary
    assert "\n" not in entry.summary
    assert bool(entry.code_only) == any(
        one.is_required and one.kind.name == "CODE" for one in entry.parameters
    )
    if not any(one.is_required for one in entry.parameters):
        made = named_pass(entry.full_name)
        assert isinstance(made, Transform)
        assert made.label == entry.label


def test_they_are_grouped_and_within_a_group_by_name():
    listed = [(GROUPS.index(entry.group), entry.name) for entry in catalog()]
    assert listed == sorted(listed)
    assert "FoldConstant" in names("relax")
    assert {"AdjustMatmulOrder", "CombineParallelMatmul"} <= set(names("operator rewrites"))


def test_no_two_have_the_same_full_name():
    full = [entry.full_name for entry in catalog()]
    assert len(full) == len(set(full))


def test_the_catalog_is_made_only_once():
    assert catalog()[0] is catalog()[0]


def test_a_name_that_two_have_means_relaxs_or_has_to_be_said_in_full():
    assert find("InlinePrivateFunctions").namespace == "relax"
    assert find("tirx.InlinePrivateFunctions").namespace == "tirx"
    sentence = "2 passes are called 'StmtSimplify': say 'tirx.StmtSimplify' or 's_tir.StmtSimplify'"
    with pytest.raises(TransformError, match=re.escape(sentence)):
        named_pass("StmtSimplify")
    assert find("s_tir.StmtSimplify").make is s_tir.transform.StmtSimplify


@pytest.mark.parametrize("name", ["NoSuchPass", "", "legalizeops", "VMBuiltinLower"])
def test_an_unknown_pass_is_refused(name):
    with pytest.raises(TransformError, match=re.escape(f"the catalog has no pass {name!r}")):
        named_pass(name)


def test_an_unknown_name_is_told_what_is_near_it():
    with pytest.raises(TransformError, match=r"nearest are 'relax\.FoldConstant'"):
        find("foldconstants")


# --- search ------------------------------------------------------------------------------------


def test_a_search_has_the_best_first():
    fuse = [entry.name for entry in search("fuse")]
    assert fuse[:3] == ["FuseOps", "FuseTIR", "FuseOpsByPattern"]
    assert fuse.index("FuseOpsByPattern") < fuse.index("MergeCompositeFunctions")
    assert search("fuseops")[0].name == "FuseOps"
    lower = [entry.name.startswith("Lower") for entry in search("lower")]
    assert lower == sorted(lower, reverse=True)  # VMShapeLower after LowerRuntimeBuiltin


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("constant fold", "FoldConstant"),
        ("dead code", "DeadCodeElimination"),
        ("common subexpressions functions", "EliminateCommonSubexpr"),
        ("tirx simplify", "StmtSimplify"),
        ("compilation pipeline target", "default_for_target"),
    ],
)
def test_words_are_looked_for_in_names_and_summaries(words, wanted):
    assert search(words)[0].name == wanted


def test_a_search_for_nothing_lists_all_and_one_for_nonsense_nothing():
    assert search("  ") == catalog()
    assert search("xyzzy") == ()


# --- pipelines ---------------------------------------------------------------------------------


@pytest.mark.worker
def test_pipelines_are_those_that_are_registered_by_now():
    assert {*relax.pipeline.PIPELINE_MAP, "default_for_target"} == set(names("pipelines"))
    try:

        @relax.register_pipeline("of_mine")
        def of_mine(level: int = 1):
            """Fold, of mine."""
            return tvm.transform.Sequential([relax.transform.FuseOps(level)], name="mine")

        entry = find("of_mine")
        assert (entry.group, entry.summary) == ("pipelines", "Fold, of mine.")
        stage = apply_transform(
            Stage("0", MODULES["MyModuleHighLevel"]), named_pass("of_mine", level=2), "1"
        )
        assert (stage.error, stage.label) == ("", "pipeline.of_mine(level=2)")
    finally:
        relax.pipeline.PIPELINE_MAP.pop("of_mine")
    assert "of_mine" not in names("pipelines")


@pytest.mark.worker
@pytest.mark.parametrize("name", ["default", "default_build"])
def test_a_pipeline_takes_a_target_for_granted(name):
    """Operators such as topk are lowered for one."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([4, 8], "float32"))
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.topk(x, 3)))
    stage = Stage("0", builder.get())
    assert not apply_transform(stage, named_pass(name), "1", isolate=False).error
    with tvm.target.Target({"kind": "llvm", "num-cores": 2}):
        assert not apply_transform(stage, named_pass(name), "1", isolate=False).error


@pytest.mark.worker
def test_a_pipeline_does_its_work():
    given = Stage("0", MODULES["MyModuleHighLevel"])
    zero = apply_transform(given, named_pass("zero"), "1")
    assert zero.error == ""
    assert "fused_matmul_add_relu" in zero.module.script()
    lowered = apply_transform(given, named_pass("default_for_target", target="llvm"), "1")
    assert lowered.error == ""
    assert "vm.builtin" in lowered.module.script()


# --- targets -----------------------------------------------------------------------------------

WANTS_TARGET = re.compile("(?<!signature of )target", re.IGNORECASE)
LOWERED = tvm.transform.Sequential(
    [
        s_tir.transform.LowerInitBlock(),
        s_tir.transform.PlanAndUpdateBufferAllocationLocation(),
        s_tir.transform.ConvertBlocksToOpaque(),
        s_tir.transform.CompactBufferAllocation(),
        s_tir.transform.LowerMatchBuffer(),
        s_tir.transform.LowerOpaqueBlock(),
        tirx.transform.FlattenBuffer(),
    ]
)(MODULES["MyModuleStatic"])


def said_by(make, mod):
    """Return the last line of the error that a pass raises, made or run, or ""."""
    try:
        make()(mod)
    except Exception as failure:  # of any class
        return str(failure).strip().splitlines()[-1]
    return ""


def test_a_pass_has_a_target_exactly_when_it_fails_without_one():
    for entry in catalog():
        is_plain = not any(one.is_required for one in entry.parameters)
        if is_plain and entry.namespace in NAMESPACES:
            said = [said_by(entry.make, mod) for mod in (MODULES["MyModuleStatic"], LOWERED)]
            is_wanted = any(WANTS_TARGET.search(line) for line in said)
            assert is_wanted == (entry.needs_target is not TargetUse.NONE), (entry.name, said)


@pytest.mark.worker
@pytest.mark.parametrize("name", [*pass_metadata.AROUND, *pass_metadata.ANNOTATED])
def test_one_that_needs_a_target_gets_one(name):
    entry = find(name)
    target = entry.parameter("target")
    assert (target.is_required, target.default) == (
        False,
        {**pass_metadata.AROUND, **pass_metadata.ANNOTATED}[name],
    )
    if not entry.is_measured:
        stage = apply_transform(Stage("0", LOWERED), named_pass(name), "1")
        assert not WANTS_TARGET.search(stage.error)


@pytest.mark.worker
def test_the_target_can_be_chosen():
    given = Stage("0", LOWERED)
    annotated = apply_transform(given, named_pass("LowerWarpMemory", target="c"), "1")
    assert '"kind": "c"' in annotated.module.script()
    packed = apply_transform(given, named_pass("MakePackedAPI"), "1")
    assert "__tvm_ffi_linear0" in packed.module.script()


def test_every_maker_is_a_function_or_class_of_tvm_that_can_be_imported():
    for entry in catalog():
        if entry.namespace in NAMESPACES and entry.name != "BindParams":
            assert getattr(NAMESPACES[entry.namespace], entry.name) is entry.make
            assert inspect.getmodule(entry.make).__name__.startswith("tvm.")


@pytest.mark.worker
def test_a_pass_of_the_catalog_does_its_work():
    stage = apply_transform(
        Stage("0", MODULES["MyModuleHighLevel"]), named_pass("LegalizeOps"), "1"
    )
    assert stage.error == ""
    assert "call_tir" in stage.module["main"].script()

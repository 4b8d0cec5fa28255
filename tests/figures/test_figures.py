"""The figures of a lecture show what their programs are now, and are readable on a slide."""

import ast
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import irviz
from irviz.cli.main import main
from irviz.course.mlp import MyModuleHighLevel, MyModuleStatic
from irviz.course.mm_relu import MyModule, lecture_schedule
from irviz.errors import DrawError, LoadError
from irviz.figures import Declaration, check_figures, draw_declaration, read_declarations
from irviz.figures.annotated_code import function_lines, without_lines
from irviz.view.lecture_slide import wrapped

pytestmark = pytest.mark.worker

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"


def drawn(**options):
    """Return the picture of a declaration as a tree."""
    (figure,) = draw_declaration(Declaration("one", **options)).values()
    return ElementTree.fromstring(figure.svg)


def words(tree):
    return ["".join(one.itertext()) for one in tree.iter(f"{SVG}text")]


def groups(tree, css_class):
    return [one for one in tree.iter(f"{SVG}g") if css_class in one.get("class", "").split()]


def edges(tree):
    return {(one.get("data-source"), one.get("data-target")) for one in groups(tree, "edge")}


@pytest.mark.build
def test_the_figures_of_the_course_and_the_docs_are_what_their_programs_give_now():
    figures = read_declarations(ROOT / "figures.toml")
    assert len(figures.declarations) > 20
    assert check_figures(figures) == []


def test_a_folder_in_the_module_path_keeps_its_place_when_a_figure_of_it_is_drawn(
    tmp_path, monkeypatch
):
    monkeypatch.syspath_prepend(tmp_path)
    before = [*sys.path]
    draw_declaration(Declaration("one", program="irviz.course.mlp:MyModuleStatic"), tmp_path)
    assert sys.path == before


def test_a_program_that_changed_is_told_with_its_difference(tmp_path, capsys):
    program = tmp_path / "mlp.py"
    program.write_text(MyModuleStatic.script())
    (tmp_path / "figures.toml").write_text(
        'folder = "img"\n[[figure]]\nname = "mlp"\nprogram = "mlp.py"'
    )
    command = ["figures", "--file", str(tmp_path / "figures.toml")]
    assert main(command) == 0
    program.write_text(MyModuleStatic.script().replace("T.max(", "T.min("))
    capsys.readouterr()
    assert main([*command, "--check", "mlp"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"{tmp_path / 'img' / 'mlp.svg'} is not what its program gives now\n")
    assert re.search(r"^\+.*T\.min", said, re.MULTILINE)


def test_another_declaration_is_told_by_the_words_that_it_changes(tmp_path, capsys):
    file = tmp_path / "figures.toml"
    file.write_text(FIGURE.format('highlight = ["lv0"]'))
    command = ["figures", "--file", str(file)]
    assert main(command) == 0
    for more, reason in ((' title = "New"', "+New"), ("", "places or colours differ")):
        file.write_text(FIGURE.format(more))
        assert main([*command, "--check"]) == 1
        assert reason in capsys.readouterr().err
    file.write_text('[[figure]]\nname = "b"\nprogram = "irviz.course.mm_relu:MyModule"')
    assert main([*command, "--check"]) == 1
    said = capsys.readouterr().err
    assert "b.svg is missing" in said
    assert "a.svg is a figure that nothing declares" in said


FIGURE = '[[figure]]\nname = "a"\nprogram = "irviz.course.mlp:MyModuleStatic"\n{}\n'


def test_no_text_is_smaller_on_the_slide_than_was_asked_for():
    tree = drawn(program=MyModuleStatic)
    scale = float(tree.get("width")) / float(tree.get("viewBox").split()[2]) * 0.75
    assert float(tree.get("width")) * 0.75 <= 960.01
    assert float(tree.get("height")) * 0.75 <= 540.01
    sizes = [float(one.get("font-size")) for one in tree.iter() if one.get("font-size")]
    assert min(sizes) * scale >= 13.9
    with pytest.raises(DrawError, match=r"'one': texts such as '.*' would be .* needs .* has 300"):
        drawn(program=MyModuleStatic, size=[300, 200])
    assert drawn(program=MyModuleStatic, size=[300, 200], min_text=5) is not None


def test_the_text_that_would_be_too_small_is_one_of_the_picture():
    tree = drawn(program=MyModuleStatic, min_text=5)
    with pytest.raises(DrawError) as error:
        drawn(program=MyModuleStatic, size=[300, 200])
    assert re.search("such as '(.*?)' would", str(error.value))[1] in words(tree)


def test_types_are_left_out_where_they_would_make_the_text_too_small():
    stages = {"kind": "stages", "transforms": ["LegalizeOps", "AnnotateTIROpPattern", "FuseOps"]}
    few = drawn(program=MyModuleHighLevel, **stages, stages=["1", "3"], min_text=10)
    assert {"lv0", "lv1", "fused_matmul_add_relu"} <= {*words(few)}
    assert not [text for text in words(few) if "(1, " in text]
    all_ = drawn(program=MyModuleHighLevel, **stages, stages=["1", "3"], min_text=5)
    assert "lv1: (1, 128)" in words(all_)


def test_a_figure_of_the_course_has_no_text_that_is_too_small_to_read():
    files = sorted((ROOT / "assets" / "figures").glob("*.svg"))
    trees = {path.stem: ElementTree.fromstring(path.read_text(encoding="utf-8")) for path in files}
    slides = {name: tree for name, tree in trees.items() if tree.get("class") == "irviz figure"}
    assert len(slides) > 30
    for name, tree in slides.items():
        scale = 0.75 * float(tree.get("width")) / float(tree.get("viewBox").split()[2])
        sizes = [float(text.get("font-size", "inf")) for text in tree.iter()]
        assert min(sizes) * scale >= 13.95, name


def test_all_spaces_of_code_are_kept_where_its_colour_changes():
    for options in ({"kind": "parts"}, {"kind": "numpy", "functions": ["linear0"]}):
        tree = drawn(program=MyModuleStatic, **options)
        spans = [one for one in tree.iter(f"{SVG}text") if len(one)]
        assert any((span.text or "").endswith(" ") for one in spans for span in one)
        assert {one.get("{http://www.w3.org/XML/1998/namespace}space") for one in spans} == {
            "preserve"
        }


def test_the_parts_of_a_prim_func_are_framed_and_its_sizes_are_numbers():
    tree = drawn(
        program="irviz.course.graph_rewrites:linear_relu",
        transforms=["LegalizeOps", "AnnotateTIROpPattern", "FuseOps", "FuseTIR"],
        kind="loops",
        function="fused_matmul_add_relu",
    )
    found = words(tree)
    assert [found.count(one) for one in ("loop nest", "block", "initial value")] == [3, 3, 1]
    assert "matmul_intermediate = T.sblock_alloc_buffer((1, 128))" in found
    assert not [text for text in found if "int64" in text]
    rects = [part[0] for part in groups(tree, "part")]
    sides = [
        (x, y, x + width, y + height)
        for x, y, width, height in (
            [float(one.get(name)) for name in ("x", "y", "width", "height")] for one in rects
        )
    ]
    for at, (left, top, right, bottom) in enumerate(sides):  # outer ones first
        for x, y, end, low in sides[at + 1 :]:
            is_inside = left < x and top < y and end < right and low < bottom
            assert is_inside or low <= top or y >= bottom or end <= left or x >= right


def test_the_python_that_made_a_program_is_drawn_before_it():
    made = "irviz.course.te_functions:matmul_relu_module"
    hide = ["def matmul_relu_module", "A = ", "B = ", "builder = ", "return builder"]
    tree = drawn(program=made, kind="parts", source=[made], hide=hide, min_text=5)
    (code,) = groups(tree, "code-panel")
    found = words(code)
    assert found[0] == "with builder.function('main', [A, B]):"
    assert "lv = builder.emit_te(te_matmul, A, B)" in found
    assert not [line for line in found if "emit_output` marks" in line]  # its docstring
    assert groups(tree, "function-parts")
    with pytest.raises(LoadError, match="is not a Python function"):
        drawn(program=MyModuleStatic, kind="parts", source=["irviz.course.mlp:MyModule"])


def test_lines_of_a_pair_and_those_below_them_have_one_number_and_one_ground():
    tree = drawn(
        program="irviz.course.te_functions:matmul_relu",
        kind="code",
        source=[f"irviz.course.te_functions:{name}" for name in ("te_matmul", "te_relu")],
        pairs=[["def te_matmul", "for i, j, k"], ["def te_relu", "for i0, i1"]],
        min_text=5,
    )
    made, code = groups(tree, "code-panel")
    for panel, rows in ((made, [6, 3]), (code, [6, 4])):
        assert [text for text in words(panel) if text.isdigit()] == ["1", "2"]
        heights = [float(one.get("height")) for one in panel.iter(f"{SVG}rect")]
        assert heights == [15.0 * number for number in rows]
    grounds = [[one.get("fill") for one in panel.iter(f"{SVG}rect")] for panel in (made, code)]
    assert grounds[0] == grounds[1]
    assert grounds[0][0] != grounds[0][1]


def test_the_parts_of_a_relax_function_are_named_by_their_fields_and_classes():
    tree = drawn(program="irviz.course.mlp:MyModuleTwoBlocks", kind="parts", min_text=5)
    found = [text for text in words(tree) if "relax." in text or text.startswith(".")]
    assert sorted(found) == sorted(
        [
            "relax.Function",
            ".params[i]: relax.Var",
            ".body: relax.SeqExpr",
            *[".blocks[i]: relax.DataflowBlock"] * 2,
            ".bindings[i]: relax.VarBinding",
            ".var: relax.DataflowVar",
            ".var: relax.Var",
            ".value: relax.Call",
            ".body",
        ]
    )


def test_the_loops_of_a_fused_function_are_below_the_last_stage():
    tree = drawn(
        program="irviz.course.te_functions:matmul_relu_module",
        kind="stages",
        transforms=["CanonicalizeBindings", "AnnotateTIROpPattern", "FuseOps", "FuseTIR"],
        stages=["1", "4"],
        callouts={"gv": "numpy"},
        min_text=5,
    )
    (callout,) = groups(tree, "callout")
    code = words(callout)
    assert code[0] == "def lnumpy_fused_te_matmul_te_relu(A, B, relu_intermediate):"
    assert "matmul_intermediate[i, j] += A[i, k] * B[k, j]" in code
    circles = [one for one in groups(tree, "graph-panel")[-1].iter() if one.get("cy")]
    assert circles
    assert all(float(one.get("cy")) < float(callout[0].get("y")) for one in circles)


def test_stages_end_with_what_is_built_of_them():
    tree = drawn(
        program=MyModuleStatic,
        kind="stages",
        target="llvm",
        captions=["1 develop", "2 build"],
    )
    found = words(tree)
    assert {"1 develop", "2 build", "tvm.compile"} <= {*found}
    assert found[-6:-3] == ["VMExecutable", "main:", "VM bytecode"]
    assert found[-3:] == ["3 kernels:", "compiled", "by LLVM"]
    (box,) = groups(tree, "executable")
    assert len({word.get("fill") for word in box.iter(f"{SVG}tspan")}) == 1  # it is no code


def test_arrows_have_other_words_and_one_may_be_before_the_first_panel():
    stages = {"program": MyModuleStatic, "kind": "stages", "transforms": ["LegalizeOps"]}
    tree = drawn(**stages, arrows=["Develop", "↻\nTransform"])
    develop, transform = groups(tree, "transform")
    assert [words(develop), words(transform)] == [["Develop"], ["Transform"]]
    assert [len(one.findall(f"{SVG}path")) for one in (develop, transform)] == [1, 3]  # a loop
    x = [float(one.find(f"{SVG}text").get("x")) for one in (develop, transform)]
    (first, _) = groups(tree, "graph-panel")
    assert x[0] < float(re.findall(r"[\d.]+", first.get("transform"))[0]) < x[1]
    with pytest.raises(DrawError, match="give 1 arrows, and not 3"):
        drawn(**stages, arrows=["one", "two", "three"])


def test_code_is_broken_only_where_python_reads_it_as_one_statement():
    session = irviz.Session(MyModuleStatic)
    for width in (36, 48, 70):
        for function in ("main", "linear0", "linear1", "relu0"):
            lines = function_lines(session.script(), function, ())
            found = [part for line in lines for part in wrapped(line, width)]
            assert ast.dump(ast.parse("\n".join(found))) == ast.dump(ast.parse("\n".join(lines)))
            assert len(found) > len(lines)
            assert max(map(len, found)) <= max(width, 60)
    (index,) = wrapped("    out[i_0 * 4 + i_1, j] = a[i_0 * 4 + i_1, j]", 20)
    assert index.endswith("a[i_0 * 4 + i_1, j]")


def test_lines_below_a_hidden_one_are_less_indented():
    lines = ["def f():", "    with g():", "        if a:", "            b", "        c", "    d"]
    kept = ["def f():", "    if a:", "        b", "    c", "    d"]
    assert without_lines(lines, ["with g("]) == kept
    assert without_lines(lines, ["def ", "if "]) == ["with g():", "    b", "    c", "d"]


def test_variables_have_other_names_and_lines_of_code_have_notes():
    code = {
        "program": "irviz.course.te_functions:matmul_relu",
        "kind": "code",
        "variables": {"matmul": "C"},
        "notes": {"C = ": "an intermediate"},
        "min_text": 5,
    }
    found = words(drawn(**code))
    assert "C = T.sblock_alloc_buffer((128, 128))  # an intermediate" in found
    assert "C[v_i, v_j] += A[v_i, v_k] * B[v_k, v_j]" in found


def test_the_failed_attempt_at_a_graph_has_the_outputs_of_calls_as_their_inputs():
    attempt = edges(drawn(program=MyModuleStatic, kind="arguments"))
    buffers = edges(drawn(program=MyModuleStatic, kind="buffers"))
    written = buffers - attempt
    assert attempt - buffers == {(buffer, call) for call, buffer in written}
    assert len(written) == 3


@pytest.mark.parametrize("kind", ["arguments", "buffers"])
def test_each_buffer_has_a_shape_and_so_has_the_returned_one(kind):
    found = words(drawn(program=MyModuleStatic, kind=kind))
    shapes = ["(1, 128)", "(1, 128)", "(1, 10)"]
    assert [one for one in found if one in shapes] == shapes


def test_a_call_without_operands_and_uses_is_between_the_blocks_that_it_separates():
    tree = drawn(program="irviz.course.mlp:MyModuleTwoBlocks")
    upper, lower = sorted(
        (float(one[0].get("y")), float(one[0].get("height"))) for one in groups(tree, "dataflow")
    )
    (leader,) = [one for one in tree.iter(f"{SVG}path") if one.get("class") == "leader"]
    numbers = [float(one) for one in re.findall(r"-?[\d.]+", leader.get("d"))]
    assert upper[0] + upper[1] < numbers[3] == numbers[5] < lower[0]
    noted = drawn(program="irviz.course.mlp:MyModuleTwoBlocks", notes={"gv1": "an effect"})
    assert "an effect" in words(noted)
    assert not groups(noted, "callout")


def test_a_figure_has_its_words_as_text_and_a_description_for_screen_readers():
    tree = drawn(program=MyModuleStatic, callouts={"lv0": "binding", "lv1": "callee"})
    assert tree.find(f"{SVG}title").text == "computational graph of main"
    assert "lv1: (1, 128) = relu0(lv0)." in tree.find(f"{SVG}desc").text
    found = words(tree)
    assert "lv0: (1, 128)" in found
    assert "lv0 = R.call_tir(cls.linear0," in " ".join(found)
    assert "def relu0(X: T.Buffer((1, 128), " in " ".join(found)


@pytest.mark.parametrize(("language", "word"), [("en", "block"), ("zh", "块"), ("ko", "블록")])
def test_words_are_written_in_the_language_of_the_lecture(language, word):
    tree = drawn(program=MyModule, kind="loops", languages=[language])
    assert word in words(tree)
    assert "Noto Sans CJK" in tree.get("font-family")


def test_labels_are_beside_straight_edges_where_there_is_room_and_else_upon_them():
    def label(tree, words):
        return next(one for one in tree.iter(f"{SVG}text") if one.text == words)

    roomy = drawn(program=MyModuleStatic)
    (frame,) = groups(roomy, "dataflow")
    beside = label(roomy, "lv0: (1, 128)")
    assert beside.get("text-anchor") == "start"
    line = next(one for one in groups(roomy, "value") if one.get("data-node") == "lv0")[0]
    assert float(beside.get("x")) > float(re.match(r"M([\d.]+)", line.get("d"))[1])
    assert float(frame[0].get("x")) + float(frame[0].get("width")) > float(beside.get("x")) + 80
    assert label(roomy, "(1, 784)") is not None  # its name is in the circle
    lowered = {"program": "irviz.course.graph_rewrites:linear_relu", "kind": "stages"}
    for width, anchor in ((900, "start"), (850, "middle")):
        tree = drawn(**lowered, transforms=["LegalizeOps"], size=[width, 540])
        assert label(tree, "lv: (1, 128)").get("text-anchor") == anchor
        assert label(tree, "(128,)") is not None
    passes = ["LegalizeOps", "AnnotateTIROpPattern", "FuseOps", "FuseTIR"]
    bent = drawn(program=MyModuleHighLevel, transforms=passes, hide=["with R.dataflow("])
    assert label(bent, "w0_t: (784, 128)").get("text-anchor") == "start"


def test_what_is_said_about_rows_of_a_loop_nest_is_in_the_language_of_the_lecture():
    step = {"program": MyModule, "kind": "loops", "schedule": lecture_schedule, "step": 3}
    tree = drawn(**step, languages=["zh"])
    rows = [one for one in tree.iter(f"{SVG}text") if one.get("class") in ("word", "folded")]
    assert {"".join(one.itertext()) for one in rows} >= {"范围", "移动, 绑定"}
    assert {"浅色：未改变", "重排或移动"} <= {*words(tree)}
    assert "(R)" not in "".join(words(tree))  # the row with the reduction axis is folded
    assert "mm_relu: reverse_compute_at C, Y 的循环 1" in words(tree)
    tree = drawn(**step | {"step": 6}, languages=["zh"])
    assert "(R)：归约轴" in words(tree)
    rows = [one for one in tree.iter(f"{SVG}text") if one.get("class") == "folded"]
    assert {"".join(one.itertext()) for one in rows} == {"… 4 行未改变", "… 5 行未改变"}


def test_rows_that_did_not_change_are_folded_for_larger_text():
    step = {"program": MyModule, "kind": "loops", "schedule": lecture_schedule}
    for number in (4, 5, 7):  # which change one word
        tree = drawn(**step, step=number)
        scale = 0.75 * float(tree.get("width")) / float(tree.get("viewBox").split()[2])
        assert min(float(one.get("font-size", "inf")) for one in tree.iter()) * scale > 15.4
        assert [one for one in tree.iter(f"{SVG}text") if one.get("class") == "folded"]


def test_a_loop_nest_has_the_titles_and_lacks_the_rows_that_are_declared():
    step = {"program": MyModule, "kind": "loops", "schedule": lecture_schedule, "step": 3}
    rows = {one.split()[0] for one in words(drawn(**step, min_text=8))}
    assert {"reads", "writes", "for", "block"} <= rows
    tree = drawn(**step, hide=["param ", "reads ", "writes "], captions=["", "", "move relu"])
    assert "move relu" in words(tree)
    assert "for j_1 in 4" in words(tree)  # not folded, as there is room now
    assert not [one for one in words(tree) if one.startswith(("param", "reads", "writes", "…"))]


def test_a_long_graph_is_broken_into_columns_where_one_value_leads_on():
    chain = {"program": "irviz.course.mlp:MyModuleHighLevel", "transforms": ["LegalizeOps"]}
    whole, tree = drawn(**chain, min_text=5), drawn(**chain, columns=2, min_text=5)
    assert edges(tree) == edges(whole)
    assert len(groups(tree, "call_tir")) == len(groups(whole, "call_tir")) > 5
    assert not groups(tree, "dataflow")  # which is in both columns
    assert float(tree.get("width")) / float(tree.get("height")) > 1.5 * float(
        whole.get("width")
    ) / float(whole.get("height"))
    with pytest.raises(DrawError, match="'one': 'main' cannot be drawn in 9 columns"):
        drawn(program=MyModuleStatic, columns=9)


def test_groups_are_opened_and_named_and_frames_of_blocks_hidden_as_declared():
    stack = "assets.pictures:folded_layers"
    up = "layer:layers.0.up"
    found = [drawn(program=stack, groups={up: state}, min_text=5) for state in ("open", "closed")]
    assert ["matmul" in words(tree) for tree in found] == [True, False]
    assert len(groups(found[0], "dataflow")) == 1
    tree = drawn(
        program=stack, groups={up: "closed"}, names={up: "widen"}, hide=["with R."], min_text=5
    )
    assert "widen" in words(tree)
    assert not groups(tree, "dataflow")
    named = words(drawn(program=MyModuleStatic, names={"relu0": "max", "dataflow:lv0": "pure"}))
    assert {"max", "pure", "lv1: (1, 128)"} <= {*named}
    assert not {"relu0", "dataflow"} & {*named}
    with pytest.raises(DrawError, match="there is no state of a group 'ajar'"):
        drawn(program=stack, groups={up: "ajar"})
    with pytest.raises(DrawError, match="no node, callee or frame is 'lv9'"):
        drawn(program=MyModuleStatic, names={"lv9": "y"})


@pytest.mark.build
def test_nodes_are_coloured_by_what_a_run_measured():
    tree = drawn(program="assets.pictures:first_difference", overlay="difference")
    assert {"0.5 · first", "first difference"} <= {*words(tree)}
    assert len(groups(tree, "flag")) == 2  # at the node, and in the legend
    with pytest.raises(DrawError, match="there is no overlay 'taste'"):
        drawn(program=MyModuleStatic, overlay="taste")


def test_the_history_of_a_node_has_what_it_was_in_each_stage():
    stages = ["LegalizeOps", "AnnotateTIROpPattern", "FuseOps"]
    tree = drawn(program=MyModuleHighLevel, kind="history", around="lv", transforms=stages)
    texts = {one.text for one in tree.iter(f"{SVG}text")}
    assert {"nn.relu", "relu", "fused_matmul_add_relu", "3 FuseOps"} <= texts


def test_a_function_may_draw_the_picture_itself():
    picture = irviz.draw(MyModuleStatic)
    (figure,) = draw_declaration(Declaration("one", lambda: picture, kind="picture")).values()
    assert figure is picture
    with pytest.raises(LoadError, match=r"'one': .* IRModule: .* a Figure"):
        draw_declaration(Declaration("one", lambda: MyModuleStatic, kind="picture"))


@pytest.mark.parametrize("theme", ["course", "print"])
def test_what_corresponds_in_the_module_and_in_numpy_has_one_number_and_one_ground(theme):
    tree = drawn(program=MyModuleStatic, kind="numpy", functions=["linear0"], theme=theme)
    sides = groups(tree, "code-panel")
    numbered = []
    for side in sides:
        numbers = [one for one in side.iter(f"{SVG}text") if one.get("class") == "number"]
        code = {one.get("y"): "".join(one.itertext()) for one in side.iter(f"{SVG}text")}
        numbered.append({one.text: code[one.get("y")] for one in numbers})
    assert {number: (line, numbered[1][number]) for number, line in numbered[0].items()} == {
        "1": ("Y = T.sblock_alloc_buffer((1, 128))", "Y = np.empty((1, 128), dtype='float32')"),
        "2": ("for i, j, k in T.grid(1, 128, 784):", "for i in range(1):"),
        "3": ("with T.init():", "if k == 0:"),
        "4": ("Y[vi, vj] = T.float32(0.0)", "Y[i, j] = 0.0"),
        "5": ("Y[vi, vj] += X[vi, vk] * W[vj, vk]", "Y[i, j] += X[i, k] * W[j, k]"),
        "6": ("for i, j in T.grid(1, 128):", "for i in range(1):"),
        "7": ("Z[vi, vj] = Y[vi, vj] + B[vj]", "Z[i, j] = Y[i, j] + B[j]"),
    }
    grounds = [[one.get("fill") for one in side.iter(f"{SVG}rect")] for side in sides]
    assert grounds[0] == grounds[1]
    assert len({*grounds[0]}) == (1 if theme == "print" else 7)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("figure = 3", "figure is 3"),
        ('[[figure]]\nname = "a"', "there is no 'program'"),
        (FIGURE.format("colour = 3"), "there is no key 'colour'"),
        (FIGURE.format("size = 3"), "size is 3, which is no list"),
        (FIGURE.format('kind = "pie"'), "there is no kind 'pie'"),
        (FIGURE.format('theme = "neon"'), "there is no theme 'neon'"),
        (FIGURE.format('callouts = { lv9 = "binding" }'), "'lv9' is not a node of 'main'"),
        (FIGURE.replace('"a"', '"../a"'), "'../a' is not a name for a figure"),
        (FIGURE.replace("mlp:", "nothing:"), "cannot be imported"),
        (FIGURE.format("") * 2, "two figures are called 'a'"),
    ],
)
def test_a_wrong_declaration_is_told_in_one_sentence(tmp_path, capsys, text, said):
    file = tmp_path / "figures.toml"
    file.write_text(text.replace("{}", ""))
    assert main(["figures", "--file", str(file)]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "figures").exists()


def test_a_figure_that_cannot_be_drawn_does_not_stop_the_others(tmp_path, capsys):
    file = tmp_path / "figures.toml"
    wrong = FIGURE.replace('"a"', '"wrong"').replace("{}", 'callouts = { lv9 = "binding" }')
    file.write_text(wrong + FIGURE.format(""))
    assert main(["figures", "--file", str(file)]) == 2
    written = capsys.readouterr()
    assert [Path(line).name for line in written.out.splitlines()] == ["a.svg"]
    assert "'wrong'" in written.err
    assert written.err.count("\n") == 1


def test_without_a_declaration_it_is_said_where_one_would_be(tmp_path, capsys):
    assert main(["figures", "--file", str(tmp_path / "figures.toml")]) == 2
    assert "there is no" in (said := capsys.readouterr().err)
    assert "--file" in said


def test_nothing_is_imported_or_run_by_reading_declarations(tmp_path):
    code = f"import os\nos.mkdir({str(tmp_path / 'ran')!r})\nprogram = 3\n"
    (tmp_path / "mine.py").write_text(code)
    file = tmp_path / "figures.toml"
    file.write_text('[[figure]]\nname = "a"\nprogram = "mine:program"')
    figures = read_declarations(file)
    assert not (tmp_path / "ran").exists()
    with pytest.raises(LoadError):  # a number is no program; and the control: this imports it
        draw_declaration(figures.declarations[0], figures.root)
    assert (tmp_path / "ran").exists()


def test_a_figure_is_declared_in_a_notebook_by_a_decorator(tmp_path):
    @irviz.figure("mlp", highlight=["lv1"], languages=["en", "ko"])
    def mlp():
        return MyModuleStatic

    assert list(mlp.pictures) == ["mlp", "mlp.ko"]
    assert mlp._repr_html_().count("<svg") == 2
    saved = irviz.figures.save(tmp_path / "img")
    assert {one.name for one in saved} == {"mlp.svg", "mlp.ko.svg"}
    assert irviz.figures.check(tmp_path / "img") == []
    (tmp_path / "img" / "mlp.svg").write_text("<svg/>")
    (wrong,) = irviz.figures.check(tmp_path / "img")
    assert wrong.startswith(f"{tmp_path / 'img' / 'mlp.svg'} is not what its program gives now")

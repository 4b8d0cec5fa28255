"""The texts of a node: what it calls, how, and the name and type of its value."""

import pytest

from irviz.model.graph.graph import Literal, Node, NodeId, NodeKind, Resolution
from irviz.view.graph import node_labels


def node(kind, name="lv", callee="", resolution=None, **facts):
    return Node(NodeId("id"), kind, name, "Tensor[(2,)]", callee, resolution, **facts)


@pytest.mark.parametrize(
    ("drawn", "title", "note", "value"),
    [
        (node(NodeKind.PARAM, "x"), "x", "", "(2,)"),
        (node(NodeKind.CONSTANT, "w0"), "w0", "", "(2,)"),
        (node(NodeKind.CONSTANT, ""), "const", "", "(2,)"),
        (
            node(NodeKind.CALL_TIR, callee="relu0", resolution=Resolution.PRIM_FUNC),
            "relu0",
            "call_tir",
            "lv: (2,)",
        ),
        (
            node(NodeKind.CALL_DPS_PACKED, callee="relu0", resolution=Resolution.PRIM_FUNC),
            "relu0",
            "call_dps_packed · PrimFunc",
            "lv: (2,)",
        ),
        (
            node(NodeKind.CALL_DPS_PACKED, callee="env.relu", resolution=Resolution.LIBRARY),
            "env.relu",
            "call_dps_packed · library",
            "lv: (2,)",
        ),
        (
            node(NodeKind.CALL_DPS_PACKED, callee="env.relu", resolution=Resolution.UNKNOWN),
            "env.relu",
            "call_dps_packed · not registered",
            "lv: (2,)",
        ),
        (
            node(NodeKind.CALL_FUNCTION, callee="other", resolution=Resolution.FUNCTION),
            "other",
            "call · Function",
            "lv: (2,)",
        ),
        (node(NodeKind.OPERATOR, callee="relax.nn.relu"), "nn.relu", "", "lv: (2,)"),
        (
            node(
                NodeKind.OPERATOR,
                callee="relax.reshape",
                literals=(Literal((1,), "(1, n)"), Literal((2,), "3")),
            ),
            "reshape",
            "(1, n), 3",
            "lv: (2,)",
        ),
        (node(NodeKind.TUPLE), "( , )", "", "lv: (2,)"),
        (
            node(NodeKind.TUPLE_GET_ITEM, attributes=(("index", "2"),)),
            "[2]",
            "",
            "lv: (2,)",
        ),
        (node(NodeKind.MATCH_CAST), "match_cast", "", "lv: (2,)"),
        (node(NodeKind.OTHER, callee="If"), "If", "", "lv: (2,)"),
        (node(NodeKind.OTHER), "lv", "", "lv: (2,)"),
    ],
)
def test_a_node_says_what_it_is(drawn, title, note, value):
    assert (node_labels.title(drawn), node_labels.note(drawn), node_labels.value_label(drawn)) == (
        title,
        note,
        value,
    )


def test_a_long_name_of_a_value_is_shortened_before_its_type():
    weight = node(NodeKind.OTHER, "layer3.0.conv1.branch.weight")
    shaped = weight._replace(type_text="Tensor[(256, 128, 3, 3)]")
    assert node_labels.value_label(shaped) == "layer3.0.con…branch.weight: (256, 128, 3, 3)"
    long = weight._replace(type_text="Tensor[(256, 128, 3, 3), float16]")
    assert node_labels.value_label(long).startswith("layer3.0…h.weight: (256, 128, 3")


@pytest.mark.parametrize(
    ("type_", "shown"),
    [
        ("Tensor[(4,), int64]", "(4,), int64"),
        ("Tensor[(n * (m + 1),), cuda:0]", "(n * (m + 1),), cuda:0"),
        ("Tensor[ndim=2]", "Tensor[ndim=2]"),
        ("Tuple[Tensor[(1, 2)], Tensor[(4,), int64]]", "Tuple[(1, 2), Tensor[(4,), int64]]"),
        ("DTensor[(1, 2), S[0] on mesh (2,)]", "DTensor[(1, 2), S[0] on mesh (2,)]"),
        ("3 × Tensor[(1, 2), int8]", "3 × (1, 2), int8"),
    ],
)
def test_a_tensor_in_a_picture_is_its_shape_and_dtype(type_, shown):
    assert node_labels.type_in_picture(node(NodeKind.OTHER)._replace(type_text=type_)) == shown


def test_every_kind_has_words():
    for kind in NodeKind:
        assert node_labels.title(node(kind, callee="relax.f"))


@pytest.mark.parametrize(
    ("whole", "title"),
    [
        ("layers.0–3 ×4 · Block · copy 1", "layers.0–3 ×4 · Block · copy 1"),
        (
            "layers.1–2 ×2 · LlamaLayer · storage rotates · copy 1",
            "layers.1–2 ×2 · LlamaLayer · copy 1",
        ),
        (
            "stages.0.blocks.1–12 ×12 · ConvolutionalDecoderLayer · copy 12",
            "stages.0.blocks.1–12 ×12 · copy 12",
        ),
        (
            f"{'encoder.' * 8}layers.0–3 ×4 · copy 1",
            "encoder.encoder.e…der.layers.0–3 ×4 · copy 1",
        ),
    ],
)
def test_a_long_title_keeps_the_name_the_repeat_and_the_copy(whole, title):
    assert node_labels.group_title(whole) == title
    assert len(title) <= 44


def test_a_block_of_a_prim_func_has_its_threads_below_its_axes():
    facts = (("axes", "vi S 4"), ("threads", "blockIdx.x 4, threadIdx.x 4"))
    block = node(NodeKind.BLOCK, attributes=facts)
    assert node_labels.lines(block) == ["vi S 4", "blockIdx.x 4, threadIdx.x 4"]
    assert node_labels.lines(node(NodeKind.BLOCK)) == []

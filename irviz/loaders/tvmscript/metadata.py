"""Check the JSON of a text's constants: `metadata = tvm.ir.load_json("...")`.

Unchecked it could contain a function of TVM's registry, which the parser would call, or a string
under another name, which a shape would evaluate. So only plain values are admitted, each under the
name of its own type. A string is used only where the text itself may have one.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from irviz.loaders.tvmscript.dialect import METADATA
from irviz.loaders.tvmscript.source_text import SourceText

_PLAIN = re.compile(
    r"None|bool|int|float|ffi\.(?:String|Array|Map|Shape|Tensor)"
    r"|ir\.(?:GenericConst|IntImm|FloatImm|PrimType|Range|SourceName|Span|TupleType|Var)"
    r"|ir\.String(?:Imm|Type)"
    r"|relax\.(?:\w+Type|expr\.ShapeExpr)|relax\.distributed\.\w+"
    r"|(?:ir|tirx)\.(?:Add|Sub|Mul|Div|Mod|FloorDiv|FloorMod|Min|Max|Cast|Var)"
)


def check_metadata(node: ast.Assign, text: SourceText) -> None:
    """Raise RefusedError unless the metadata are plain values; the text may then use them."""
    match node.value:
        case ast.Call(
            func=function, args=[ast.Constant(value=str() as json_text)], keywords=[]
        ) if ast.unparse(function) == "tvm.ir.load_json":
            pass
        case _:
            raise text.refused(node, 'this is refused: write metadata = tvm.ir.load_json("...")')
    if text.has_metadata:
        raise text.refused(node, "a second metadata is refused: a text has one")
    try:
        is_plain = _is_plain(json.loads(json_text))
    except (ValueError, RecursionError, LookupError, TypeError) as failure:
        raise text.refused(node, f"the metadata is not TVM's JSON: {failure}") from None
    if not is_plain:
        wanted = " and ".join(sorted(METADATA))
        raise text.refused(node, f"these metadata are refused: only {wanted} are admitted")
    text.has_metadata = True


def _is_plain(content: Any) -> bool:
    nodes: list[Any] = content["nodes"]
    if not isinstance(nodes, list) or not all(_PLAIN.fullmatch(node["type"]) for node in nodes):
        return False
    root = nodes[_index(content["root_index"])]
    if root["type"] != "ffi.Map" or len(root["data"]) % 2:
        return False
    pairs = zip(root["data"][::2], root["data"][1::2], strict=True)
    return all(
        _is_under_own_type(nodes, nodes[_index(key)], nodes[_index(at)]) for key, at in pairs
    )


def _is_under_own_type(nodes: list[Any], kind: Any, values: Any) -> bool:
    """Tell whether values are an array under the name of their own type."""
    if (
        kind["type"] != "ffi.String"
        or kind["data"] not in METADATA
        or values["type"] != "ffi.Array"
    ):
        return False
    return all(nodes[_index(i)]["type"] == kind["data"] for i in values["data"])


def _index(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TypeError(f"{value!r} is not the index of a node")
    return value

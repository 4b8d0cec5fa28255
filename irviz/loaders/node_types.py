"""Which of TVM's types a module is made of: what else its JSON may name is not read.

Its reader makes whatever is named, compiled code and parts of its runtime included.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

_PLAIN = """
    None int bool float DataType Device ffi.String ffi.Bytes ffi.Shape ffi.Tensor ffi.Array ffi.Map
    ffi.List ffi.Dict ffi.BigInt target.Target target.TargetKind
"""
_LET_IN = re.compile(
    "|".join(map(re.escape, _PLAIN.split())) + r"|(?:ir|prim|relax|tirx|s_tir)\.[A-Za-z0-9_.]+"
)
# Passes, searches and builders, which hold functions, files and processes.
_KEPT_OUT = re.compile(
    r".*Pass|.*Builder|.*Database|s_tir\.meta_schedule\..*|relax\.(?:vm|dpl)\..*"
    r"|s_tir\.Schedule|s_tir\.TensorIntrin|relax\.transform\..*"
)
_FUNCTION, _INFERENCE = "ir.EnvFunc", "tvm.relax.type."
"""A registered function that is called by its name: those that infer types are in modules."""


def foreign_type(text: str) -> str:
    """Return a type that TVM's JSON names and no module is made of, or "".

    Raises ValueError for what is no such JSON.
    """
    content = json.loads(text, object_pairs_hook=_unambiguous)
    nodes = content.get("nodes") if isinstance(content, dict) else None
    if not isinstance(nodes, list):
        raise ValueError("it has no 'nodes'")
    named = set()
    for node in nodes:
        name = node.get("type") if isinstance(node, dict) else None
        if not isinstance(name, str):
            raise ValueError("it has a node without a type")
        named.add(name)
        if name == _FUNCTION and not str(node.get("data")).startswith(_INFERENCE):
            return name
    foreign = (n for n in named if not _LET_IN.fullmatch(n) or _KEPT_OUT.fullmatch(n))
    return min(foreign, default="")


def _unambiguous(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """Return a dict, unless a key stands in it twice: readers differ in which they take."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("it has a key twice")
    return made

"""TVM's JSON (`tvm.ir.save_json`): the types that a text may name, and modules in answers.

TVM's reader makes an object of any registered type, compiled code and parts of TVM's runtime
included. So a text is checked first: it may name only types that occur in modules.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import tvm
from tvm import ir
from tvm_ffi.serialization import from_json_graph_str

from irviz.errors import IrvizError
from irviz.worker import answers

_BASIC_TYPES = """
    None int bool float DataType Device ffi.String ffi.Bytes ffi.Shape ffi.Tensor ffi.Array ffi.Map
    ffi.List ffi.Dict ffi.BigInt target.Target target.TargetKind
"""
_ADMITTED_TYPE = re.compile(
    "|".join(map(re.escape, _BASIC_TYPES.split()))
    + r"|(?:ir|prim|relax|tirx|s_tir)\.[A-Za-z0-9_.]+"
)
# Passes, searches and builders hold functions, files and processes.
_EXCLUDED_TYPE = re.compile(
    r".*Pass|.*Builder|.*Database|s_tir\.meta_schedule\..*|relax\.(?:vm|dpl)\..*"
    r"|s_tir\.Schedule|s_tir\.TensorIntrin|relax\.transform\..*"
)
# A registered function that TVM calls by name: modules contain those that infer types.
_FUNCTION_TYPE, _INFERENCE = "ir.EnvFunc", "tvm.relax.type."
# TVM compiles, links and loads what these hold when the module runs.
COMPILED_TYPES = ("ffi.Module", "runtime.Module")


class TvmJsonError(IrvizError, ValueError):
    """A text is refused; the message follows a colon."""


def loaded(text: str, content: dict[str, Any]) -> object:
    """Return the object in a text whose parsed JSON is `content`.

    `tvm.ir.load_json` scans each text for what older versions of TVM wrote, which takes most of its
    time. A text of this version is not scanned.
    """
    if content.get("metadata") == {"tvm_version": tvm.__version__}:
        # written anew, so that TVM reads exactly what was checked
        return from_json_graph_str(json.dumps(content))
    return tvm.ir.load_json(text)


def reason_of(failure: Exception) -> str:
    """Return the last line of a TVM error, which gives the reason."""
    lines = str(failure).strip().splitlines() or [type(failure).__name__]
    return lines[-1].strip()[:500]


def parsed(text: str) -> dict[str, Any]:
    """Parse a text; raise TvmJsonError if it is not TVM's JSON."""
    if not text.strip():
        raise TvmJsonError("it is empty")
    try:
        content = json.loads(text, object_pairs_hook=unique_keys)
    except (ValueError, RecursionError) as failure:
        raise TvmJsonError(f"it is not JSON ({failure})") from None
    nodes = content.get("nodes") if isinstance(content, dict) else None
    if not isinstance(nodes, list) or "root_index" not in content:
        raise TvmJsonError("it is JSON without TVM's 'nodes' and 'root_index'")
    found: dict[str, Any] = content
    return found


def types_of(content: dict[str, Any]) -> set[str]:
    """Return the types that a text names; raise TvmJsonError for a node without one."""
    types = set()
    for node in content["nodes"]:
        name = node.get("type") if isinstance(node, dict) else None
        if not isinstance(name, str):
            raise TvmJsonError("it has a node without a type")
        is_function = name == _FUNCTION_TYPE
        is_inference = is_function and str(node.get("data")).startswith(_INFERENCE)
        types.add("" if is_inference else name)
    return types - {""}


def foreign_type(types: set[str]) -> str:
    """Return the first type that no module contains, or ""."""
    foreign = (
        name
        for name in types
        if not _ADMITTED_TYPE.fullmatch(name)
        or _EXCLUDED_TYPE.fullmatch(name)
        or name == _FUNCTION_TYPE
    )
    return min(foreign, default="")


def unique_keys(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """Return a JSON object; raise ValueError if a key occurs twice, as readers differ on that."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _module(text: str) -> ir.IRModule:
    """Return the module in a text; raise TvmJsonError for one that names other types."""
    content = parsed(text)
    if foreign := foreign_type(types_of(content)):
        raise TvmJsonError(f"it names {foreign!r}, which no module contains")
    found = loaded(text, content)
    if not isinstance(found, ir.IRModule):
        raise TvmJsonError(f"it holds a {type(found).__name__}, not an IRModule")
    return found


answers.register(ir.IRModule, lambda mod: str(tvm.ir.save_json(mod)), _module)

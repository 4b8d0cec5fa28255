"""Relax's calls of kernels: what they call, and the type of what they give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import libcst as cst

from irviz.loaders.upgrade.names import Names
from irviz.loaders.upgrade.prim_funcs import SPACED, TIGHT, with_arg
from irviz.loaders.upgrade.relax_functions import alloc_tensor

CALLS: Final = ("call_tir", "call_dps_packed", "call_tir_inplace", "call_tir_with_grad")
PLACES: Final = ("R", "tvm.relax.op", "tvm.relax")
TYPES: Final = ("R.Tensor", "R.Tuple", "tvm.relax.TensorType", "tvm.relax.TensorStructInfo")
KEYWORDS: Final = {
    "out_sinfo": "out_ty",
    "sinfo_args": "ty_args",
    "type_args": "ty_args",
    "ret_struct_info": "ret_ty",
    "struct_info": "ty",
}
Say = Callable[[str, str], None]


def call(old: cst.Call, new: cst.Call, meaning: str, names: Names, say: Say) -> cst.Call:
    """Return a call of one of Relax's functions as it is written today."""
    new = _keywords(new)
    operator = meaning.rpartition(".")[2]
    if operator in CALLS:
        return _kernel_call(old, new, meaning, names, say)
    if operator == "alloc_tensor":
        return alloc_tensor(old, new, names)
    return new


def _keywords(node: cst.Call) -> cst.Call:
    """Return a call with today's words for types among its keywords."""
    if not any(arg.keyword is not None and arg.keyword.value in KEYWORDS for arg in node.args):
        return node
    args = [
        arg.with_changes(keyword=cst.Name(KEYWORDS[arg.keyword.value]))
        if arg.keyword is not None and arg.keyword.value in KEYWORDS
        else arg
        for arg in node.args
    ]
    return node.with_changes(args=args)


def _kernel_call(old: cst.Call, new: cst.Call, meaning: str, names: Names, say: Say) -> cst.Call:
    """Return a call of a kernel as it is written today, or as it is after saying why."""
    place, _, operator = meaning.rpartition(".")
    new = _of_the_environment(new, operator)
    called = old.args[0].value if old.args and not old.args[0].star else None
    if (
        isinstance(called, cst.Name)
        and new.args[0].value.deep_equals(called)
        and not names.bound(called)
    ):
        say(called.value, f"{operator} calls it, and no function of its class here is called so")
    if operator not in ("call_tir", "call_dps_packed"):
        return new
    given = _given(new)
    if given is None:
        say(operator, "its arguments are given by * or **, so its shape is not known")
        return new
    if "tir_vars" in given:
        say(operator, "tir_vars are arguments of the kernel itself now, before its outputs")
        return new
    if "shape" not in given or "out_ty" in given:
        return new
    shape, dtype = given["shape"].value, given.get("dtype")
    if dtype is None:
        original = _given(old)
        if isinstance(shape, cst.Tuple | cst.List) and not _holds_types(
            original["shape"].value if original and "shape" in original else shape, names
        ):
            say(operator, "it has a shape and no dtype, and a type needs both")
        return new
    tensor = names.spelled("R.Tensor" if place == "R" else "tvm.relax.TensorType", old.func)
    out = _type(shape, dtype.value, tensor)
    if out is None:
        say(operator, "it has not as many dtypes as it has shapes")
        return new
    kept = [arg for arg in new.args if arg is not given["shape"] and arg is not dtype]
    last = new.args[-1]
    kept[-1] = kept[-1].with_changes(
        comma=last.comma, whitespace_after_arg=last.whitespace_after_arg
    )
    return new.with_changes(
        args=with_arg(kept, cst.Arg(out, keyword=cst.Name("out_ty"), equal=TIGHT))
    )


def _of_the_environment(node: cst.Call, operator: str) -> cst.Call:
    called = node.args[0].value if node.args else None
    if operator != "call_tir" or not isinstance(called, cst.SimpleString):
        return node
    if isinstance(node.func, cst.Attribute):
        return node.with_changes(func=node.func.with_changes(attr=cst.Name("call_dps_packed")))
    return node


def _given(node: cst.Call) -> dict[str, cst.Arg] | None:
    order = ("func", "args", "shape", "dtype", "tir_vars")
    alike = {"output_shape": "shape"}
    found = {}
    for index, arg in enumerate(node.args):
        if arg.star or index >= len(order):
            return None
        name = arg.keyword.value if arg.keyword else order[index]
        found[alike.get(name, name)] = arg
    return found


def _holds_types(node: cst.BaseExpression, names: Names) -> bool:
    if isinstance(node, cst.Tuple | cst.List):
        return bool(node.elements) and all(_holds_types(e.value, names) for e in node.elements)
    return isinstance(node, cst.Call) and (
        names.meaning(node.func) in TYPES
        or (isinstance(node.func, cst.Name) and node.func.value == "Tensor")
    )


def _type(
    shape: cst.BaseExpression, dtype: cst.BaseExpression, tensor: cst.BaseExpression
) -> cst.BaseExpression | None:
    shapes = _items(shape)
    if shapes is None or not shapes or any(_items(each) is None for each in shapes):
        return _one(shape, dtype, tensor)
    dtypes = _items(dtype) or [dtype] * len(shapes)
    if len(dtypes) != len(shapes):
        return None
    ones = [_one(one, each, tensor) for one, each in zip(shapes, dtypes, strict=True)]
    *first, last = ones
    return cst.List([*(cst.Element(each, SPACED) for each in first), cst.Element(last)])


def _one(
    shape: cst.BaseExpression, dtype: cst.BaseExpression, tensor: cst.BaseExpression
) -> cst.Call:
    return cst.Call(
        tensor.deep_clone(),
        [cst.Arg(shape, comma=SPACED), cst.Arg(dtype.deep_clone())],
    )


def _items(node: cst.BaseExpression) -> Sequence[cst.BaseExpression] | None:
    if isinstance(node, cst.Tuple | cst.List):
        return [element.value for element in node.elements]
    return None

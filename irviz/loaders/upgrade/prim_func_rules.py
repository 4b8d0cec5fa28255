"""Rewrite PrimFuncs: their decorator, buffers and blocks."""

from __future__ import annotations

import libcst as cst

from irviz.loaders.upgrade.dotted_names import DottedNames, keyword, keyword_arg, with_arg
from irviz.loaders.upgrade.function_context import Function

_PROXIES = ("T.Buffer", "R.Tensor")


def rewrite_decorator(node: cst.Decorator) -> cst.Decorator:
    """Return an old PrimFunc's decorator with today's option for functions with blocks."""
    called = node.decorator
    flag = keyword_arg("s_tir", cst.Name("True"))
    if isinstance(called, cst.Call):
        return node.with_changes(decorator=called.with_changes(args=with_arg(called.args, flag)))
    return node.with_changes(decorator=cst.Call(called, [flag]))


def rewrite_subscript(
    node: cst.Subscript, updated: cst.Subscript, names: DottedNames
) -> cst.BaseExpression:
    """Return `T.Buffer[shape, dtype]` as a call, and any other subscript unchanged."""
    if names.meaning(node.value) not in _PROXIES and not (
        isinstance(node.value, cst.Name)
        and node.value.value == "Tensor"
        and not names.bound(node.value)
    ):
        return updated
    args = []
    for element in updated.slice:
        if not isinstance(element.slice, cst.Index) or element.slice.star:
            return updated
        args.append(cst.Arg(element.slice.value, comma=element.comma))
    return cst.Call(
        updated.value,
        args,
        lpar=updated.lpar,
        rpar=updated.rpar,
        whitespace_before_args=updated.lbracket.whitespace_after,
    )


def rewrite_call(node: cst.Call, meaning: str, function: Function) -> cst.Call:
    """Return a call in an old PrimFunc in today's form."""
    if not function.old:
        return node
    if meaning == "T.alloc_buffer" and isinstance(node.func, cst.Attribute):
        func = node.func.with_changes(attr=cst.Name("sblock_alloc_buffer"))
        return node.with_changes(func=func)
    if meaning == "T.match_buffer":
        return node.with_changes(args=[_alignment(arg) for arg in node.args])
    return _func_attr(node) if meaning == "T.func_attr" else node


def _alignment(arg: cst.Arg) -> cst.Arg:
    """Return `align=128`, by which all memory was aligned once, as today's 64."""
    if keyword(arg) == "align" and arg.value.deep_equals(cst.Integer("128")):
        return arg.with_changes(value=cst.Integer("64"))
    return arg


def _func_attr(node: cst.Call) -> cst.Call:
    """Return an old PrimFunc's attributes with the prefix `tirx.` instead of `tir.`."""
    attributes = node.args[0].value if len(node.args) == 1 else None
    if not isinstance(attributes, cst.Dict):
        return node
    elements = [
        element.with_changes(key=cst.SimpleString(element.key.value.replace("tir.", "tirx.", 1)))
        if isinstance(element, cst.DictElement)
        and isinstance(element.key, cst.SimpleString)
        and element.key.value[1:].startswith("tir.")
        else element
        for element in attributes.elements
    ]
    whole = attributes.with_changes(elements=elements)
    return node.with_changes(args=[node.args[0].with_changes(value=whole)])

"""Relax functions: their types, the names of their module's functions, their operators."""

from __future__ import annotations

from typing import Final

import libcst as cst

from irviz.loaders.upgrade.names import Names
from irviz.loaders.upgrade.prim_funcs import SPACED, TIGHT
from irviz.loaders.upgrade.surroundings import Function

_TYPES: Final = ("Tensor", "Object", "Shape")
_OUTSIDE: Final = ("tvm.relax.op.", "tvm.relax.")


def name(
    old: cst.Name, new: cst.Name, function: Function, names: Names, no_name: bool
) -> cst.BaseExpression:
    """Return a bare name of a Relax function as it is written today: `R.Tensor`, `cls.linear0`."""
    if no_name or names.bound(old):
        return new
    if old.value in function.siblings:
        function.uses_cls = True
        return _of(function.cls, new)
    if old.value in _TYPES:
        return _of(names.alias("R"), new)
    return new


def _of(owner: str, name: cst.Name) -> cst.Attribute:
    bare = name.with_changes(lpar=(), rpar=())
    return cst.Attribute(cst.Name(owner), bare, lpar=name.lpar, rpar=name.rpar)


def operator(meaning: str) -> str:
    """Return an operator by its name in TVMScript, which knows none of Python's relax."""
    for place in _OUTSIDE:
        if meaning.startswith(place) and not meaning.startswith("tvm.relax.script."):
            return f"R.{meaning.removeprefix(place)}"
    return meaning


def begun(node: cst.FunctionDef, function: Function) -> cst.FunctionDef:
    """Return a Relax function that begins with what its body needs: a name for its module."""
    if not function.uses_cls or not function.module or not isinstance(node.body, cst.IndentedBlock):
        return node
    line = cst.SimpleStatementLine(
        [cst.Assign([cst.AssignTarget(cst.Name(function.cls))], cst.Name(function.module))]
    )
    return node.with_changes(body=node.body.with_changes(body=[line, *node.body.body]))


def alloc_tensor(old: cst.Call, new: cst.Call, names: Names) -> cst.Call:
    """Return an allocation as the builtin that it is today, on the first device."""
    given = {arg.keyword.value: arg for arg in new.args if arg.keyword}
    if not new.args or new.args[0].keyword or new.args[0].star:
        return new
    shape, *rest = new.args
    value = shape.value
    if isinstance(value, cst.Tuple):
        value = cst.List(value.elements)
    if isinstance(value, cst.List):
        value = cst.Call(names.spelled("R.shape", old.func), [cst.Arg(value)])
    args = [shape.with_changes(value=value), *rest]
    if "runtime_device_index" not in given and len(args) < 3:
        last = args[-1]
        args[-1] = last.with_changes(comma=SPACED)
        index = cst.Arg(cst.Integer("0"), keyword=cst.Name("runtime_device_index"), equal=TIGHT)
        args.append(index)
    return new.with_changes(func=names.spelled("R.builtin.alloc_tensor", old.func), args=args)

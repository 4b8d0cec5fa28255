"""Relax from Python: variables and constants with their types, operators that are others now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import libcst as cst

from irviz.loaders.upgrade.names import Names
from irviz.loaders.upgrade.prim_funcs import SPACED, TIGHT

Say = Callable[[str, str], None]
TYPE: Final = "tvm.relax.DynTensorType"
DENSE: Final = {
    "R.dense": "R.",
    "R.nn.dense": "R.",
    "tvm.relax.op.dense": "tvm.relax.op.",
    "tvm.relax.op.nn.dense": "tvm.relax.op.",
}
# Attributes of expressions: no other library has these names.
ATTRIBUTES: Final = {
    "struct_info": ("ty",),
    "struct_info_": ("ty",),
    "checked_type": ("ty",),
    "_checked_type_": ("ty",),
    "shape_": ("ty", "shape"),
}
_TYPE_ATTRIBUTES: Final = ("struct_info", "checked_type", "_checked_type_")


def tensor_type(old: cst.Call, new: cst.Call, _: str, names: Names, __: Say) -> cst.Call:
    """Return DynTensorType(ndim, dtype) as the type of today."""
    order = ("ndim", "dtype")
    args = []
    for index, arg in enumerate(new.args):
        name = arg.keyword.value if arg.keyword else order[index] if index < 2 else ""
        if arg.star or name not in order:
            return new
        args.append(arg.with_changes(keyword=cst.Name(name), equal=TIGHT))
    return new.with_changes(func=names.spelled("tvm.relax.TensorType", old.func), args=args)


def variable(old: cst.Call, new: cst.Call, _: str, names: Names, say: Say) -> cst.Call:
    """Return a variable whose shape and type were given apart with both in one."""
    if any(arg.star or arg.keyword for arg in old.args):
        return new
    if len(old.args) == 2 and isinstance(old.args[1].value, cst.Tuple | cst.List):
        say("relax.Var", "it has a shape and no dtype, and a type needs both")
    if len(old.args) != 3:
        return new
    name, shape, kind = new.args
    whole: cst.BaseExpression | None = _type_of_another(old.args[1].value, old.args[2].value)
    if whole is None:
        dtype = _dtype(old.args[2].value, kind.value, names)
        if dtype is None:
            say("relax.Var", "what its third argument is cannot be seen here")
            return new
        args = [shape.with_changes(comma=SPACED), cst.Arg(dtype)]
        whole = cst.Call(names.spelled("tvm.relax.TensorType", old.func), args)
    return new.with_changes(args=[name, kind.with_changes(value=whole)])


def constant(old: cst.Call, new: cst.Call, _: str, names: Names, __: Say) -> cst.Call:
    """Return a constant with its dtype, where a whole type was given."""
    if len(old.args) != 2:
        return new
    dtype = _dtype(old.args[1].value, None, names)
    if dtype is None:
        return new
    return new.with_changes(args=[new.args[0], new.args[1].with_changes(value=dtype)])


def dense(old: cst.Call, new: cst.Call, meaning: str, names: Names, say: Say) -> cst.Call:
    """Return the product with a transposed weight as a product and a transposition."""
    if len(new.args) != 2 or any(arg.keyword or arg.star for arg in new.args):
        say("dense", "it is matmul of a permuted weight now, and its arguments are more than two")
        return new
    place, (x, weight) = DENSE[meaning], new.args
    turned = cst.Call(
        names.spelled(f"{place}permute_dims", old.func),
        [weight.with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=NOTHING)],
    )
    args = [x, weight.with_changes(value=turned)]
    return new.with_changes(func=names.spelled(f"{place}matmul", old.func), args=args)


def attribute(new: cst.Attribute) -> cst.BaseExpression:
    """Return an expression's type by the attribute that has it now."""
    *first, last = ATTRIBUTES[new.attr.value]
    value = new.value
    for name in first:
        value = cst.Attribute(value, cst.Name(name))
    return new.with_changes(value=value, attr=cst.Name(last))


NOTHING = cst.SimpleWhitespace("")


def _dtype(
    old: cst.BaseExpression, new: cst.BaseExpression | None, names: Names
) -> cst.BaseExpression | None:
    """Return the dtype of a type: written in it, or its attribute when it has a name."""
    if isinstance(old, cst.Call) and names.meaning(old.func) == TYPE:
        for index, arg in enumerate(old.args):
            if (arg.keyword.value if arg.keyword else ("ndim", "dtype")[index : index + 1]) in (
                "dtype",
                ("dtype",),
            ):
                return arg.value.deep_clone()
        return None
    if new is not None and isinstance(old, cst.Name):
        return cst.Attribute(new, cst.Name("dtype"))
    return None


def _type_of_another(shape: cst.BaseExpression, kind: cst.BaseExpression) -> cst.Attribute | None:
    """Return x.ty for the shape and the type of one x."""
    if (
        isinstance(shape, cst.Attribute)
        and isinstance(kind, cst.Attribute)
        and shape.attr.value in ("shape_", "shape")
        and kind.attr.value in _TYPE_ATTRIBUTES
        and shape.value.deep_equals(kind.value)
    ):
        return cst.Attribute(shape.value.deep_clone(), cst.Name("ty"))
    return None


RULES: Final = {
    TYPE: tensor_type,
    "tvm.relax.Var": variable,
    "tvm.relax.DataflowVar": variable,
    "tvm.relax.const": constant,
    **dict.fromkeys(DENSE, dense),
}

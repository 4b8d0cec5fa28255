"""Rewrite Relax: functions in TVMScript, calls of operators and kernels, Python that builds IR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import libcst as cst

from irviz.loaders.upgrade.enclosing_scope import Function
from irviz.loaders.upgrade.names import DottedNames
from irviz.loaders.upgrade.notes import AddNote
from irviz.loaders.upgrade.prim_func_rules import SPACED, TIGHT, with_arg

# --- functions in TVMScript ---------------------------------------------------------------------

_BARE_TYPES: Final = ("Tensor", "Object", "Shape")
_PYTHON_PREFIXES: Final = ("tvm.relax.op.", "tvm.relax.")


def rewrite_name(
    old: cst.Name, new: cst.Name, function: Function, names: DottedNames, is_inner: bool
) -> cst.BaseExpression:
    """Return a bare name in a Relax function in today's form: `R.Tensor`, `cls.linear0`."""
    if is_inner or names.bound(old):
        return new
    if old.value in function.siblings:
        function.uses_cls = True
        return _attribute_of(function.cls, new)
    if old.value in _BARE_TYPES:
        return _attribute_of(names.alias("R"), new)
    return new


def _attribute_of(owner: str, name: cst.Name) -> cst.Attribute:
    bare = name.with_changes(lpar=(), rpar=())
    return cst.Attribute(cst.Name(owner), bare, lpar=name.lpar, rpar=name.rpar)


def tvmscript_name(meaning: str) -> str:
    """Return an operator's name in TVMScript, for its name in Python's relax."""
    for place in _PYTHON_PREFIXES:
        if meaning.startswith(place) and not meaning.startswith("tvm.relax.script."):
            return f"R.{meaning.removeprefix(place)}"
    return meaning


def with_module_alias(node: cst.FunctionDef, function: Function) -> cst.FunctionDef:
    """Return a Relax function with `cls = Module` as its first line, if its body needs that."""
    if not function.uses_cls or not function.module or not isinstance(node.body, cst.IndentedBlock):
        return node
    line = cst.SimpleStatementLine(
        [cst.Assign([cst.AssignTarget(cst.Name(function.cls))], cst.Name(function.module))]
    )
    return node.with_changes(body=node.body.with_changes(body=[line, *node.body.body]))


def _alloc_tensor(old: cst.Call, new: cst.Call, names: DottedNames) -> cst.Call:
    """Return an allocation as today's builtin, on the first device."""
    keywords = {arg.keyword.value for arg in new.args if arg.keyword}
    if not new.args or new.args[0].keyword or new.args[0].star:
        return new
    shape, *rest = new.args
    value = shape.value
    if isinstance(value, cst.Tuple):
        value = cst.List(value.elements)
    if isinstance(value, cst.List):
        value = cst.Call(names.spelled("R.shape", old.func), [cst.Arg(value)])
    args = [shape.with_changes(value=value), *rest]
    if "runtime_device_index" not in keywords and len(args) < 3:
        last = args[-1]
        args[-1] = last.with_changes(comma=SPACED)
        index = cst.Arg(cst.Integer("0"), keyword=cst.Name("runtime_device_index"), equal=TIGHT)
        args.append(index)
    return new.with_changes(func=names.spelled("R.builtin.alloc_tensor", old.func), args=args)


# --- calls of operators and kernels -------------------------------------------------------------

_KERNEL_CALLS: Final = ("call_tir", "call_dps_packed", "call_tir_inplace", "call_tir_with_grad")
OPERATOR_PREFIXES: Final = ("R", "tvm.relax.op", "tvm.relax")
_TYPES: Final = ("R.Tensor", "R.Tuple", "tvm.relax.TensorType", "tvm.relax.TensorStructInfo")
_KEYWORDS: Final = {
    "out_sinfo": "out_ty",
    "sinfo_args": "ty_args",
    "type_args": "ty_args",
    "ret_struct_info": "ret_ty",
    "struct_info": "ty",
}


def rewrite_call(
    old: cst.Call, new: cst.Call, meaning: str, names: DottedNames, add_note: AddNote
) -> cst.Call:
    """Return a call of a Relax operator in today's form."""
    new = _keywords(new)
    operator = meaning.rpartition(".")[2]
    if operator in _KERNEL_CALLS:
        return _kernel_call(old, new, meaning, names, add_note)
    if operator == "alloc_tensor":
        return _alloc_tensor(old, new, names)
    return new


def _keywords(node: cst.Call) -> cst.Call:
    """Return a call with today's keywords for types."""
    if not any(arg.keyword is not None and arg.keyword.value in _KEYWORDS for arg in node.args):
        return node
    args = [
        arg.with_changes(keyword=cst.Name(_KEYWORDS[arg.keyword.value]))
        if arg.keyword is not None and arg.keyword.value in _KEYWORDS
        else arg
        for arg in node.args
    ]
    return node.with_changes(args=args)


def _kernel_call(
    old: cst.Call, new: cst.Call, meaning: str, names: DottedNames, add_note: AddNote
) -> cst.Call:
    """Return a call of a kernel in today's form, or unchanged with a note of the reason."""
    prefix, _, operator = meaning.rpartition(".")
    new = _library_call(new, operator)
    called = old.args[0].value if old.args and not old.args[0].star else None
    if (
        isinstance(called, cst.Name)
        and new.args[0].value.deep_equals(called)
        and not names.bound(called)
    ):
        add_note(called.value, f"{operator} calls it, and no function of its class has this name")
    if operator not in ("call_tir", "call_dps_packed"):
        return new
    arguments = _arguments(new)
    if arguments is None:
        add_note(operator, "its arguments include * or **, so its shape is unknown")
        return new
    if "tir_vars" in arguments:
        add_note(operator, "tir_vars are arguments of the kernel itself now, before its outputs")
        return new
    if "shape" not in arguments or "out_ty" in arguments:
        return new
    shape, dtype = arguments["shape"].value, arguments.get("dtype")
    if dtype is None:
        original = _arguments(old)
        if isinstance(shape, cst.Tuple | cst.List) and not _holds_types(
            original["shape"].value if original and "shape" in original else shape, names
        ):
            add_note(operator, "it has a shape and no dtype, and a type needs both")
        return new
    tensor = names.spelled("R.Tensor" if prefix == "R" else "tvm.relax.TensorType", old.func)
    out = _output_types(shape, dtype.value, tensor)
    if out is None:
        add_note(operator, "it has different numbers of dtypes and shapes")
        return new
    kept = [arg for arg in new.args if arg is not arguments["shape"] and arg is not dtype]
    last = new.args[-1]
    kept[-1] = kept[-1].with_changes(
        comma=last.comma, whitespace_after_arg=last.whitespace_after_arg
    )
    return new.with_changes(
        args=with_arg(kept, cst.Arg(out, keyword=cst.Name("out_ty"), equal=TIGHT))
    )


def _library_call(node: cst.Call, operator: str) -> cst.Call:
    called = node.args[0].value if node.args else None
    if operator != "call_tir" or not isinstance(called, cst.SimpleString):
        return node
    if isinstance(node.func, cst.Attribute):
        return node.with_changes(func=node.func.with_changes(attr=cst.Name("call_dps_packed")))
    return node


def _arguments(node: cst.Call) -> dict[str, cst.Arg] | None:
    order = ("func", "args", "shape", "dtype", "tir_vars")
    alike = {"output_shape": "shape"}
    found = {}
    for index, arg in enumerate(node.args):
        if arg.star or index >= len(order):
            return None
        name = arg.keyword.value if arg.keyword else order[index]
        found[alike.get(name, name)] = arg
    return found


def _holds_types(node: cst.BaseExpression, names: DottedNames) -> bool:
    if isinstance(node, cst.Tuple | cst.List):
        return bool(node.elements) and all(_holds_types(e.value, names) for e in node.elements)
    return isinstance(node, cst.Call) and (
        names.meaning(node.func) in _TYPES
        or (isinstance(node.func, cst.Name) and node.func.value == "Tensor")
    )


def _output_types(
    shape: cst.BaseExpression, dtype: cst.BaseExpression, tensor: cst.BaseExpression
) -> cst.BaseExpression | None:
    shapes = _items(shape)
    if shapes is None or not shapes or any(_items(each) is None for each in shapes):
        return _tensor_call(shape, dtype, tensor)
    dtypes = _items(dtype) or [dtype] * len(shapes)
    if len(dtypes) != len(shapes):
        return None
    ones = [_tensor_call(one, each, tensor) for one, each in zip(shapes, dtypes, strict=True)]
    *first, last = ones
    return cst.List([*(cst.Element(each, SPACED) for each in first), cst.Element(last)])


def _tensor_call(
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


# --- Python that builds Relax -------------------------------------------------------------------

_DYN_TENSOR_TYPE: Final = "tvm.relax.DynTensorType"
_DENSE: Final = {
    "R.dense": "R.",
    "R.nn.dense": "R.",
    "tvm.relax.op.dense": "tvm.relax.op.",
    "tvm.relax.op.nn.dense": "tvm.relax.op.",
}
# Attributes of expressions; no other library has these names.
ATTRIBUTES: Final = {
    "struct_info": ("ty",),
    "struct_info_": ("ty",),
    "checked_type": ("ty",),
    "_checked_type_": ("ty",),
    "shape_": ("ty", "shape"),
}
_TYPE_ATTRIBUTES: Final = ("struct_info", "checked_type", "_checked_type_")


def _tensor_type(old: cst.Call, new: cst.Call, _: str, names: DottedNames, __: AddNote) -> cst.Call:
    """Return DynTensorType(ndim, dtype) as today's TensorType."""
    order = ("ndim", "dtype")
    args = []
    for index, arg in enumerate(new.args):
        name = arg.keyword.value if arg.keyword else order[index] if index < 2 else ""
        if arg.star or name not in order:
            return new
        args.append(arg.with_changes(keyword=cst.Name(name), equal=TIGHT))
    return new.with_changes(func=names.spelled("tvm.relax.TensorType", old.func), args=args)


def _variable(
    old: cst.Call, new: cst.Call, _: str, names: DottedNames, add_note: AddNote
) -> cst.Call:
    """Return a variable with one type instead of a separate shape and type."""
    if any(arg.star or arg.keyword for arg in old.args):
        return new
    if len(old.args) == 2 and isinstance(old.args[1].value, cst.Tuple | cst.List):
        add_note("relax.Var", "it has a shape and no dtype, and a type needs both")
    if len(old.args) != 3:
        return new
    name, shape, kind = new.args
    whole: cst.BaseExpression | None = _type_of_another(old.args[1].value, old.args[2].value)
    if whole is None:
        dtype = _dtype(old.args[2].value, kind.value, names)
        if dtype is None:
            add_note("relax.Var", "the dtype in its third argument is unknown")
            return new
        args = [shape.with_changes(comma=SPACED), cst.Arg(dtype)]
        whole = cst.Call(names.spelled("tvm.relax.TensorType", old.func), args)
    return new.with_changes(args=[name, kind.with_changes(value=whole)])


def _constant(old: cst.Call, new: cst.Call, _: str, names: DottedNames, __: AddNote) -> cst.Call:
    """Return a constant with a dtype instead of a whole type."""
    if len(old.args) != 2:
        return new
    dtype = _dtype(old.args[1].value, None, names)
    if dtype is None:
        return new
    return new.with_changes(args=[new.args[0], new.args[1].with_changes(value=dtype)])


def _dense(
    old: cst.Call, new: cst.Call, meaning: str, names: DottedNames, add_note: AddNote
) -> cst.Call:
    """Return `dense` as a matmul of a permuted weight."""
    if len(new.args) != 2 or any(arg.keyword or arg.star for arg in new.args):
        add_note(
            "dense", "it is matmul of a permuted weight now, and it has more than two arguments"
        )
        return new
    prefix, (x, weight) = _DENSE[meaning], new.args
    turned = cst.Call(
        names.spelled(f"{prefix}permute_dims", old.func),
        [
            weight.with_changes(
                comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=cst.SimpleWhitespace("")
            )
        ],
    )
    args = [x, weight.with_changes(value=turned)]
    return new.with_changes(func=names.spelled(f"{prefix}matmul", old.func), args=args)


def rewrite_attribute(new: cst.Attribute) -> cst.BaseExpression:
    """Return the type of an expression by today's attribute."""
    *first, last = ATTRIBUTES[new.attr.value]
    value = new.value
    for name in first:
        value = cst.Attribute(value, cst.Name(name))
    return new.with_changes(value=value, attr=cst.Name(last))


def _dtype(
    old: cst.BaseExpression, new: cst.BaseExpression | None, names: DottedNames
) -> cst.BaseExpression | None:
    """Return the dtype in a type, or the attribute `dtype` of a type that is a variable."""
    if isinstance(old, cst.Call) and names.meaning(old.func) == _DYN_TENSOR_TYPE:
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
    """Return `x.ty` for the shape and the type of the same `x`, or None."""
    if (
        isinstance(shape, cst.Attribute)
        and isinstance(kind, cst.Attribute)
        and shape.attr.value in ("shape_", "shape")
        and kind.attr.value in _TYPE_ATTRIBUTES
        and shape.value.deep_equals(kind.value)
    ):
        return cst.Attribute(shape.value.deep_clone(), cst.Name("ty"))
    return None


CALL_RULES: Final = {
    _DYN_TENSOR_TYPE: _tensor_type,
    "tvm.relax.Var": _variable,
    "tvm.relax.DataflowVar": _variable,
    "tvm.relax.const": _constant,
    **dict.fromkeys(_DENSE, _dense),
}

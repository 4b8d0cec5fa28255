"""Rewrite Relax: functions in TVMScript, calls of operators and kernels, Python that builds IR."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import libcst as cst

from irviz.loaders.upgrade.dotted_names import (
    SPACED,
    CallSite,
    DottedNames,
    keyword,
    keyword_arg,
    with_arg,
    with_keywords,
)
from irviz.loaders.upgrade.function_context import Function

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


# --- calls of operators and kernels -------------------------------------------------------------

_KERNEL_CALLS: Final = ("call_tir", "call_dps_packed", "call_tir_inplace", "call_tir_with_grad")
_OPERATOR_PREFIXES: Final = ("R", "tvm.relax.op", "tvm.relax")
_EXTERNS: Final = ("tvm.relax.extern", "tvm.relax.ExternFunc", "R.extern", "R.ExternFunc")
_TYPES: Final = ("R.Tensor", "R.Tuple", "tvm.relax.TensorType", "tvm.relax.TensorStructInfo")
_KEYWORDS: Final = {
    "out_sinfo": "out_ty",
    "sinfo_args": "ty_args",
    "type_args": "ty_args",
    "ret_struct_info": "ret_ty",
    "struct_info": "ty",
}


def rewrite_call(site: CallSite) -> cst.Call:
    """Return a call of Relax in today's form."""
    if site.meaning in _CALL_RULES:
        return _CALL_RULES[site.meaning](site)
    prefix, _, operator = site.meaning.rpartition(".")
    if prefix not in _OPERATOR_PREFIXES:
        return site.new
    args = with_keywords(site.new.args, _KEYWORDS)
    site = replace(site, new=site.new.with_changes(args=args))
    if operator in _KERNEL_CALLS:
        return _kernel_call(site, prefix, operator)
    if operator == "alloc_tensor":
        return _alloc_tensor(site)
    return site.new


def _alloc_tensor(site: CallSite) -> cst.Call:
    """Return an allocation as today's builtin, on the first device."""
    args = list(site.new.args)
    if not args or args[0].keyword or args[0].star:
        return site.new
    shape = args[0].value
    if isinstance(shape, cst.Tuple):
        shape = cst.List(shape.elements)
    if isinstance(shape, cst.List):
        shape = cst.Call(site.spelled("R.shape"), [cst.Arg(shape)])
    args[0] = args[0].with_changes(value=shape)
    if len(args) < 3 and not any(keyword(arg) == "runtime_device_index" for arg in args):
        args[-1] = args[-1].with_changes(comma=SPACED)
        args.append(keyword_arg("runtime_device_index", cst.Integer("0")))
    return site.of("R.builtin.alloc_tensor", args)


def _kernel_call(site: CallSite, prefix: str, operator: str) -> cst.Call:
    """Return a call of a kernel in today's form, or unchanged with a note of the reason."""
    old, new = site.old, _library_call(site, operator)
    called = old.args[0].value if old.args and not old.args[0].star else None
    if (
        isinstance(called, cst.Name)
        and new.args[0].value.deep_equals(called)
        and not site.names.bound(called)
    ):
        why = f"{operator} calls it, and no function of its class has this name"
        site.add_note(called.value, why)
    if operator not in ("call_tir", "call_dps_packed"):
        return new
    arguments = _arguments(new)
    if arguments is None:
        site.add_note(operator, "its arguments include * or **, so its shape is unknown")
        return new
    if "tir_vars" in arguments:
        site.add_note(
            operator, "tir_vars are arguments of the kernel itself now, before its outputs"
        )
        return new
    if "shape" not in arguments or "out_ty" in arguments:
        return new
    shape, dtype = arguments["shape"].value, arguments.get("dtype")
    if dtype is None:
        original = (_arguments(old) or {}).get("shape", arguments["shape"]).value
        if isinstance(shape, cst.Tuple | cst.List) and not _holds_types(original, site.names):
            site.add_note(operator, "it has a shape and no dtype, and a type needs both")
        return new
    tensor = site.spelled("R.Tensor" if prefix == "R" else "tvm.relax.TensorType")
    out = _output_types(shape, dtype.value, tensor)
    if out is None:
        site.add_note(operator, "it has different numbers of dtypes and shapes")
        return new
    kept = [arg for arg in new.args if arg is not arguments["shape"] and arg is not dtype]
    last = new.args[-1]
    kept[-1] = kept[-1].with_changes(
        comma=last.comma, whitespace_after_arg=last.whitespace_after_arg
    )
    return new.with_changes(args=with_arg(kept, keyword_arg("out_ty", out)))


def _library_call(site: CallSite, operator: str) -> cst.Call:
    """Return a call of a kernel by name, `"f"` or `extern("f")`, as a call of a library's."""
    node = site.new
    called = node.args[0].value if node.args else None
    if operator != "call_tir" or not isinstance(node.func, cst.Attribute):
        return node
    if isinstance(called, cst.Call) and len(called.args) == 1:
        extern = site.old.args[0].value
        if isinstance(extern, cst.Call) and site.names.meaning(extern.func) in _EXTERNS:
            called = called.args[0].value
    if not isinstance(called, cst.SimpleString):
        return node
    func = node.func.with_changes(attr=cst.Name("call_dps_packed"))
    args = [node.args[0].with_changes(value=called), *node.args[1:]]
    return node.with_changes(func=func, args=args)


def _arguments(node: cst.Call) -> dict[str, cst.Arg] | None:
    """Return the arguments of a kernel's call by name, or None if they include * or **."""
    order = ("func", "args", "shape", "dtype", "tir_vars")
    found = {}
    for index, arg in enumerate(node.args):
        if arg.star or index >= len(order):
            return None
        name = keyword(arg) or order[index]
        found["shape" if name == "output_shape" else name] = arg
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
    """Return the type of one output or a list of several, or None if the numbers differ."""
    shapes = _items(shape)
    if not shapes or any(_items(each) is None for each in shapes):
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
    args = [cst.Arg(shape, comma=SPACED), cst.Arg(dtype.deep_clone())]
    return cst.Call(tensor.deep_clone(), args)


def _items(node: cst.BaseExpression) -> Sequence[cst.BaseExpression] | None:
    if isinstance(node, cst.Tuple | cst.List):
        return [element.value for element in node.elements]
    return None


# --- Python that builds Relax -------------------------------------------------------------------

_DYN_TENSOR_TYPE: Final = "tvm.relax.DynTensorType"
# Attributes of expressions; no other library has these names.
ATTRIBUTES: Final = {
    "struct_info": ("ty",),
    "struct_info_": ("ty",),
    "checked_type": ("ty",),
    "_checked_type_": ("ty",),
    "shape_": ("ty", "shape"),
    "imported_modules": ("imports",),
}
_TYPE_ATTRIBUTES: Final = ("struct_info", "checked_type", "_checked_type_")


def _tensor_type(site: CallSite) -> cst.Call:
    """Return DynTensorType(ndim, dtype) as today's TensorType."""
    args = []
    for arg, name in zip(site.new.args, _tensor_type_names(site.new.args), strict=True):
        if arg.star or name not in ("ndim", "dtype"):
            return site.new
        named = keyword_arg(name, arg.value)
        args.append(arg.with_changes(keyword=named.keyword, equal=named.equal))
    return site.of("tvm.relax.TensorType", args)


def _tensor_type_names(args: Sequence[cst.Arg]) -> list[str]:
    """Return the names of DynTensorType's arguments, "" for those that it does not have."""
    order = ("ndim", "dtype", *[""] * len(args))
    return [keyword(arg) or name for arg, name in zip(args, order, strict=False)]


def _variable(site: CallSite) -> cst.Call:
    """Return a variable with one type instead of a separate shape and type."""
    old, new = site.old.args, site.new
    if any(arg.star or arg.keyword for arg in old):
        return new
    if len(old) == 2 and isinstance(old[1].value, cst.Tuple | cst.List):
        site.add_note("relax.Var", "it has a shape and no dtype, and a type needs both")
    if len(old) != 3:
        return new
    name, shape, kind = new.args
    whole: cst.BaseExpression | None = _type_of_another(old[1].value, old[2].value)
    if whole is None:
        dtype = _dtype(old[2].value, kind.value, site.names)
        if dtype is None:
            site.add_note("relax.Var", "the dtype in its third argument is unknown")
            return new
        args = [shape.with_changes(comma=SPACED), cst.Arg(dtype)]
        whole = cst.Call(site.spelled("tvm.relax.TensorType"), args)
    return new.with_changes(args=[name, kind.with_changes(value=whole)])


def _constant(site: CallSite) -> cst.Call:
    """Return a constant with a dtype instead of a whole type."""
    old, new = site.old.args, site.new.args
    dtype = _dtype(old[1].value, None, site.names) if len(old) == 2 else None
    if dtype is None:
        return site.new
    return site.new.with_changes(args=[new[0], new[1].with_changes(value=dtype)])


def check_dense(site: CallSite) -> bool:
    """Tell whether `dense` has two arguments as matmul has; if not, add a note."""
    plain = len(site.old.args) == 2 and not any(arg.keyword or arg.star for arg in site.old.args)
    if not plain:
        site.add_note(
            "dense", "it is matmul of a permuted weight now, and it has more than two arguments"
        )
    return plain


def _dense(site: CallSite) -> cst.Call:
    """Return `dense` as a matmul of a permuted weight."""
    new = site.new
    if not check_dense(site):
        return new
    prefix = site.meaning.removesuffix("dense").removesuffix("nn.")
    x, weight = new.args
    turned = cst.Call(site.spelled(f"{prefix}permute_dims"), [cst.Arg(weight.value)])
    return site.of(f"{prefix}matmul", [x, weight.with_changes(value=turned)])


def rewrite_pattern(site: CallSite) -> cst.Call:
    """Return `is_op("relax.nn.dense")(x, w)` as a pattern in today's names."""
    named, args = site.old.func, list(site.new.args)
    if not isinstance(named, cst.Call) or len(args) != 2 or any(arg.keyword for arg in args):
        return site.new
    turned = named.with_changes(args=[cst.Arg(cst.SimpleString('"relax.permute_dims"'))])
    args[1] = args[1].with_changes(value=cst.Call(turned, [cst.Arg(args[1].value)]))
    return site.new.with_changes(args=args)


def names_operator(node: cst.BaseExpression, operator: str) -> bool:
    """Tell whether an expression is a string with the name of an operator."""
    return isinstance(node, cst.SimpleString) and node.evaluated_value == operator


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
        for arg, name in zip(old.args, _tensor_type_names(old.args), strict=True):
            if name == "dtype":
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


DENSE: Final = "relax.nn.dense"
DENSE_MATMULS: Final = {
    "R.dense": "R.matmul",
    "R.nn.dense": "R.matmul",
    "tvm.relax.op.dense": "tvm.relax.op.matmul",
    "tvm.relax.op.nn.dense": "tvm.relax.op.matmul",
    "tvm.topi.nn.dense": "tvm.topi.matmul",
}
"""What takes the place of `dense` where its weight is already permuted."""

_CALL_RULES: Final[Mapping[str, Callable[[CallSite], cst.Call]]] = {
    _DYN_TENSOR_TYPE: _tensor_type,
    "tvm.relax.Var": _variable,
    "tvm.relax.DataflowVar": _variable,
    "tvm.relax.const": _constant,
    "R.dense": _dense,
    "R.nn.dense": _dense,
    "tvm.relax.op.dense": _dense,
    "tvm.relax.op.nn.dense": _dense,
}

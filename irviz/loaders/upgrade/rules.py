"""Rewrite old TVM programs: PrimFuncs, Relax, and the Python that builds and schedules them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import count
from typing import Final

import libcst as cst

from irviz.loaders.upgrade.qualified_names import (
    SPACED,
    CallSite,
    DottedNames,
    callee,
    keyword,
    keyword_arg,
    parts,
    with_arg,
    with_keywords,
)

_BLOCKS = ("T.block", "T.sblock")
_EXPRESSIONS = ("tvm.relax.testing.nn.Parameter", "tvm.relax.Var", "tvm.relax.const")
_IR_MODULES = ("tvm.script.ir_module", "I.ir_module")


@dataclass
class Function:
    """A function of the text; its kind is "prim", "relax", or "" for a Python function.

    `old` tells whether a PrimFunc is in an earlier dialect. `module` is the enclosing class, and
    `cls` the body's name for it.
    """

    kind: str
    old: bool = False
    module: str = ""
    siblings: frozenset[str] = frozenset()
    cls: str = ""
    uses_cls: bool = False


@dataclass(frozen=True)
class Owner:
    """A class, the names of its functions, and attributes like `self.bias` that are expressions."""

    node: cst.ClassDef
    functions: frozenset[str]
    expressions: frozenset[str]

    @staticmethod
    def of(node: cst.ClassDef, names: DottedNames) -> Owner:
        """Return a class with what its body says."""
        functions = (each for each in node.body.body if isinstance(each, cst.FunctionDef))
        expressions = (
            ".".join(parts(target.target))
            for each in every(node, cst.Assign)
            if isinstance(each.value, cst.Call) and names.meaning(each.value.func) in _EXPRESSIONS
            for target in each.targets
            if isinstance(target.target, cst.Attribute)
        )
        return Owner(node, frozenset(each.name.value for each in functions), frozenset(expressions))


def function_of(node: cst.FunctionDef, names: DottedNames, owner: Owner | None) -> Function:
    """Return the kind and the context of a function, from its decorators and its body."""
    for decorator in node.decorators:
        meaning = names.meaning(callee(decorator.decorator))
        if meaning == "T.prim_func":
            return Function("prim", old=_is_old(node, decorator.decorator, names))
        if meaning == "R.function":
            return _relax_function(node, names, owner)
    return Function("")


def _relax_function(node: cst.FunctionDef, names: DottedNames, owner: Owner | None) -> Function:
    decorators = [] if owner is None else [callee(each.decorator) for each in owner.node.decorators]
    if owner is None or not any(names.meaning(each) in _IR_MODULES for each in decorators):
        return Function("relax")
    module = owner.node.name.value
    cls = _module_alias(node, module)
    if not cls:
        used = {each.value for each in every(node, cst.Name)}
        candidates = (f"cls{number}" if number > 1 else "cls" for number in count(1))
        cls = next(name for name in candidates if name not in used)
        return Function("relax", module=module, siblings=owner.functions, cls=cls)
    return Function("relax", siblings=owner.functions, cls=cls)


def _module_alias(node: cst.FunctionDef, module: str) -> str:
    """Return the alias of the module in a function's body, or ""."""
    for statement in every(node.body, cst.Assign):
        value, target = statement.value, statement.targets[0].target
        if isinstance(value, cst.Name) and value.value == module and isinstance(target, cst.Name):
            return target.value
    return ""


def _is_old(node: cst.FunctionDef, decorator: cst.BaseExpression, names: DottedNames) -> bool:
    """Tell whether a PrimFunc is in an earlier dialect."""
    if isinstance(decorator, cst.Call) and any(keyword(arg) == "s_tir" for arg in decorator.args):
        return False
    target = callee(decorator)
    if names.root(target) == "tvm.script.tir" or parts(target)[:3] == ["tvm", "script", "tir"]:
        return True
    return any(names.meaning(each) in _BLOCKS for each in every(node.body, cst.Attribute))


def every(node: cst.CSTNode, kind: type[cst.CSTNodeT]) -> Iterator[cst.CSTNodeT]:
    """Yield every node of a class in a tree, the root included."""
    # not by `children`, which libcst finds by making a copy of the node
    left: list[object] = [node]
    while left:
        each = left.pop()
        if isinstance(each, kind):
            yield each
        if isinstance(each, cst.CSTNode):
            left.extend(getattr(each, one.name) for one in reversed(fields(each)))
        elif isinstance(each, list | tuple):
            left.extend(reversed(each))


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


def rewrite_prim_func_call(node: cst.Call, meaning: str, function: Function) -> cst.Call:
    """Return a call in an old PrimFunc in today's form."""
    if not function.old:
        return node
    if meaning == "T.alloc_buffer" and isinstance(node.func, cst.Attribute):
        func = node.func.with_changes(attr=cst.Name("sblock_alloc_buffer"))
        return node.with_changes(func=func)
    if meaning == "T.match_buffer":
        args = [
            arg.with_changes(value=cst.Integer("64"))  # all memory was aligned by 128 once
            if keyword(arg) == "align" and arg.value.deep_equals(cst.Integer("128"))
            else arg
            for arg in node.args
        ]
        return node.with_changes(args=args)
    return _func_attr(node) if meaning == "T.func_attr" else node


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


# --- functions in TVMScript ---------------------------------------------------------------------

_BARE_TYPES: Final = ("Tensor", "Object", "Shape")
_PYTHON_PREFIXES: Final = ("tvm.relax.op.", "tvm.relax.")


def rewrite_name(
    old: cst.Name, new: cst.Name, function: Function, names: DottedNames
) -> cst.BaseExpression:
    """Return a bare name in a Relax function in today's form: `R.Tensor`, `cls.linear0`."""
    if names.bound(old):
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
    line = cst.parse_statement(f"{function.cls} = {function.module}")
    return node.with_changes(body=node.body.with_changes(body=[line, *node.body.body]))


# --- calls of operators and kernels -------------------------------------------------------------

_KERNEL_CALLS: Final = ("call_tir", "call_dps_packed", "call_tir_inplace", "call_tir_with_grad")
_KERNEL_ARGUMENTS: Final = ("func", "args", "shape", "dtype", "tir_vars")
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
    arguments = _by_name(new.args, _KERNEL_ARGUMENTS)
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
        originals = _by_name(old.args, _KERNEL_ARGUMENTS) or {}
        original = originals.get("shape", arguments["shape"]).value
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


def _by_name(args: Sequence[cst.Arg], order: Sequence[str]) -> dict[str, cst.Arg] | None:
    """Return arguments by name, or None if they include * or **, or are too many."""
    found = {}
    for index, arg in enumerate(args):
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
_TENSOR_TYPE_ARGUMENTS: Final = ("ndim", "dtype", "span")
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
    given = _by_name(site.new.args, _TENSOR_TYPE_ARGUMENTS)
    if given is None or not given.keys() <= {"ndim", "dtype"}:
        return site.new
    args = []
    for name, arg in given.items():
        named = keyword_arg(name, arg.value)
        args.append(arg.with_changes(keyword=named.keyword, equal=named.equal))
    return site.of("tvm.relax.TensorType", args)


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


def names_dense(node: cst.BaseExpression) -> bool:
    """Tell whether an expression is the name of the operator `dense` as a string."""
    return isinstance(node, cst.SimpleString) and node.evaluated_value == "relax.nn.dense"


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
        given = _by_name(old.args, _TENSOR_TYPE_ARGUMENTS) or {}
        return given["dtype"].value.deep_clone() if "dtype" in given else None
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


_BUILDS: Final = (
    "tvm.build",
    "tvm.tirx.build",
    "tvm.compile",
    "tvm.relax.build",
    "tvm.relax.vm.build",
    "tvm.target.Target",
)
_VM_BUILDS: Final = ("tvm.relax.vm.build", "tvm.relax.vm_build.build")
# Methods of schedules and modules, with the arguments that they had; no other object has them.
_METHODS: Final = {"get_block": "get_sblock"}
_METHODS_WITHOUT_ARGUMENTS: Final = {"get_source": "inspect_source"}
_METHOD_KEYWORDS: Final = {"blockize": {"loop": "target"}}
_CONSTANTS: Final = ("relay.Constant", "relax.Constant", "relax.expr.Constant")


def rewrite_python_call(site: CallSite) -> cst.Call:
    """Return a call of TVM's Python API in today's form."""
    old, new, meaning = site.old.args, site.new, site.meaning
    if meaning in _VM_BUILDS:
        is_plain = len(old) <= 2 and all(keyword(arg) in ("", "mod", "target") for arg in old)
        function = "tvm.compile" if is_plain else "tvm.relax.build"
        new = new.with_changes(func=site.spelled(function))
    if meaning == "tvm.build" and len(old) > 1 and isinstance(old[1].value, cst.List):
        site.add_note(
            "tvm.build", "a schedule of tensor expressions was built; build its PrimFunc instead"
        )
        return new
    if meaning == "tvm.device" and new.args and _is_llvm(old[0].value, site.names):
        return new.with_changes(
            args=[new.args[0].with_changes(value=cst.SimpleString('"cpu"')), *new.args[1:]]
        )
    args = [
        arg.with_changes(value=_target(arg.value)) if _is_target(meaning, index, arg) else arg
        for index, arg in enumerate(new.args)
    ]
    return new.with_changes(args=args)


def _is_target(meaning: str, index: int, arg: cst.Arg) -> bool:
    if arg.keyword is not None:
        return keyword(arg) == "target"
    return (meaning in _BUILDS and index == 1) or (meaning == "tvm.target.Target" and index == 0)


def _is_llvm(node: cst.BaseExpression, names: DottedNames) -> bool:
    """Tell whether a device is given by the name of the target for this machine's processor."""
    if isinstance(node, cst.Name):
        texts = names.texts(node)
    else:
        texts = [str(node.evaluated_value)] if isinstance(node, cst.SimpleString) else []
    return bool(texts) and all(text.split()[:1] == ["llvm"] for text in texts)


def _target(node: cst.BaseExpression) -> cst.BaseExpression:
    """Return `"llvm -num-cores=1"` as a dictionary, today's form of a target with options."""
    value = node.evaluated_value if isinstance(node, cst.SimpleString) else None
    if not isinstance(value, str) or " -" not in value:
        return node
    kind, *options = value.split()
    if any(not option.startswith("-") or "=" not in option for option in options):
        return node
    target: dict[str, str | int | list[str]] = {"kind": kind}
    for option in options:
        name, _, text = option.lstrip("-").partition("=")
        number = int(text) if re.fullmatch(r"[0-9]{1,18}", text) else text
        target[name] = text.split(",") if name in ("keys", "mattr", "libs") else number
    return cst.parse_expression(json.dumps(target, ensure_ascii=False))


def rewrite_method(new: cst.Call) -> cst.Call:
    """Return a call of a method of a schedule or a module by today's names."""
    func = new.func
    if not isinstance(func, cst.Attribute):
        return new
    name = func.attr.value
    methods = _METHODS if new.args else _METHODS_WITHOUT_ARGUMENTS
    args = with_keywords(new.args, _METHOD_KEYWORDS.get(name, {}))
    func = func.with_changes(attr=cst.Name(methods.get(name, name)))
    return new.with_changes(func=func, args=args)


def rewrite_metadata(node: cst.Subscript) -> cst.Subscript | None:
    """Return a table of constants under the name that TVM prints today, or None if it is none.

    TVM printed it as `meta[relay.Constant]` or `metadata["relax.expr.Constant"]`.
    """
    index = node.slice[0].slice if len(node.slice) == 1 else None
    if not isinstance(node.value, cst.Name) or not isinstance(index, cst.Index):
        return None
    name: object = None
    if node.value.value == "meta":
        name = ".".join(parts(index.value))
    elif node.value.value == "metadata" and isinstance(index.value, cst.SimpleString):
        name = index.value.evaluated_value
    if name not in _CONSTANTS:
        return None
    new = cst.SubscriptElement(cst.Index(cst.SimpleString('"ir.GenericConst"')))
    return node.with_changes(value=cst.Name("metadata"), slice=[new])

"""Rewrite Python that builds and schedules: builds, targets, schedules, stored constants."""

from __future__ import annotations

from typing import Final

import libcst as cst

from irviz.loaders.upgrade.dotted_names import CallSite, DottedNames, keyword, parts, with_keywords

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


def rewrite_call(site: CallSite) -> cst.Call:
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
    items = [f'"kind": "{kind}"']
    for option in options:
        name, _, text = option.lstrip("-").partition("=")
        texts = ", ".join(f'"{each}"' for each in text.split(","))
        listed = name in ("keys", "mattr", "libs")
        items.append(f'"{name}": ' + (f"[{texts}]" if listed else _number(text)))
    return cst.parse_expression(f"{{{', '.join(items)}}}")


def _number(text: str) -> str:
    return text if text.isascii() and text.isdecimal() else f'"{text}"'


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

"""What surrounds a piece of TVMScript: the module's class, and the function it stands in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst

from irviz.loaders.upgrade.names import Names, parts

BLOCKS = ("T.block", "T.sblock")
IR_MODULES = ("tvm.script.ir_module", "I.ir_module")


@dataclass
class Function:
    """A function of the text: "prim", "relax" or "" for one of Python's.

    `old` holds for a PrimFunc that is written as none is today; `module` is the class it is part
    of, and `cls` what its body calls that, when it does.
    """

    kind: str
    old: bool = False
    module: str = ""
    siblings: frozenset[str] = frozenset()
    cls: str = ""
    uses_cls: bool = False
    sizes: list[str] = field(default_factory=list)


def function_of(node: cst.FunctionDef, names: Names, owner: cst.ClassDef | None) -> Function:
    """Read from a function's decorators and body what it is."""
    for decorator in node.decorators:
        called = decorator.decorator
        target = called.func if isinstance(called, cst.Call) else called
        meaning = names.meaning(target)
        if meaning == "T.prim_func":
            return Function("prim", old=_is_old(node, called, target, names))
        if meaning == "R.function":
            return _relax_function(node, names, owner)
    return Function("")


def is_ir_module(node: cst.ClassDef, names: Names) -> bool:
    """Tell whether a class is an IRModule's TVMScript."""
    targets = (
        each.decorator.func if isinstance(each.decorator, cst.Call) else each.decorator
        for each in node.decorators
    )
    return any(names.meaning(target) in IR_MODULES for target in targets)


def _relax_function(node: cst.FunctionDef, names: Names, owner: cst.ClassDef | None) -> Function:
    if owner is None or not is_ir_module(owner, names):
        return Function("relax")
    siblings = frozenset(
        each.name.value for each in owner.body.body if isinstance(each, cst.FunctionDef)
    )
    cls = _called(node, owner.name.value)
    if not cls:
        used = {each.value for each in every(node, cst.Name)}
        cls = names.free("cls", used)
        return Function("relax", module=owner.name.value, siblings=siblings, cls=cls)
    return Function("relax", siblings=siblings, cls=cls)


def _called(node: cst.FunctionDef, module: str) -> str:
    """Return the name that a function's body gives its module, or nothing."""
    for statement in every(node.body, cst.Assign):
        value, target = statement.value, statement.targets[0].target
        if isinstance(value, cst.Name) and value.value == module and isinstance(target, cst.Name):
            return target.value
    return ""


def _is_old(
    node: cst.FunctionDef, called: cst.BaseExpression, target: cst.BaseExpression, names: Names
) -> bool:
    if isinstance(called, cst.Call) and any(
        arg.keyword is not None and arg.keyword.value == "s_tir" for arg in called.args
    ):
        return False
    if names.root(target) == "tvm.script.tir" or parts(target)[:3] == ["tvm", "script", "tir"]:
        return True
    return any(names.meaning(each) in BLOCKS for each in every(node.body, cst.Attribute))


def every(node: cst.CSTNode, kind: type[cst.CSTNodeT]) -> Iterator[cst.CSTNodeT]:
    """Give every node of a kind in a tree, the tree itself as well."""
    left: list[cst.CSTNode] = [node]
    while left:
        each = left.pop()
        if isinstance(each, kind):
            yield each
        left.extend(reversed(each.children))

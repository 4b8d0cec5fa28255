"""The function and the module that enclose a piece of TVMScript."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import count

import libcst as cst

from irviz.loaders.upgrade.dotted_names import DottedNames, callee, keyword, parts

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

# ruff: noqa: F841, N805, N812, RET504, SIM108
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""Modules with branches, with functions inside functions, and with functions that call back."""

from tvm import IRModule, ir, relax, tirx
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

from .making import TENSOR, module, normalized


@I.ir_module
class Branches:
    """An If whose branches compute, capture and return variables."""

    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor((2,), "float32"), y: R.Tensor((2,), "float32")):
        if c:
            a = R.add(x, y)
            chosen = R.multiply(a, x)
        else:
            b = R.subtract(x, y)
            chosen = R.subtract(b, b)
        after = R.add(chosen, y)
        return after


@I.ir_module
class Mixture:
    """Branches, a tensor constant, a scalar, two outputs."""

    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor((2,), "float32"), y: R.Tensor((2,), "float32")):
        if c:
            a = R.add(x, y)
            chosen = R.multiply(a, x)
        else:
            b = R.subtract(x, R.const([1.0, 2.0], "float32"))
            chosen = R.subtract(b, b)
        scaled = R.multiply(chosen, R.const(2.0, "float32"))
        after = R.add(scaled, y)
        return (after, scaled)


@I.ir_module
class NestedBranches:
    """Ifs inside both branches of an If."""

    @R.function
    def main(c: R.Tensor((), "bool"), d: R.Tensor((), "bool"), x: R.Tensor((2,), "float32")):
        if c:
            if d:
                inner = R.add(x, x)
            else:
                inner = R.multiply(x, x)
            chosen = R.add(inner, x)
        else:
            if d:
                other = R.subtract(x, x)
            else:
                other = R.divide(x, x)
            chosen = R.add(other, other)
        return chosen


def _if(then: ir.Expr, other: ir.Expr, *more: ir.Var, type_: ir.Type = TENSOR) -> IRModule:
    condition = relax.Var("c", relax.TensorType([], "bool"))
    chosen = relax.Var("chosen", type_)
    branches = [
        branch if isinstance(branch, relax.SeqExpr) else relax.SeqExpr([], branch)
        for branch in (then, other)
    ]
    binding = relax.VarBinding(chosen, relax.If(condition, *branches))
    return normalized(module([condition, *more], [binding], chosen, type_=type_))


def outside_branches() -> IRModule:
    """Return a module whose branches compute nothing: each returns what it was given."""
    x, y = relax.Var("x", TENSOR), relax.Var("y", TENSOR)
    return _if(x, y, x, y)


def constant_branches() -> IRModule:
    """Return a module whose branches return a tensor constant and a scalar's sum."""
    x = relax.Var("x", TENSOR)
    table = relax.const([1.0, 2.0], "float32")
    sum_ = relax.Var("sum", TENSOR)
    call = relax.op.add(x, relax.const(1.0, "float32"))
    block = relax.BindingBlock([relax.VarBinding(sum_, call)])
    return _if(table, relax.SeqExpr([block], sum_), x)


def scalar_branches() -> IRModule:
    """Return a module whose branches return scalar constants."""
    type_ = relax.TensorType([], "float32")
    return _if(relax.const(1.0, "float32"), relax.const(2.0, "float32"), type_=type_)


def tuple_branches() -> IRModule:
    """Return a module whose branches return tuples, of what is inside and what is outside."""
    x, y = relax.Var("x", TENSOR), relax.Var("y", TENSOR)
    sum_ = relax.Var("sum", TENSOR)
    block = relax.BindingBlock([relax.VarBinding(sum_, relax.op.add(x, y))])
    type_ = ir.TupleType([TENSOR, ir.TupleType([TENSOR, TENSOR])])
    then = relax.SeqExpr([block], relax.Tuple([sum_, relax.Tuple([x, sum_])]))
    return _if(then, relax.Tuple([y, relax.Tuple([y, x])]), x, y, type_=type_)


def shape_branches() -> IRModule:
    """Return a module whose branches return shapes, of a number among the parameters."""
    n = tirx.Var("n", "int64")
    return _if(
        relax.ShapeExpr([n, 2]), relax.ShapeExpr([3, n * n]), n, type_=relax.ShapeType(ndim=2)
    )


def branches_in_dataflow_blocks() -> IRModule:
    """Return a module whose branches hold dataflow blocks."""
    x = relax.Var("x", TENSOR)
    branches = []
    for name in ("then", "else"):
        lv, gv = relax.DataflowVar(f"lv_{name}", TENSOR), relax.Var(f"gv_{name}", TENSOR)
        block = relax.DataflowBlock(
            [
                relax.VarBinding(lv, relax.op.add(x, x)),
                relax.VarBinding(gv, relax.op.multiply(lv, x)),
            ]
        )
        branches.append(relax.SeqExpr([block], gv))
    return _if(*branches, x)


@I.ir_module
class NumberAsCondition:
    """An If on a number among the parameters."""

    @R.function
    def main(x: R.Tensor((2,), "float32"), flag: T.bool):
        if flag:
            chosen = R.add(x, x)
        else:
            chosen = R.multiply(x, x)
        return chosen


@I.ir_module
class Inner:
    """A function inside of a function, called twice, that captures nothing."""

    @R.function
    def main(x: R.Tensor((2,), "float32")):
        @R.function
        def inner(a: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            b = R.add(a, a)
            return b

        y = inner(x)
        z = inner(y)
        return z


@I.ir_module
class Capturing:
    """Functions two deep: the innermost uses what each level around it has."""

    @R.function
    def main(x: R.Tensor((2,), "float32"), y: R.Tensor((2,), "float32")):
        @R.function
        def outer(a: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            @R.function
            def inner(b: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
                sum_ = R.add(a, b)
                all_ = R.add(sum_, y)
                return all_

            c = inner(a)
            return c

        z = outer(x)
        return z


@I.ir_module
class Recursive:
    """A closure that calls itself."""

    @R.function
    def main(x: R.Tensor((2,), "float32"), c: R.Tensor((), "bool")):
        @R.function
        def again(a: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            if c:
                b = R.add(a, a)
                r = again(b)
            else:
                r = R.multiply(a, a)
            return r

        y = again(x)
        return y


@I.ir_module
class Returned:
    """A function that returns a closure, and passes one to another function."""

    @R.function
    def apply(
        f: R.Callable((R.Tensor((2,), "float32"),), R.Tensor((2,), "float32"), True),
        x: R.Tensor((2,), "float32"),
    ) -> R.Tensor((2,), "float32"):
        y = f(x)
        return y

    @R.function
    def main(
        x: R.Tensor((2,), "float32"),
    ) -> R.Callable((R.Tensor((2,), "float32"),), R.Tensor((2,), "float32"), True):
        cls = Returned

        @R.function
        def inner(a: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            b = R.add(a, x)
            return b

        passed = cls.apply(inner, x)
        named = cls.apply
        return inner


@I.ir_module
class Calling:
    """A function that calls itself, and two that call each other."""

    @R.function
    def down(x: R.Tensor((2,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((2,), "float32"):
        cls = Calling
        if c:
            r = cls.down(x, c)
        else:
            r = R.add(x, x)
        return r

    @R.function
    def odd(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Calling
        y = cls.even(x)
        return y

    @R.function
    def even(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Calling
        y = cls.odd(x)
        return y

    @R.function
    def main(x: R.Tensor((2,), "float32"), c: R.Tensor((), "bool")):
        cls = Calling
        with R.dataflow():
            a = cls.odd(x)
            R.output(a)
        b = cls.down(a, c)
        return b


@I.ir_module
class Effects:
    """Calls with effects, in their order, outside of dataflow blocks; no function has only one."""

    @R.function(pure=False)
    def shout(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        said = R.print(x, format="{}")
        return x

    @R.function(pure=False)
    def main(x: R.Tensor((2,), "float32"), ok: R.Tensor((), "bool")):
        cls = Effects
        with R.dataflow():
            y = R.add(x, x)
            R.output(y)
        checked = R.assert_op(ok, [x, y], format="{} {}")
        bare = R.print(format="")
        buffer = R.builtin.alloc_tensor(R.shape([2]), dtype="float32", runtime_device_index=0)
        called = cls.shout(y)
        if ok:
            said = R.print(called, format="{}")
            r = R.add(called, y)
        else:
            r = R.add(called, called)
        kept = R.builtin.stop_lift_params(r)
        return kept


@I.ir_module
class Blocks:
    """Blocks of both kinds; what a dataflow block gives out is seen after it."""

    @R.function
    def main(x: R.Tensor((2,), "float32")):
        with R.dataflow():
            lv = R.add(x, x)
            gv = R.multiply(lv, x)
            gv1 = R.subtract(lv, gv)
            R.output(gv, gv1)
        between = R.add(gv, gv1)
        with R.dataflow():
            lv = R.add(between, gv)
            gv2 = R.multiply(lv, lv)
            R.output(gv2)
        return gv2


@I.ir_module
class Identity:
    """Functions that bind nothing: they return what they take."""

    @R.function
    def pair(x: R.Tensor((2,), "float32"), y: R.Tensor((2,), "float32")):
        return (y, (x, y))

    @R.function
    def main(x: R.Tensor((2,), "float32")):
        return x


@I.ir_module
class Attributed:
    """Attributes of the module and of its functions, one of which is private."""

    I.module_attrs({"flavour": "plain", "number": 3})

    @R.function(private=True)
    def hidden(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        R.func_attr({"Primitive": True, "note": [1, 2]})
        y = R.add(x, x)
        return y

    @R.function
    def main(x: R.Tensor((2,), "float32")):
        R.func_attr({"num_input": 1, "relax.force_pure": True})
        cls = Attributed
        y = cls.hidden(x)
        return y


CONTROL = {
    "branches": Branches,
    "something of all": Mixture,
    "nested branches": NestedBranches,
    "branches that return what is outside": outside_branches,
    "branches that return constants": constant_branches,
    "branches that return scalars": scalar_branches,
    "branches that return tuples": tuple_branches,
    "branches that return shapes": shape_branches,
    "dataflow blocks in branches": branches_in_dataflow_blocks,
    "a number as condition": NumberAsCondition,
    "inner function": Inner,
    "capturing functions": Capturing,
    "recursive closure": Recursive,
    "functions as values": Returned,
    "recursion": Calling,
    "effects": Effects,
    "blocks": Blocks,
    "functions that bind nothing": Identity,
    "attributes": Attributed,
}

"""Modules that neither a parser nor a pass makes, but that a file can contain."""

from tvm import IRModule, ir, relax, tirx

from .making import TENSOR, module

_CONDITION = relax.TensorType([], "bool")


def nested_calls() -> IRModule:
    """Return a module whose calls have calls, and tuples' fields, as arguments."""
    x, y, t = (relax.Var(name, TENSOR) for name in "xyt")
    deep = relax.op.add(relax.op.multiply(x, y), relax.op.add(x, relax.const([1.0, 2.0])))
    field = relax.op.add(relax.TupleGetItem(relax.Tuple([x, y]), 1), t)
    condition = relax.Var("c", _CONDITION)
    chosen = relax.If(condition, relax.SeqExpr([], x), relax.SeqExpr([], y))
    names = [relax.Var(name, TENSOR) for name in ("deep", "field", "chosen", "picked", "tir")]
    values = [
        deep,
        field,
        relax.op.add(chosen, t),
        relax.TupleGetItem(relax.Tuple([x, relax.op.add(y, y)]), 1),
        relax.op.call_dps_packed("env.f", relax.Tuple([relax.op.add(x, y), t]), TENSOR),
    ]
    bindings = [relax.VarBinding(*pair) for pair in zip(names, values, strict=True)]
    return module([condition, x, y, t], bindings, relax.Tuple([names[0], relax.op.add(x, x)]))


def inline_function() -> IRModule:
    """Return a module that calls a function written where it is called."""
    x, a, b, y = (relax.Var(name, TENSOR) for name in "xaby")
    block = relax.BindingBlock([relax.VarBinding(b, relax.op.add(a, x))])
    inline = relax.Function([a], relax.SeqExpr([block], b), TENSOR)
    return module([x], [relax.VarBinding(y, ir.Call(inline, [x]))], y)


def called_call() -> IRModule:
    """Return a module that calls what a call gives."""
    type_ = relax.FuncType([TENSOR], TENSOR)
    x, y = relax.Var("x", TENSOR), relax.Var("y", TENSOR)
    give = relax.Var("give", relax.FuncType([TENSOR], type_))
    return module([x, give], [relax.VarBinding(y, ir.Call(ir.Call(give, [x]), [x]))], y)


def sequence_as_value() -> IRModule:
    """Return a module with a SeqExpr bound to a variable."""
    x, y, z, w = (relax.Var(name, TENSOR) for name in "xyzw")
    block = relax.BindingBlock([relax.VarBinding(y, relax.op.add(x, x))])
    bindings = [
        relax.VarBinding(z, relax.SeqExpr([block], y)),
        relax.VarBinding(w, relax.op.add(z, x)),
    ]
    return module([x], bindings, w)


def bare_body() -> IRModule:
    """Return a module whose function has an expression for a body, and no block."""
    x = relax.Var("x", TENSOR)
    function = relax.Function([x], relax.op.add(x, x), TENSOR)
    return IRModule({ir.GlobalVar("main"): function})


def bound_twice() -> IRModule:
    """Return a module that binds one variable in both branches, and after them."""
    x, same, chosen = (relax.Var(name, TENSOR) for name in ("x", "same", "chosen"))
    condition = relax.Var("c", _CONDITION)
    branches = [
        relax.SeqExpr([relax.BindingBlock([relax.VarBinding(same, op(x, x))])], same)
        for op in (relax.op.add, relax.op.multiply)
    ]
    bindings = [
        relax.VarBinding(chosen, relax.If(condition, *branches)),
        relax.VarBinding(same, relax.op.subtract(chosen, x)),
    ]
    return module([condition, x], bindings, same)


def parameter_twice() -> IRModule:
    """Return a module whose function has one variable for two parameters, and binds it too."""
    x = relax.Var("x", TENSOR)
    return module([x, x], [relax.VarBinding(x, relax.op.add(x, x))], x)


def unbound() -> IRModule:
    """Return a module that uses variables which nothing binds, or only something later does."""
    x, y, nowhere, later = (relax.Var(name, TENSOR) for name in ("x", "y", "nowhere", "later"))
    bindings = [
        relax.VarBinding(y, relax.op.add(x, nowhere)),
        relax.VarBinding(relax.Var("z", TENSOR), relax.op.add(y, later)),
        relax.VarBinding(later, relax.op.add(x, x)),
    ]
    return module([x], bindings, relax.Tuple([later, nowhere]))


def strange_callees() -> IRModule:
    """Return a module whose calling operators get callees that are none."""
    x, f = relax.Var("x", TENSOR), relax.Var("f", relax.FuncType([TENSOR], TENSOR))
    pack = relax.Tuple([x])
    tuple_ = relax.Var("tuple", ir.TupleType([TENSOR]))
    lost = ir.GlobalVar("lost")

    def call(op: str, *arguments: ir.Expr) -> ir.Call:
        return ir.Call(ir.Op.get(op), list(arguments), ty_args=[TENSOR])

    values = [
        call("relax.call_tir", f, pack),
        call("relax.call_tir", lost, pack),
        call("relax.call_tir", lost, tuple_),
        call("relax.call_tir", lost, pack, relax.ShapeExpr([2])),
        call("relax.call_tir", relax.ExternFunc("env.f"), pack),
        call("relax.call_dps_packed", f, pack),
        call("relax.call_dps_packed", lost, tuple_),
        call("relax.call_pure_packed", f, x),
        call("relax.call_pure_packed", lost, x),
        call("relax.call_inplace_packed", f, x),
        call("relax.call_py_func", x, pack),
        call("relax.call_py_func", ir.StringImm("lost"), tuple_),
        call("relax.call_builtin_with_ctx", f, pack),
        call("relax.invoke_closure", relax.ExternFunc("env.f"), pack),
        call("relax.invoke_pure_closure", relax.op.add(x, x), pack),
        call("relax.vm.call_tir_dyn", f, tuple_),
        call("relax.call_tir"),
        call("relax.call_py_func"),
        call("relax.invoke_closure"),
        call("relax.call_dps_packed", relax.ExternFunc("env.f")),
        ir.Call(lost, [x], ty_args=[TENSOR]),
        ir.Op.get("relax.add"),
        lost,
        relax.ExternFunc("env.f"),
    ]
    variables = [relax.Var(f"lv{index}", relax.AnyType()) for index in range(len(values))]
    bindings = [relax.VarBinding(*pair) for pair in zip(variables, values, strict=True)]
    return module([x, f, tuple_], bindings, relax.Tuple(variables), is_pure=False)


def prim_func_as_value() -> IRModule:
    """Return a module that binds a PrimFunc, and an inner function without a body's block."""
    prim = tirx.PrimFunc([tirx.Var("n", "int64")], tirx.Evaluate(0))
    x, f, g = relax.Var("x", TENSOR), relax.Var("f", relax.AnyType()), relax.Var("g", TENSOR)
    inner = relax.Function([x], x, TENSOR)
    bindings = [relax.VarBinding(f, prim), relax.VarBinding(g, inner)]
    return module([relax.Var("x", TENSOR)], bindings, g)


def refused_by_visitors() -> IRModule:
    """Return a module with what TVM's walks over Relax refuse, around variables that are used."""
    x, n, name = relax.Var("x", TENSOR), tirx.Var("n", "int64"), tirx.Var("name", "int64")
    named, called = relax.Var("named", ir.PrimType("int64")), relax.Var("called", TENSOR)
    prim = tirx.PrimFunc([tirx.Var("n", "int64")], tirx.Evaluate(0))
    inner = ir.Call(relax.ExternFunc("env.g"), [x, prim], ty_args=[TENSOR])
    call = ir.Call(relax.ExternFunc("env.f"), [x, inner], ty_args=[TENSOR])
    bindings = [
        relax.VarBinding(named, tirx.Let(name, n + 1, name * 2)),
        relax.VarBinding(called, call),
    ]
    return module([x, n], bindings, called, is_pure=False)


def deep_branches(levels: int = 60) -> IRModule:
    """Return a module with an If in an If in an If, and so on."""
    x, condition = relax.Var("x", TENSOR), relax.Var("c", _CONDITION)
    result: ir.Expr = x
    bindings: list[relax.Binding] = []
    for level in range(levels):
        chosen = relax.Var(f"at{level}", TENSOR)
        then = relax.SeqExpr([relax.BindingBlock(bindings)] if bindings else [], result)
        choice = relax.If(condition, then, relax.SeqExpr([], x))
        bindings, result = [relax.VarBinding(chosen, choice)], chosen
    return module([condition, x], bindings, result)


def wide_tuple() -> IRModule:
    """Return a module with tuples in tuples in tuples, 30 deep."""
    x, t = relax.Var("x", TENSOR), relax.Var("t", relax.AnyType())
    value: ir.Expr = x
    for _ in range(30):
        value = relax.Tuple([value, x])
    return module([x], [relax.VarBinding(t, value)], value)


MALFORMED = {
    "nested calls": nested_calls,
    "a function written where it is called": inline_function,
    "a called call": called_call,
    "a sequence as value": sequence_as_value,
    "a body without blocks": bare_body,
    "a variable bound twice": bound_twice,
    "a parameter twice": parameter_twice,
    "unbound variables": unbound,
    "strange callees": strange_callees,
    "a PrimFunc as value": prim_func_as_value,
    "what visitors refuse": refused_by_visitors,
    "deep branches": deep_branches,
    "deep tuples": wide_tuple,
}

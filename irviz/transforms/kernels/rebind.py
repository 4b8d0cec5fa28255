"""Functions that change what calls call. They need TVM alone: a script takes their source along.

Because of that they know no module of irviz, and count names as `ir.identity` does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from tvm import ir, relax, tirx
from tvm_ffi import structural_equal, structural_map


def rebound(body: ir.Expr, change: Callable[[ir.Var, ir.Expr], ir.Expr]) -> ir.Expr:
    """Return a body with the bound values as `change` makes them, in branches and inner functions.

    `change` gets a variable and its value. A body in which nothing changes is returned itself.
    """
    if not isinstance(body, relax.SeqExpr):
        return body
    blocks, is_same = [], True
    for block in body.blocks:
        bindings = []
        for binding in block.bindings[:]:
            new = binding
            if isinstance(binding, relax.VarBinding):
                value = rebound_inside(change(binding.var, binding.value), change)
                if not value.same_as(binding.value):
                    new, is_same = relax.VarBinding(binding.var, value), False
            bindings.append(new)
        kind = relax.DataflowBlock if isinstance(block, relax.DataflowBlock) else relax.BindingBlock
        blocks.append(kind(bindings))
    return body if is_same else relax.SeqExpr(blocks, body.body)


def rebound_inside(value: ir.Expr, change: Callable[[ir.Var, ir.Expr], ir.Expr]) -> ir.Expr:
    """Return a value with the bodies in it rebound; itself, where nothing changes."""
    if isinstance(value, relax.If):
        branches = [value.true_branch, value.false_branch]
        new = [rebound(branch, change) for branch in branches]
        is_same = all(a.same_as(b) for a, b in zip(new, branches, strict=True))
        return value if is_same else relax.If(value.cond, *new)
    if isinstance(value, relax.Function):
        body = rebound(value.body, change)
        if body.same_as(value.body):
            return value
        return relax.Function(value.params, body, value.ret_ty, value.is_pure, value.attrs)
    return rebound(value, change)


def with_values(
    mod: ir.IRModule, function: str, change: Callable[[ir.Var, ir.Expr], ir.Expr]
) -> ir.IRModule:
    """Return the module with the bound values of a Relax function as `change` makes them."""
    gvar = mod.get_global_var(function)
    old = mod[gvar]
    # normalized, because passes read the type of a body
    body = relax.BlockBuilder(mod).normalize(rebound(old.body, change))
    functions = dict(mod.functions.items())
    functions[gvar] = relax.Function(old.params, body, old.ret_ty, old.is_pure, old.attrs)
    return ir.IRModule(functions, attrs=mod.attrs, global_infos=mod.global_infos)


def calling(mod: ir.IRModule, call: ir.Call, name: str) -> ir.Call:
    """Return the call as one of `name`: a PrimFunc of the module, or else a registered function."""
    arguments, out_type = call.args[1], call.ty_args[0]
    out_types = list(out_type.fields) if isinstance(out_type, ir.TupleType) else [out_type]
    for gvar, function in mod.functions.items():
        if gvar.name_hint == name and isinstance(function, tirx.PrimFunc):
            return relax.call_tir(gvar, arguments, out_types)
    return relax.call_dps_packed(name, arguments, out_types)


def named_values(
    params: Sequence[ir.Var], body: ir.Expr, seen: dict[str, int]
) -> Iterator[tuple[str, ir.Var]]:
    """Yield the variables in the order of the text, by name: `x`, a second one as `x#2`."""
    defined = [(param, None) for param in params]
    for block in body.blocks if isinstance(body, relax.SeqExpr) else ():
        defined += [(binding.var, binding.value) for binding in block.bindings[:]]
    for var, value in defined:
        count = seen[var.name] = seen.get(var.name, 0) + 1
        yield (var.name if count == 1 else f"{var.name}#{count}"), var
        if isinstance(value, relax.If):
            yield from named_values((), value.true_branch, seen)
            yield from named_values((), value.false_branch, seen)
        elif isinstance(value, relax.Function):
            yield from named_values(value.params, value.body, seen)
        elif isinstance(value, relax.SeqExpr):
            yield from named_values((), value, seen)


def with_calls(
    mod: ir.IRModule,
    function: str,
    callee: str,
    replacement: str,
    at: Collection[str] | None = None,
) -> ir.IRModule:
    """Let the calls of `callee` in a Relax function call `replacement`: all, or those at variables.

    A variable is given by its name, with `#2` behind it for the second of the name.
    """
    main = mod[function]
    names = {var: name for name, var in named_values(main.params, main.body, {})}

    def change(var: ir.Var, value: ir.Expr) -> ir.Expr:
        is_call = isinstance(value, ir.Call) and isinstance(value.op, ir.Op)
        if not is_call or value.op.name not in ("relax.call_tir", "relax.call_dps_packed"):
            return value
        called = value.args[0]
        is_global = isinstance(called, ir.GlobalVar)
        name = called.name_hint if is_global else getattr(called, "global_symbol", "")
        if name != callee or not (at is None or names[var] in at):
            return value
        return calling(mod, value, replacement)

    return with_values(mod, function, change)


def with_function(mod: ir.IRModule, name: str, prim_func: tirx.PrimFunc) -> ir.IRModule:
    """Return the module with a PrimFunc of this name, in the place of one that has it already."""
    functions = dict(mod.functions.items())
    old = next((gvar for gvar in functions if gvar.name_hint == name), None)
    new = prim_func.with_attr("global_symbol", name)
    gvar = relax.BlockBuilder().add_func(new, name)  # which has the type of the function
    if old is not None:
        if "global_symbol" not in functions[old].attrs.keys():  # noqa: SIM118 - no iterator
            new = new.without_attr("global_symbol")
        if structural_equal(old.ty, gvar.ty):
            gvar = old
        else:
            change = (ir.GlobalVar, lambda found: gvar if found.same_as(old) else found)
            functions = {
                gvar if g.same_as(old) else g: structural_map(function, change)
                for g, function in functions.items()
            }
    functions[gvar] = new
    return ir.IRModule(functions, attrs=mod.attrs, global_infos=mod.global_infos)


NEEDS = (
    "from collections.abc import Callable, Collection, Iterator, Sequence",
    "from tvm import ir, relax, tirx",
    "from tvm_ffi import structural_equal, structural_map",
)
"""The imports that a script needs for these functions."""

OF_CALLS = (rebound, rebound_inside, with_values, calling, named_values, with_calls)
"""`with_calls`, and what it calls."""

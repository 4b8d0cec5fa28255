"""Functions that change the callees of calls; they need only TVM, as scripts copy their source.

They therefore import nothing of irviz, and number repeated names as `ir.node_ids` does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from tvm import ir, relax, tirx
from tvm_ffi import structural_equal, structural_map


def map_bindings(body: ir.Expr, change: Callable[[ir.Var, ir.Expr], ir.Expr]) -> ir.Expr:
    """Apply `change(var, value)` to every binding of a body, also in branches and inner functions.

    Returns the body itself when nothing changes.
    """
    if not isinstance(body, relax.SeqExpr):
        return body
    blocks, is_same = [], True
    for block in body.blocks:
        bindings = []
        for binding in block.bindings[:]:
            new = binding
            if isinstance(binding, relax.VarBinding):
                value = map_nested_bindings(change(binding.var, binding.value), change)
                if not value.same_as(binding.value):
                    new, is_same = relax.VarBinding(binding.var, value), False
            bindings.append(new)
        kind = relax.DataflowBlock if isinstance(block, relax.DataflowBlock) else relax.BindingBlock
        blocks.append(kind(bindings))
    return body if is_same else relax.SeqExpr(blocks, body.body)


def map_nested_bindings(value: ir.Expr, change: Callable[[ir.Var, ir.Expr], ir.Expr]) -> ir.Expr:
    """Apply `change` to the bindings inside a value; return the value itself if nothing changes."""
    if isinstance(value, relax.If):
        branches = [value.true_branch, value.false_branch]
        new = [map_bindings(branch, change) for branch in branches]
        is_same = all(a.same_as(b) for a, b in zip(new, branches, strict=True))
        return value if is_same else relax.If(value.cond, *new)
    if isinstance(value, relax.Function):
        body = map_bindings(value.body, change)
        if body.same_as(value.body):
            return value
        return relax.Function(value.params, body, value.ret_ty, value.is_pure, value.attrs)
    return map_bindings(value, change)


def map_function_bindings(
    mod: ir.IRModule, function: str, change: Callable[[ir.Var, ir.Expr], ir.Expr]
) -> ir.IRModule:
    """Return the module with `change(var, value)` applied to the bindings of a Relax function."""
    gvar = mod.get_global_var(function)
    old = mod[gvar]
    # passes need the type of a normalized body
    body = relax.BlockBuilder(mod).normalize(map_bindings(old.body, change))
    functions = dict(mod.functions.items())
    functions[gvar] = relax.Function(old.params, body, old.ret_ty, old.is_pure, old.attrs)
    return ir.IRModule(functions, attrs=mod.attrs, global_infos=mod.global_infos)


def call_of(mod: ir.IRModule, call: ir.Call, name: str) -> ir.Call:
    """Return the call with another callee: a PrimFunc of the module, else a registered function."""
    arguments, out_type = call.args[1], call.ty_args[0]
    out_types = list(out_type.fields) if isinstance(out_type, ir.TupleType) else [out_type]
    for gvar, function in mod.functions.items():
        if gvar.name_hint == name and isinstance(function, tirx.PrimFunc):
            return relax.call_tir(gvar, arguments, out_types)
    return relax.call_dps_packed(name, arguments, out_types)


def named_variables(
    params: Sequence[ir.Var], body: ir.Expr, seen: dict[str, int]
) -> Iterator[tuple[str, ir.Var]]:
    """Yield the variables by name in program order: `x`, the second of that name as `x#2`."""
    defined = [(param, None) for param in params]
    for block in body.blocks if isinstance(body, relax.SeqExpr) else ():
        defined += [(binding.var, binding.value) for binding in block.bindings[:]]
    for var, value in defined:
        count = seen[var.name] = seen.get(var.name, 0) + 1
        yield (var.name if count == 1 else f"{var.name}#{count}"), var
        if isinstance(value, relax.If):
            yield from named_variables((), value.true_branch, seen)
            yield from named_variables((), value.false_branch, seen)
        elif isinstance(value, relax.Function):
            yield from named_variables(value.params, value.body, seen)
        elif isinstance(value, relax.SeqExpr):
            yield from named_variables((), value, seen)


def redirect_calls(
    mod: ir.IRModule,
    function: str,
    callee: str,
    replacement: str,
    at: Collection[str] | None = None,
) -> ir.IRModule:
    """Replace calls of `callee` in a Relax function by calls of `replacement`.

    `at` limits this to the calls bound to these variables, with `#2` for the second of a name.
    """
    main = mod[function]
    names = {var: name for name, var in named_variables(main.params, main.body, {})}

    def change(var: ir.Var, value: ir.Expr) -> ir.Expr:
        is_call = isinstance(value, ir.Call) and isinstance(value.op, ir.Op)
        if not is_call or value.op.name not in ("relax.call_tir", "relax.call_dps_packed"):
            return value
        called = value.args[0]
        is_global = isinstance(called, ir.GlobalVar)
        name = called.name_hint if is_global else getattr(called, "global_symbol", "")
        if name != callee or not (at is None or names[var] in at):
            return value
        return call_of(mod, value, replacement)

    return map_function_bindings(mod, function, change)


def put_function(mod: ir.IRModule, name: str, prim_func: tirx.PrimFunc) -> ir.IRModule:
    """Return the module with a PrimFunc of this name, added or replaced."""
    functions = dict(mod.functions.items())
    old = next((gvar for gvar in functions if gvar.name_hint == name), None)
    new = prim_func.with_attr("global_symbol", name)
    gvar = relax.BlockBuilder().add_func(new, name)  # this gives it the function's type
    if old is not None:
        if "global_symbol" not in functions[old].attrs.keys():  # noqa: SIM118 - no iterator
            new = new.without_attr("global_symbol")
        if structural_equal(old.ty, gvar.ty):
            gvar = old
        else:
            replace = (ir.GlobalVar, lambda found: gvar if found.same_as(old) else found)
            functions = {
                gvar if g.same_as(old) else g: structural_map(function, replace)
                for g, function in functions.items()
            }
    functions[gvar] = new
    return ir.IRModule(functions, attrs=mod.attrs, global_infos=mod.global_infos)


IMPORTS = (
    "from collections.abc import Callable, Collection, Iterator, Sequence",
    "from tvm import ir, relax, tirx",
    "from tvm_ffi import structural_equal, structural_map",
)
"""The imports that these functions need in a script."""

REDIRECT_CALLS_SOURCES = (
    map_bindings,
    map_nested_bindings,
    map_function_bindings,
    call_of,
    named_variables,
    redirect_calls,
)
"""`redirect_calls` and the functions it calls."""

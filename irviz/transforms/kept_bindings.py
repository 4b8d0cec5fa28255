"""Make a module of some of a function's bindings, with their other operands as parameters."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence

from tvm import ir, relax

from irviz.ir.module_functions import relax_function


def count_bindings(mod: ir.IRModule, function: str) -> int:
    """Return how many bindings the blocks of a Relax function have."""
    return sum(len(block.bindings) for block in relax_function(mod, function).body.blocks)


def keep_bindings(mod: ir.IRModule, function: str, kept: Collection[int]) -> ir.IRModule:
    """Return a module with some bindings of a function, and the functions that they call.

    A variable that they use and that a removed binding defines becomes a parameter, before the
    function's own; all variables that they do not use themselves are returned. Raises what TVM
    raises if a type depends on a removed binding.

    Args:
        kept: The indices of the bindings in the order of the text, from 0.
    """
    old = relax_function(mod, function)
    numbered = itertools.count()
    blocks = [
        (type(block), [binding for binding in block.bindings if next(numbered) in kept])
        for block in old.body.blocks
    ]
    bindings = [binding for _, part in blocks for binding in part]
    defined = [binding.var for binding in bindings]
    used = dict.fromkeys(
        var for binding in bindings for var in relax.analysis.free_vars(binding.value)
    )
    own = {param: param for param in old.params if param in used}
    known = {*own, *defined}
    params = {var: relax.Var(var.name, var.ty) for var in used if var not in known} | own
    outputs = {
        var: relax.Var(var.name, var.ty) if isinstance(var, relax.DataflowVar) else var
        for var in defined
        if var not in used
    }
    body = relax.SeqExpr(
        [kind(_rewritten(part, params, outputs)) for kind, part in blocks if part],
        next(iter(outputs.values())) if len(outputs) == 1 else relax.Tuple([*outputs.values()]),
    )
    body = relax.BlockBuilder(mod).normalize(body)
    made = relax.Function([*params.values()], body, None, old.is_pure, old.attrs)
    if "num_input" in (old.attrs or {}).keys():  # noqa: SIM118 - no iterator
        made = made.without_attr("num_input")
    return _with_callees(mod, mod.get_global_var(function), made)


def _rewritten(
    bindings: Sequence[relax.Binding],
    params: Mapping[ir.Var, ir.Var],
    outputs: Mapping[ir.Var, ir.Var],
) -> list[relax.Binding]:
    """Return bindings that use parameters; results are bound to variables for that."""
    new = []
    for binding in bindings:
        var, value = outputs.get(binding.var, binding.var), _substituted(binding.value, params)
        is_cast = isinstance(binding, relax.MatchCast)
        new.append(
            relax.MatchCast(var, value, binding.ty) if is_cast else relax.VarBinding(var, value)
        )
    return new


def _substituted(value: ir.Expr, params: Mapping[ir.Var, ir.Var]) -> ir.Expr:
    """Return an expression with some variables replaced."""
    changed = {var for var in relax.analysis.free_vars(value) if params.get(var, var) is not var}
    if not changed:
        return value

    @relax.expr_functor.mutator
    class Substitution(relax.PyExprMutator):  # type: ignore[misc] # TVM has no types
        def visit_var_(self, var: ir.Var) -> ir.Expr:
            return params.get(var, var)

        visit_dataflow_var_ = visit_var_

    return Substitution().visit_expr(value)


def _with_callees(mod: ir.IRModule, gvar: ir.GlobalVar, function: relax.Function) -> ir.IRModule:
    """Return a module of a function and the functions of another module that it needs."""
    functions: dict[ir.GlobalVar, ir.BaseFunc] = {gvar: function}
    by_name = {one.name_hint: one for one in mod.functions}
    todo: list[ir.BaseFunc] = [function]
    while todo:
        called = set[str]()

        def look(expr: ir.Expr, called: set[str] = called) -> None:
            if isinstance(expr, ir.GlobalVar):
                called.add(expr.name_hint)
            elif isinstance(expr, relax.ExternFunc):  # call_dps_packed calls PrimFuncs by name
                called.add(expr.global_symbol)

        relax.analysis.post_order_visit(todo.pop(), look)
        for one in (by_name[name] for name in called & by_name.keys()):
            if one not in functions:
                functions[one] = mod[one]
                todo += [mod[one]] if isinstance(mod[one], relax.Function) else []
    return ir.IRModule(functions, attrs=mod.attrs, global_infos=mod.global_infos)

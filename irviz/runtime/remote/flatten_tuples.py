"""Versions of functions that take the fields of tuples: tuples cannot be sent over RPC."""

from __future__ import annotations

from collections.abc import Mapping

from tvm import ir, relax

from irviz.ir.module_functions import relax_functions


def flatten_tuple_params(mod: ir.IRModule) -> tuple[ir.IRModule, Mapping[str, str]]:
    """Add such a version for each function that takes tuples; return their names by its name.

    A version builds the tuples and calls the function.
    """
    added: dict[ir.GlobalVar, relax.Function] = {}
    names: dict[str, str] = {}
    taken = {gvar.name_hint for gvar in mod.functions}
    for name in relax_functions(mod):
        gvar = mod.get_global_var(name)
        function = mod[gvar]
        if any(isinstance(param.ty, ir.TupleType) for param in function.params):
            names[name] = f"irviz_flat_{name}"
            while names[name] in taken:
                names[name] += "_"
            taken.add(names[name])
            added[ir.GlobalVar(names[name])] = _flattened(mod, gvar, names[name])
    if not added:
        return mod, names
    return ir.IRModule({**mod.functions, **added}, attrs=mod.attrs), names


def tuple_leaves(argument: object) -> list[object]:
    """Return the leaves of nested tuples."""
    if isinstance(argument, tuple):
        return [leaf for item in argument for leaf in tuple_leaves(item)]
    return [argument]


def _flattened(mod: ir.IRModule, gvar: ir.GlobalVar, name: str) -> relax.Function:
    copied = relax.utils.copy_with_new_vars(mod[gvar])  # it needs symbolic sizes of its own
    params: list[relax.Var] = []

    def argument(type_: ir.Type, hint: str) -> ir.Expr:
        if isinstance(type_, ir.TupleType):
            fields = enumerate(type_.fields)
            return relax.Tuple([argument(field, f"{hint}_{index}") for index, field in fields])
        params.append(relax.Var(hint, type_))
        return params[-1]

    arguments: list[ir.Expr] = []
    for param in copied.params:
        if isinstance(param.ty, ir.TupleType):
            arguments.append(argument(param.ty, param.name))
        else:  # the types of others may refer to this variable
            params.append(param)
            arguments.append(param)
    builder = relax.BlockBuilder(mod)
    with builder.function(name, params, pure=bool(copied.is_pure)):
        builder.emit_func_output(builder.emit(ir.Call(gvar, arguments)))
    return builder.get()[name]

"""Functions that take what is in tuples one by one: tuples cannot be sent to another machine."""

from __future__ import annotations

from collections.abc import Mapping

from tvm import ir, relax

from irviz.ir.identity import relax_functions


def apart(mod: ir.IRModule) -> tuple[ir.IRModule, Mapping[str, str]]:
    """Return a module with such a function for each that takes tuples, and their names by its.

    They make the tuples and call it.
    """
    added: dict[ir.GlobalVar, relax.Function] = {}
    names: dict[str, str] = {}
    taken = {gvar.name_hint for gvar in mod.functions}
    for name in relax_functions(mod):
        gvar = mod.get_global_var(name)
        function = mod[gvar]
        if any(isinstance(param.ty, ir.TupleType) for param in function.params):
            names[name] = _new(f"irviz_apart_{name}", taken)
            added[ir.GlobalVar(names[name])] = _apart(mod, gvar, names[name])
    if not added:
        return mod, names
    return ir.IRModule({**mod.functions, **added}, attrs=mod.attrs), names


def leaves(argument: object) -> list[object]:
    """Return what is in a tuple, or in tuples in it, one by one."""
    if isinstance(argument, tuple):
        return [leaf for item in argument for leaf in leaves(item)]
    return [argument]


def _apart(mod: ir.IRModule, gvar: ir.GlobalVar, name: str) -> relax.Function:
    copied = relax.utils.copy_with_new_vars(mod[gvar])  # its symbolic sizes are its own
    params: list[relax.Var] = []

    def made(type_: ir.Type, hint: str) -> ir.Expr:
        if isinstance(type_, ir.TupleType):
            fields = enumerate(type_.fields)
            return relax.Tuple([made(field, f"{hint}_{index}") for index, field in fields])
        params.append(relax.Var(hint, type_))
        return params[-1]

    arguments: list[ir.Expr] = []
    for param in copied.params:
        if isinstance(param.ty, ir.TupleType):
            arguments.append(made(param.ty, param.name))
        else:  # sizes of others may be written with this very variable
            params.append(param)
            arguments.append(param)
    builder = relax.BlockBuilder(mod)
    with builder.function(name, params, pure=bool(copied.is_pure)):
        builder.emit_func_output(builder.emit(ir.Call(gvar, arguments)))
    return builder.get()[name]


def _new(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name

"""Names for the variables of a function: the one place that decides a NodeId."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping

from tvm import ir, relax

from irviz.model.graph import OUTPUT, NodeId


class NoFunctionError(ValueError):
    """A function name that the module does not have; the message names those it has."""


def relax_functions(mod: ir.IRModule) -> dict[str, relax.Function]:
    """Return the module's Relax functions by name, in the order of their names."""
    found = {
        gvar.name_hint: function
        for gvar, function in mod.functions.items()
        if isinstance(function, relax.Function)
    }
    return dict(sorted(found.items()))


def function_named(mod: ir.IRModule, name: str) -> ir.BaseFunc | None:
    """Return the module's function of this name, of whatever kind, or None."""
    for gvar, function in mod.functions.items():
        if gvar.name_hint == name:
            return function
    return None


def relax_function(mod: ir.IRModule, name: str) -> relax.Function:
    """Return the Relax function of this name; raise NoFunctionError with the names there are."""
    found = function_named(mod, name)
    if isinstance(found, relax.Function):
        return found
    advice = _advice(relax_functions(mod))
    if found is not None:
        raise NoFunctionError(f"{name!r} is a PrimFunc, not a Relax function; {advice}")
    raise NoFunctionError(f"the module has no function {name!r}; {advice}")


def bindings(function: relax.Function) -> Iterator[tuple[int, relax.Binding]]:
    """Yield each binding of the function's body with the index of its block."""
    if isinstance(function.body, relax.SeqExpr):
        for index, block in enumerate(function.body.blocks):
            for binding in block.bindings:
                yield index, binding


def identify(function: relax.Function) -> Mapping[ir.Var, NodeId]:
    """Return the NodeId of each parameter and bound variable, in the order of the text.

    A NodeId is the variable's name; when a name comes again, `#2`, `#3`, … is put behind it.
    Characters that cannot be seen become U+FFFD, so that an id is the same text everywhere; no
    name becomes `v`, as in TVMScript.
    """
    seen: dict[str, int] = {OUTPUT: 1}  # which the picture has for what is returned
    variables = [*function.params, *(binding.var for _, binding in bindings(function))]
    return {var: distinct(_visible(var.name) or "v", seen) for var in variables}


def distinct(name: str, seen: MutableMapping[str, int]) -> NodeId:
    """Return the name as an id that was not given yet; `seen` counts how often each was."""
    count = seen[name] = seen.get(name, 0) + 1
    return NodeId(name) if count == 1 else distinct(f"{name}#{count}", seen)


def _visible(name: str) -> str:
    return "".join(char if char.isprintable() else "\ufffd" for char in name)


def _advice(functions: Mapping[str, relax.Function]) -> str:
    if not functions:
        return "it has no Relax function at all: give an IRModule with an @R.function"
    return f"its Relax functions are {', '.join(map(repr, functions))}: give one of these"

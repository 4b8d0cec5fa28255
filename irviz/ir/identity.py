"""Names for the variables of a function: the one place that decides a NodeId."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence

from tvm import ir, relax, tirx

from irviz.model.graph import OUTPUT, NodeId

MOST_NESTED = 50
"""How deep branches and functions are followed; TVM's own text stands for what is deeper."""


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


def drawn_functions(mod: ir.IRModule) -> dict[str, relax.Function | tirx.PrimFunc]:
    """Return the functions that have a graph, by name: Relax functions, then PrimFuncs."""
    prim_funcs = {
        gvar.name_hint: function
        for gvar, function in mod.functions.items()
        if isinstance(function, tirx.PrimFunc)
    }
    return {**relax_functions(mod), **dict(sorted(prim_funcs.items()))}


def drawn_function(mod: ir.IRModule, name: str) -> relax.Function | tirx.PrimFunc:
    """Return the function of this name; raise NoFunctionError when there is none with a graph."""
    found = function_named(mod, name)
    if isinstance(found, tirx.PrimFunc):
        return found
    return relax_function(mod, name)


def default_function(mod: ir.IRModule) -> str:
    """Return "main", or the only Relax function there is, or the first PrimFunc."""
    functions = relax_functions(mod)
    if "main" in functions or len(functions) > 1:
        return "main"
    return next(iter(functions or drawn_functions(mod)), "main")


def bindings(function: relax.Function) -> Iterator[tuple[int, relax.Binding]]:
    """Yield each binding of the function's body with the index of its block."""
    if isinstance(function.body, relax.SeqExpr):
        for index, block in enumerate(function.body.blocks):
            for binding in block.bindings:
                yield index, binding


def bodies(value: ir.Expr) -> tuple[tuple[str, Sequence[ir.Var], ir.Expr], ...]:
    """Return what is nested in a value: the name, the parameters and the body of each part."""
    match value:
        case relax.If():
            return (("then", (), value.true_branch), ("else", (), value.false_branch))
        case relax.Function():
            return (("", value.params, value.body),)
        case relax.SeqExpr():
            return (("", (), value),)
        case _:
            return ()


def definitions(
    params: Sequence[ir.Var], body: ir.Expr, depth: int = 0
) -> Iterator[tuple[ir.Var, relax.Binding | None]]:
    """Yield every variable that a body defines, with its binding, in the order of the text.

    A bound variable comes before those of the branches or the function that is its value.
    """
    for param in params:
        yield param, None
    for block in body.blocks if isinstance(body, relax.SeqExpr) else ():
        for binding in block.bindings[:]:
            yield binding.var, binding
            if depth < MOST_NESTED and not isinstance(binding, relax.MatchCast):
                for _, inner_params, inner in bodies(binding.value):
                    yield from definitions(inner_params, inner, depth + 1)


class Names:
    """Gives each variable an id when it is defined.

    A NodeId is the variable's name; when a name comes again, `#2`, `#3`, … is put behind it.
    Characters that cannot be seen become U+FFFD, so that an id is the same text everywhere; no
    name becomes `v`, as in TVMScript.
    """

    def __init__(self) -> None:
        self.seen: dict[str, int] = {OUTPUT: 1}  # which the picture has for what is returned

    def define(self, name: str) -> NodeId:
        """Return the id of a variable of this name that is defined here."""
        if name and name not in self.seen and name.isprintable():
            self.seen[name] = 1
            return NodeId(name)
        if not name.isprintable():
            name = "".join(char if char.isprintable() else "\ufffd" for char in name)
        return distinct(name or "v", self.seen)


def identify(function: relax.Function) -> Mapping[ir.Var, NodeId]:
    """Return the NodeId of each parameter and bound variable, in the order of the text."""
    names = Names()
    return {var: names.define(var.name) for var, _ in definitions(function.params, function.body)}


def distinct(name: str, seen: MutableMapping[str, int]) -> NodeId:
    """Return the name as an id that was not given yet; `seen` counts how often each was."""
    count = seen[name] = seen.get(name, 0) + 1
    return NodeId(name) if count == 1 else distinct(f"{name}#{count}", seen)


def _advice(functions: Mapping[str, relax.Function]) -> str:
    if not functions:
        return "it has no Relax function at all: give an IRModule with an @R.function"
    return f"its Relax functions are {', '.join(map(repr, functions))}: give one of these"

"""The variables of a Relax function in the order of its text, and the NodeId of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence

from tvm import ir, relax

from irviz.model.graph.graph import OUTPUT, NodeId

MAX_NESTING = 50
"""How deeply branches and functions are read; anything deeper appears as TVM's own text."""


def nested_bodies(value: ir.Expr) -> tuple[tuple[str, Sequence[ir.Var], ir.Expr], ...]:
    """Return the bodies inside a value: each with its name and its parameters."""
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

    A bound variable comes before the variables of the branches or the function bound to it.
    """
    for param in params:
        yield param, None
    for block in body.blocks if isinstance(body, relax.SeqExpr) else ():
        for binding in block.bindings[:]:
            yield binding.var, binding
            if depth < MAX_NESTING and not isinstance(binding, relax.MatchCast):
                for _, inner_params, inner in nested_bodies(binding.value):
                    yield from definitions(inner_params, inner, depth + 1)


# Names identify nodes because they survive most passes. Variables do not: BindParams, for example,
# makes new ones once symbolic sizes are known.
class NodeIds:
    """Assigns each variable an id where it is defined.

    The id is the variable's name; a repeated name gets the suffix `#2`, `#3`, …. Invisible
    characters become U+FFFD, so that an id is the same text everywhere, and an empty name becomes
    `v`, as in TVMScript. A name that ends like the id of a constant, `lv[0]`, gets the suffix `#1`.
    """

    def __init__(self) -> None:
        self.seen: dict[str, int] = {OUTPUT: 1}  # the picture's own node for the result

    def define(self, name: str) -> NodeId:
        """Return the id of a variable of this name that is defined here."""
        if name and name not in self.seen and name.isprintable() and name[-1] != "]":
            self.seen[name] = 1
            return NodeId(name)
        if not name.isprintable():
            name = "".join(char if char.isprintable() else "\ufffd" for char in name)
        if name.endswith("]"):
            name += "#1"
        return unique_id(name or "v", self.seen)


def identify(function: relax.Function) -> Mapping[ir.Var, NodeId]:
    """Return the NodeId of each parameter and bound variable, in the order of the text."""
    names = NodeIds()
    return {var: names.define(var.name) for var, _ in definitions(function.params, function.body)}


def unique_id(name: str, seen: MutableMapping[str, int]) -> NodeId:
    """Return the name, numbered if it is taken; `seen` counts the uses of each name."""
    count = seen[name] = seen.get(name, 0) + 1
    return NodeId(name) if count == 1 else unique_id(f"{name}#{count}", seen)

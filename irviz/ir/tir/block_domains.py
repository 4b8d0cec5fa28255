"""The domain of each block of a PrimFunc: which values its axes take, in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tvm import ir, s_tir, tirx

from irviz.ir.tir.scoped_names import used_vars
from irviz.ir.tir.statement_walk import flatten_with_paths

Values: TypeAlias = NDArray[np.int64]

_BINARY: Mapping[type, Callable[[Any, Any], Any]] = {
    tirx.Add: np.add,
    tirx.Sub: np.subtract,
    tirx.Mul: np.multiply,
    tirx.FloorDiv: np.floor_divide,
    tirx.FloorMod: np.mod,
    tirx.Div: lambda one, two: np.sign(one) * np.sign(two) * (np.abs(one) // np.abs(two)),
    tirx.Mod: np.fmod,
    tirx.Min: np.minimum,
    tirx.Max: np.maximum,
    tirx.LShift: np.left_shift,
    tirx.RShift: np.right_shift,
    tirx.BitwiseAnd: np.bitwise_and,
    tirx.BitwiseOr: np.bitwise_or,
    tirx.BitwiseXor: np.bitwise_xor,
    tirx.LT: np.less,
    tirx.LE: np.less_equal,
    tirx.GT: np.greater,
    tirx.GE: np.greater_equal,
    tirx.EQ: np.equal,
    tirx.NE: np.not_equal,
    tirx.And: np.logical_and,
    tirx.Or: np.logical_or,
}
_OPERATIONS: Mapping[type, tuple[Callable[..., Any], tuple[str, ...]]] = {
    **{kind: (function, ("a", "b")) for kind, function in _BINARY.items()},
    tirx.Not: (np.logical_not, ("a",)),
    tirx.Cast: (lambda value: value, ("value",)),
    tirx.Select: (np.where, ("condition", "true_value", "false_value")),
}
"""What an expression computes, and the names of its operands."""
_CALLS: Mapping[str, Callable[..., Any]] = {
    "prim.if_then_else": np.where,
    "prim.likely": lambda condition: condition,
}


class UnknownDomainError(Exception):
    """The values of a block's axes cannot be told; the message says why."""


class Loop(NamedTuple):
    """A loop around a block; `id` is its id in the loop nest."""

    var: ir.Var
    start: ir.Expr
    extent: ir.Expr
    id: str


@dataclass(frozen=True)
class Domain:
    """What determines the values of a block's axes.

    Attributes:
        loops: The loops around the block and the blocks around it, outermost first.
        conditions: The conditions under which the block runs.
        bound: The variables around the block that have a value, such as axes of outer blocks.
        symbols: The variables that the parameters define, in their order.
        obstacle: Why the values cannot be told, "" if they can.
    """

    block: s_tir.SBlock
    values: tuple[ir.Expr, ...]
    loops: tuple[Loop, ...]
    conditions: tuple[ir.Expr, ...]
    bound: Mapping[ir.Var, ir.Expr]
    symbols: tuple[ir.Var, ...]
    obstacle: str = ""

    @cached_property
    def inside(self) -> Mapping[ir.Var, ir.Expr]:
        """The variables that have a value in the block."""
        axes = zip((axis.var for axis in self.block.iter_vars), self.values, strict=True)
        return {**self.bound, **dict(axes)}

    def variables(self, expr: ir.Expr) -> set[ir.Var]:
        """Return the loop variables and symbols that an expression in the block depends on."""
        found: set[ir.Var] = set()
        waiting = [expr]
        while waiting:
            for var in used_vars(waiting.pop()):
                if var in self.inside:
                    waiting.append(self.inside[var])
                else:
                    found.add(var)
        return found


@lru_cache(maxsize=1024)
def block_domains(prim_func: tirx.PrimFunc) -> Mapping[str, Domain]:
    """Return the domain of each block, by its id in the loop nest."""
    symbols: dict[ir.Var, None] = {}
    for param in prim_func.params:
        sizes = param.ty.shape if tirx.is_buffer_var(param) else [param]
        symbols |= dict.fromkeys(var for size in sizes for var in used_vars(size))
    start = _Around((), (), {}, tuple(symbols))
    found: dict[str, Domain] = {}
    waiting = [(prim_func.body, "body", start)]
    while waiting:
        stmt, path, around = waiting.pop()
        for each, at in flatten_with_paths(stmt, path):
            if isinstance(each, tirx.Bind):
                around = around._replace(bound={**around.bound, each.var: each.value})
            elif isinstance(each, s_tir.SBlockRealize):
                found[at] = domain = around.domain(each)
                inner = around._replace(conditions=domain.conditions, bound=domain.inside)
                parts = {"init": each.block.init, "body": each.block.body}
                waiting += [
                    (part, f"{at}.block.{name}", inner) for name, part in parts.items() if part
                ]
            else:
                waiting += _inside(each, at, around)
    return found


class _Around(NamedTuple):
    """What is around a statement."""

    loops: tuple[Loop, ...]
    conditions: tuple[ir.Expr, ...]
    bound: Mapping[ir.Var, ir.Expr]
    symbols: tuple[ir.Var, ...]
    obstacle: str = ""

    def domain(self, realize: s_tir.SBlockRealize) -> Domain:
        conditions = (*self.conditions, *_conjuncts(realize.predicate))
        return Domain(
            realize.block,
            tuple(realize.iter_values),
            self.loops,
            conditions,
            self.bound,
            self.symbols,
            self.obstacle,
        )


def _inside(
    stmt: tirx.Stmt, path: str, around: _Around
) -> Iterator[tuple[tirx.Stmt, str, _Around]]:
    """Yield the statements directly inside a statement other than a block."""
    match stmt:
        case tirx.For():
            loop = Loop(stmt.loop_var, stmt.min, stmt.extent, path)
            obstacle = around.obstacle or ("" if stmt.step is None else "a loop has a step")
            inner = around._replace(loops=(*around.loops, loop), obstacle=obstacle)
            yield stmt.body, f"{path}.body", inner
        case tirx.IfThenElse():
            then = (*around.conditions, *_conjuncts(stmt.condition))
            yield stmt.then_case, f"{path}.then_case", around._replace(conditions=then)
            if stmt.else_case is not None:
                other = (*around.conditions, tirx.Not(stmt.condition))
                yield stmt.else_case, f"{path}.else_case", around._replace(conditions=other)
        case tirx.While():
            yield stmt.body, f"{path}.body", around._replace(obstacle="it is in a while loop")
        case tirx.AttrStmt():
            yield stmt.body, f"{path}.body", around


def _conjuncts(condition: ir.Expr) -> list[ir.Expr]:
    if isinstance(condition, tirx.And):
        return [*_conjuncts(condition.a), *_conjuncts(condition.b)]
    return [] if isinstance(condition, tirx.IntImm) and condition.value else [condition]


def visited(
    domain: Domain,
    outputs: Iterable[ir.Expr],
    loops: Sequence[Loop],
    conditions: Iterable[ir.Expr],
    sizes: Mapping[ir.Var, int],
    most: int,
) -> Values:
    """Return the values of expressions in a block, one column an iteration, in their order.

    Args:
        loops: The loops to iterate over, outermost first; nothing may depend on another loop.
        conditions: The conditions to observe.
        sizes: The values of the symbols.
        most: The largest number of iterations.

    Raises:
        UnknownDomainError: There are more iterations, or an expression cannot be evaluated.
    """
    known: dict[ir.Var, Any] = {var: np.int64(size) for var, size in sizes.items()}
    bound = domain.inside
    shape: list[int] = []
    masks = []
    for level, loop in enumerate(loops):
        extent = np.asarray(_evaluate(loop.extent, known, bound))
        length = max(int(extent.max(initial=0)), 0)
        shape.append(length)
        if np.prod(shape, dtype=float) > most:
            raise UnknownDomainError("there are too many iterations")
        steps = np.arange(length).reshape(-1, *[1] * (len(loops) - 1 - level))
        if extent.ndim:
            masks.append(steps < extent)
        known[loop.var] = steps + _evaluate(loop.start, known, bound)
    masks += [_evaluate(each, known, bound) for each in conditions]
    runs = np.ones(shape, bool)
    for mask in masks:
        runs = runs & np.asarray(mask, bool)
    columns = [np.broadcast_to(_evaluate(each, known, bound), shape)[runs] for each in outputs]
    return np.stack(columns) if columns else np.zeros((0, int(runs.sum())), np.int64)


def _evaluate(expr: ir.Expr, known: dict[ir.Var, Any], bound: Mapping[ir.Var, ir.Expr]) -> Any:
    """Return the values of an expression; those of bound variables are added to the known ones."""

    def values(parts: Iterable[ir.Expr]) -> Iterator[Any]:
        return (_evaluate(part, known, bound) for part in parts)

    match expr:
        case tirx.IntImm():
            return np.int64(expr.value)
        case ir.Var() if expr in known:
            return known[expr]
        case ir.Var() if expr in bound:
            (known[expr],) = values([bound[expr]])
            return known[expr]
        case ir.Call() if isinstance(expr.op, ir.Op) and expr.op.name in _CALLS:
            return _CALLS[expr.op.name](*values(expr.args))
    if type(expr) not in _OPERATIONS:
        raise UnknownDomainError("it depends on values in buffers, or on calls")
    function, names = _OPERATIONS[type(expr)]
    return function(*values(getattr(expr, name) for name in names))

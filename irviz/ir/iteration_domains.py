"""Whether two blocks visit the same values of their axes, and in the same order.

Sizes decide how this is found out. TVM's iterator maps prove most bijections, whatever the size;
others are enumerated, each group of dependent axes and loops by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import tvm_ffi
from numpy.typing import NDArray
from tvm import ir, s_tir, sym, tirx

from irviz.ir.tir_statements import flatten_with_paths, is_number, used_vars
from irviz.model.diff.diff_result import DomainDiff
from irviz.model.matching.alignment import Alignment

# --- The domain of each block of a PrimFunc: which values its axes take, in which order ----------


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
class Around:
    """The surroundings of a statement.

    Attributes:
        loops: The loops around it, outermost first.
        conditions: The conditions under which it runs.
        bound: The variables that have a value, such as axes of outer blocks.
        symbols: The variables that the parameters define, in their order.
        obstacle: Why the values of axes cannot be told, "" if they can.
    """

    loops: tuple[Loop, ...]
    conditions: tuple[ir.Expr, ...]
    bound: Mapping[ir.Var, ir.Expr]
    symbols: tuple[ir.Var, ...]
    obstacle: str


@dataclass(frozen=True)
class Domain(Around):
    """What determines the values of a block's axes; its predicate is among the conditions."""

    block: s_tir.SBlock
    values: tuple[ir.Expr, ...]

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
    start = Around((), (), {}, tuple(symbols), "")
    found: dict[str, Domain] = {}
    waiting = [(prim_func.body, "body", start)]
    while waiting:
        stmt, path, around = waiting.pop()
        for each, at in flatten_with_paths(stmt, path):
            if isinstance(each, tirx.Bind):
                around = replace(around, bound={**around.bound, each.var: each.value})
            elif isinstance(each, s_tir.SBlockRealize):
                conditions = (*around.conditions, *_conjuncts(each.predicate))
                own = replace(around, conditions=conditions)
                values = tuple(each.iter_values)
                found[at] = domain = Domain(**vars(own), block=each.block, values=values)
                inner = replace(own, bound=domain.inside)
                parts = {"init": each.block.init, "body": each.block.body}
                waiting += [
                    (part, f"{at}.block.{name}", inner) for name, part in parts.items() if part
                ]
            else:
                waiting += _inside(each, at, around)
    return found


def _inside(stmt: tirx.Stmt, path: str, around: Around) -> Iterator[tuple[tirx.Stmt, str, Around]]:
    """Yield the statements directly inside a statement other than a block."""
    match stmt:
        case tirx.For():
            loop = Loop(stmt.loop_var, stmt.min, stmt.extent, path)
            obstacle = around.obstacle or ("" if stmt.step is None else "a loop has a step")
            inner = replace(around, loops=(*around.loops, loop), obstacle=obstacle)
            yield stmt.body, f"{path}.body", inner
        case tirx.IfThenElse():
            then = (*around.conditions, *_conjuncts(stmt.condition))
            yield stmt.then_case, f"{path}.then_case", replace(around, conditions=then)
            if stmt.else_case is not None:
                other = (*around.conditions, tirx.Not(stmt.condition))
                yield stmt.else_case, f"{path}.else_case", replace(around, conditions=other)
        case tirx.While():
            yield stmt.body, f"{path}.body", replace(around, obstacle="it is in a while loop")
        case tirx.AttrStmt():
            yield stmt.body, f"{path}.body", around


def _conjuncts(condition: ir.Expr) -> list[ir.Expr]:
    if isinstance(condition, tirx.And):
        return [*_conjuncts(condition.a), *_conjuncts(condition.b)]
    return [] if is_number(condition, 1) else [condition]


def _visited(side: _Side, sizes: Mapping[ir.Var, int], most: int) -> Values:
    """Return the values of a side's outputs, one column an iteration, in their order.

    `sizes` are the values of the symbols. Raises UnknownDomainError if there are more than `most`
    iterations, or an expression cannot be evaluated.
    """
    known: dict[ir.Var, Any] = {var: np.int64(size) for var, size in sizes.items()}
    bound = side.domain.inside
    shape: list[int] = []
    masks = []
    for level, loop in enumerate(side.loops):
        extent = np.asarray(_evaluate(loop.extent, known, bound))
        length = max(int(extent.max(initial=0)), 0)
        shape.append(length)
        if np.prod(shape, dtype=float) > most:
            raise UnknownDomainError("there are too many iterations")
        steps = np.arange(length).reshape(-1, *[1] * (len(side.loops) - 1 - level))
        if extent.ndim:
            masks.append(steps < extent)
        known[loop.var] = steps + _evaluate(loop.start, known, bound)
    masks += [_evaluate(each, known, bound) for each in side.conditions]
    runs = np.ones(shape, bool)
    for mask in masks:
        runs = runs & np.asarray(mask, bool)
    columns = [np.broadcast_to(_evaluate(each, known, bound), shape)[runs] for each in side.outputs]
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


# --- compare domains ------------------------------


_MOST, _MOST_FOR_ORDER = 1 << 18, 1 << 14
_MOST_KEYS = 2.0**62
_SIZES = (31, 1, 2, 3, 4, 7, 8, 16, 64, 100)
"""What is tried for a symbolic size where nothing is proved; words are clearest at the first."""


class _Side(NamedTuple):
    """What is compared of a block: its axes, or the indices of its accesses, or some of them.

    The loops and conditions are those that determine these outputs.
    """

    domain: Domain
    outputs: Sequence[ir.Expr]
    loops: Sequence[Loop]
    conditions: Sequence[ir.Expr]

    @property
    def exprs(self) -> list[ir.Expr]:
        """The outputs and all that determines them."""
        bounds = [each for loop in self.loops for each in (loop.start, loop.extent)]
        return [*bounds, *self.outputs, *self.conditions]


_Sides: TypeAlias = Sequence[_Side]
"""Both sides, of whole blocks or of parts that do not depend on others."""


@lru_cache(maxsize=4096)
def compare_domains(
    before: tirx.PrimFunc, after: tirx.PrimFunc, block_before: str, block_after: str
) -> tuple[DomainDiff, ...]:
    """Return what differs in the values that the axes of two blocks take.

    If the blocks have other axes, the indices at which they access the same buffers are compared.
    There is one result for each group of loops that depend on each other, and none if the blocks
    have nothing in common. The blocks are given by their ids in the loop nests.
    """
    one = block_domains(before).get(block_before)
    two = block_domains(after).get(block_after)
    if one is None or two is None:
        return ()
    has_same_axes = _has_same_axes(one, two)
    plain = [_Side(each, each.values, each.loops, each.conditions) for each in (one, two)]
    sides = plain if has_same_axes else _sides_by_access(plain, (before, after))
    if sides is None:
        return (DomainDiff((), (), None, "no axes and no accesses are the same"),)
    obstacle = one.obstacle or two.obstacle
    if len(one.symbols) != len(two.symbols):
        obstacle = "the parameters have other symbolic sizes"
    if obstacle:
        return (DomainDiff((), (), None, obstacle),)
    if _is_identical(*sides):
        return ()
    parts = list(_parts(sides))
    if has_same_axes and _is_onto(one) and _is_onto(two):
        return tuple(_compare_order(part) for part in parts if len(part[0].outputs) == 1)
    silent = [part for part in parts if not part[0].outputs]
    found = [_compare_part(part) for part in parts if part[0].outputs]
    return (*found, *([_compare_repeats(silent)] if silent else []))


def _sides_by_access(
    plain: _Sides, functions: tuple[tirx.PrimFunc, tirx.PrimFunc]
) -> _Sides | None:
    one, two = (side.domain for side in plain)
    found = [_accesses(*each) for each in zip((one, two), functions, strict=True)]
    common = [key for key in found[0] if key in found[1]]
    by_access = [
        side._replace(outputs=[accesses[key] for key in common])
        for side, accesses in zip(plain, found, strict=True)
    ]
    if common and all(map(_uses_all_axes, by_access)):
        return by_access
    if _kinds(one) == _kinds(two) != [] and _writes_elements(one) == _writes_elements(two):
        return plain
    return by_access if common else None


def _writes_elements(domain: Domain) -> bool:
    """Return whether a block writes single elements, and not tiles, as after tensorize."""
    ranges = [each for region in domain.block.writes for each in region.region]
    return all(isinstance(each.min, tirx.IntImm) or is_number(each.extent, 1) for each in ranges)


def _uses_all_axes(side: _Side) -> bool:
    used = {var for expr in side.outputs for var in used_vars(expr)}
    return all(axis.var in used for axis in side.domain.block.iter_vars)


def _kinds(domain: Domain) -> list[int]:
    return [int(axis.iter_type) for axis in domain.block.iter_vars]


def _has_same_axes(one: Domain, two: Domain) -> bool:
    if not _kinds(one) or _kinds(one) != _kinds(two):
        return False
    # the symbols come first, so that each is compared with the one in its position
    mine, theirs = (
        [*each.symbols, *(axis.dom for axis in each.block.iter_vars)] for each in (one, two)
    )
    return bool(tvm_ffi.structural_equal(mine, theirs, map_free_vars=True))


def _accesses(domain: Domain, prim_func: tirx.PrimFunc) -> Mapping[Hashable, ir.Expr]:
    """Return the indices at which a block accesses single elements.

    Their keys are the kind of access, the buffer, how many accesses of it come before, and the
    dimension. A parameter is known by its position, another buffer by its name.
    """
    params = {param: at for at, param in enumerate(prim_func.params)}
    counts: dict[Hashable, int] = {}
    found: dict[Hashable, ir.Expr] = {}
    for kind, regions in (("read", domain.block.reads), ("write", domain.block.writes)):
        for region in regions:
            buffer = params.get(region.source, str(region.source.name))
            number = counts[kind, buffer] = counts.get((kind, buffer), -1) + 1
            if all(is_number(each.extent, 1) for each in region.region):
                found |= {
                    (kind, buffer, number, dim): each.min for dim, each in enumerate(region.region)
                }
    return found


def _is_identical(one: _Side, two: _Side) -> bool:
    """Return whether two sides have the same loops, and the same expressions of them."""
    if len(one.loops) != len(two.loops):
        return False
    parts = []
    for side in (one, two):
        plain = _plainly(side.domain.inside)[1]
        variables = [*side.domain.symbols, *(loop.var for loop in side.loops)]
        parts.append([*variables, *map(plain, side.exprs)])
    return bool(tvm_ffi.structural_equal(parts[0], parts[1], map_free_vars=True))


def _plainly(bound: Mapping[ir.Var, ir.Expr]) -> tuple[sym.Analyzer, Callable[[ir.Expr], ir.Expr]]:
    """Return an analyzer, and a function that replaces the variables that have a value."""
    analyzer = sym.Analyzer()
    for var, value in bound.items():
        analyzer.bind(var, value)
    return analyzer, analyzer.simplify if bound else lambda expr: expr


def _is_onto(domain: Domain) -> bool:
    """Return whether it is proved that a block's axes take each of their values exactly once."""
    analyzer, plain = _plainly(domain.bound)
    values = [plain(each) for each in domain.values]
    conditions = [plain(each) for each in domain.conditions]
    loops = {
        loop.var: ir.Range.from_min_extent(plain(loop.start), plain(loop.extent))
        for loop in domain.loops
    }
    where = tirx.all(*conditions) if conditions else True
    # "bijective" alone accepts an offset under // and %, and "surjective" alone accepts repeats
    for level in ("bijective", "surjective"):
        try:
            found = sym.detect_iter_map(values, loops, where, level)
        except (ValueError, RuntimeError, TypeError):
            return False
        if len(found.indices) != len(values):
            return False
        axes = zip(found.indices, domain.block.iter_vars, strict=True)
        if not all(_is_whole(each, axis.dom, analyzer) for each, axis in axes):
            return False
    return True


def _is_whole(found: sym.IterSumExpr, dom: ir.Range, analyzer: sym.Analyzer) -> bool:
    """Return whether an iterator has exactly the values of a range, in any order."""
    equal = analyzer.can_prove_equal
    if not found.args:
        return bool(equal(dom.extent, 1) and equal(found.base, dom.min))
    if len(found.args) > 1 or not equal(found.args[0].extent, dom.extent):
        return False
    scale = found.args[0].scale
    if equal(scale, 1):
        return bool(equal(found.base, dom.min))
    return bool(equal(scale, -1) and equal(found.base, dom.min + dom.extent - 1))


def _parts(sides: _Sides) -> Iterator[_Sides]:
    """Divide outputs and loops into groups that do not depend on each other."""
    joined: list[Sequence[Hashable]] = []
    conditions: list[list[tuple[ir.Expr, Sequence[Hashable]]]] = []
    for at, side in enumerate(sides):
        for number, output in enumerate(side.outputs):
            joined.append([number, *_used_loops(output, at, side.domain)])
        for loop in side.loops:
            bounds = (loop.start, loop.extent)
            used = [key for each in bounds for key in _used_loops(each, at, side.domain)]
            joined.append([(at, loop.var), *used])
        conditions.append([(each, _used_loops(each, at, side.domain)) for each in side.conditions])
        joined += [keys for _, keys in conditions[at]]
    loops = ((at, loop.var) for at, side in enumerate(sides) for loop in side.loops)
    pairs: dict[tuple[Hashable, Hashable], None] = {}
    for number, keys in enumerate(joined):
        pairs |= {(number, key): None for key in keys}
    for _, own in Alignment(pairs).components([*range(len(sides[0].outputs)), *loops]):
        yield [
            _Side(
                side.domain,
                [each for number, each in enumerate(side.outputs) if number in own],
                [loop for loop in side.loops if (at, loop.var) in own],
                [each for each, used in found if not used or used[0] in own],
            )
            for at, (side, found) in enumerate(zip(sides, conditions, strict=True))
        ]


def _used_loops(expr: ir.Expr, side: int, domain: Domain) -> list[Hashable]:
    """Return the keys of the loops that an expression depends on."""
    loops = {loop.var for loop in domain.loops}
    return [(side, var) for var in domain.variables(expr) if var in loops]


_FAILURES = (UnknownDomainError, FloatingPointError, RecursionError)


def _compare_order(part: _Sides) -> DomainDiff:
    """Return whether an axis takes the same values in the same order, known to take them all."""
    before, after = map(_loop_ids, part)
    if not all(isinstance(each, ir.Var) for side in part for each in side.outputs):
        with suppress(*_FAILURES):
            points = _points(part, _symbols(part), _SIZES[0], _MOST_FOR_ORDER)
            return DomainDiff(before, after, True, _compare_points(*points)[1])
    return DomainDiff(before, after, True)


def _compare_part(part: _Sides) -> DomainDiff:
    """Enumerate what both sides visit; the order is told of a single axis."""
    before, after = map(_loop_ids, part)
    used = _symbols(part)
    symbols = ", ".join(str(part[0].domain.symbols[at].name) for at in used)
    tried: list[int] = []
    words = ""
    try:
        for size in _SIZES if symbols else (1,):
            is_same, words = _compare_points(*_points(part, used, size, _MOST))
            tried.append(size)
            if not is_same:
                where = f" where {symbols} is {size}" if symbols else ""
                return DomainDiff(before, after, False, words + where)
    except _FAILURES as error:
        if not tried:
            return DomainDiff(before, after, None, str(error) or "an expression is too deep")
    if symbols:
        sizes = ", ".join(map(str, sorted(tried)))
        return DomainDiff(before, after, None, f"it does where {symbols} is {sizes}")
    return DomainDiff(before, after, True, words if len(part[0].outputs) == 1 else "")


def _loop_ids(side: _Side) -> tuple[str, ...]:
    return tuple(loop.id for loop in side.loops)


def _compare_repeats(parts: Sequence[_Sides]) -> DomainDiff:
    """Return how often both sides repeat all points, by loops that nothing depends on."""
    before, after = (tuple(one for part in parts for one in _loop_ids(part[at])) for at in (0, 1))
    used = sorted({at for part in parts for at in _symbols(part)})
    try:
        counts = [
            [side.shape[1] for side in _points(part, used, _SIZES[0], _MOST)] for part in parts
        ]
    except _FAILURES as error:
        return DomainDiff(before, after, None, str(error) or "an expression is too deep")
    was, now = np.prod(counts, axis=0, dtype=np.int64)[:, None]
    return DomainDiff(before, after, bool(was == now), ", ".join(_repeats(was, now)))


def _symbols(part: _Sides) -> Sequence[int]:
    """Return the positions of the symbols that a part depends on."""
    found: set[int] = set()
    for side in part:
        used = {var for expr in side.exprs for var in side.domain.variables(expr)}
        found |= {at for at, var in enumerate(side.domain.symbols) if var in used}
    return sorted(found)


def _points(part: _Sides, symbols: Sequence[int], size: int, most: int) -> Sequence[Values]:
    """Return what both sides visit; different symbols get different sizes."""
    with np.errstate(all="raise"):
        return [
            _visited(side, {side.domain.symbols[at]: size + 3 * at for at in symbols}, most)
            for side in part
        ]


def _compare_points(one: Values, two: Values) -> tuple[bool, str]:
    """Return whether the same points are visited as often, and what differs in words."""
    keys = _keys(one, two)
    end = 1 + max(int(each.max(initial=-1)) for each in keys)
    was, now = (np.bincount(each, minlength=end) for each in keys)
    lost, new = int(((was > 0) & (now == 0)).sum()), int(((now > 0) & (was == 0)).sum())
    both = (was > 0) & (now > 0)
    words = []
    if lost:
        covered = int((was > 0).sum())
        words.append(f"covers {covered - lost} of {covered}")
    if new:
        words.append(f"visits {new} {('other' if new == 1 else 'others') if lost else 'more'}")
    words += _repeats(was[both], now[both])
    if words:
        return False, ", ".join(words)
    if np.array_equal(*keys):
        return True, ""
    is_reversed = np.array_equal(keys[0], keys[1][::-1])
    return True, "in reverse order" if is_reversed else "in another order"


def _keys(one: Values, two: Values) -> tuple[Values, Values]:
    """Return a number for each point, small enough to be counted."""
    both = np.concatenate([one, two], axis=1)
    whole = np.zeros(both.shape[1], np.int64)
    if both.size:
        low = both.min(axis=1)
        spans = both.max(axis=1) - low + 1
        size = np.prod(spans, dtype=float)
        if size > _MOST_KEYS:
            raise UnknownDomainError("the points are too far apart")
        whole = np.ravel_multi_index(tuple(both - low[:, None]), tuple(spans))
        if size > 8 * both.shape[1] + 1024:
            whole = np.unique(whole, return_inverse=True)[1]
    return whole[: one.shape[1]], whole[one.shape[1] :]


def _repeats(was: Values, now: Values) -> Iterator[str]:
    """Yield which points are visited more or less often than before."""
    for is_more, often in ((True, now > was), (False, now < was)):
        count = int(often.sum())
        if not count:
            continue
        before, after = was[often], now[often]
        most = int(after.max())
        times = {0: "never", 1: "once", 2: "twice"}.get(most, f"{most} times")
        if count == len(was) and before.min() == before.max() and after.min() == most:
            yield f"visits each {times}" + (
                "" if before[0] == 1 else f" instead of {before[0]} times"
            )
        elif is_more and before.max() == 1:
            yield f"visits {count} {'' if after.min() == most else 'up to '}{times}"
        else:
            yield f"visits {count} {'more' if is_more else 'less'} often"

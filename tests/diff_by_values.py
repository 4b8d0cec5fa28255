"""Compare the pairs of a diff with the values that the two stages have when they run.

Nodes that correspond have the same value. A node whose value another one has on the other side has
a partner, and the diff should find it.
"""

import random
from typing import NamedTuple

import numpy as np
from tvm import relax
from tvm.relax import op

from irviz.model.graph.graph import INPUT_KINDS
from irviz.model.graph.inlined_ids import SEPARATOR

_CAST = "relax.astype"
EXACT, ROUNDED = 1e-4, 3e-2
"""The share of the largest number by which numbers may differ: of one dtype, of float16."""


class Agreement(NamedTuple):
    """How a diff agrees with the values.

    Attributes:
        expected: The number of nodes after that have a partner: they are no casts.
        missing: Those of them for which the diff does not name a partner.
        wrong: The pairs of the diff whose values differ, and casts paired with other operations.
    """

    expected: int
    missing: list[str]
    wrong: list[tuple[str, ...]]


def agreement(session, before, after, tolerance, diff=None):
    """Return how the diff of two stages, or one that is given, agrees with their values."""
    values = _values(session, before), _values(session, after)
    diff = diff or session.diff(before, after)
    (main,) = (one for one in diff.functions if one.after == session.function)
    graphs = main.graphs

    def is_equal(one, two):
        return _is_equal(values[0][one], values[1][two], tolerance)

    def is_cast(side, node):
        return graphs[side][node].callee == _CAST

    group_of = {node: each for each in main.nodes for node in each.after}
    before_it = [node for node in values[0] if SEPARATOR not in node and not is_cast(0, node)]
    expected, missing = 0, []
    for node in graphs[1].nodes:
        if node.kind in INPUT_KINDS or node.id not in values[1] or is_cast(1, node.id):
            continue
        partners = {one for one in before_it if is_equal(one, node.id)}
        expected += bool(partners)
        found = group_of[node.id].before
        if partners and not partners.intersection(found):
            missing.append(node.id)
    wrong = []
    for each in main.nodes:
        pairs = [(one, two) for one in each.before for two in each.after]
        known = [pair for pair in pairs if pair[0] in values[0] and pair[1] in values[1]]
        casts = {is_cast(0, one) is not is_cast(1, two) for one, two in pairs}
        if casts == {True} or (known and not any(is_equal(*pair) for pair in known)):
            wrong.append((*each.before, "→", *each.after))
        for one, two, *_ in each.parts:
            is_known = one in values[0] and two in values[1]
            if is_known and not is_equal(one, two):
                wrong.append((one, "→", two))
    return Agreement(expected, missing, wrong)


def _values(session, stage):
    visits = session.trace(stage).visits
    return {node: visit.value.arrays for node, visit in visits.items() if visit.value.arrays}


def _is_equal(mine, theirs, tolerance):
    return len(mine) == len(theirs) and all(
        one.shape == two.shape
        and np.abs(one.astype("float64") - two).max(initial=0)
        <= tolerance * np.abs(one.astype("float64")).max(initial=0)
        for one, two in zip(mine, theirs, strict=True)
    )


_UNARY = [op.nn.relu, op.tanh, op.sin, op.cos, op.negative, op.sigmoid, op.nn.gelu, op.nn.softmax]
_BINARY = [op.add, op.subtract, op.multiply, op.maximum, op.minimum, op.matmul]


def random_operators(seed, count=40):
    """Return a module of operators on random earlier values, which neither overflow nor vanish."""
    chance = random.Random(seed)
    builder = relax.BlockBuilder()
    square = relax.TensorType((8, 8), "float32")
    values = [relax.Var(f"x{index}", square) for index in range(4)]
    with builder.function("main", list(values)):
        with builder.dataflow():
            for _ in range(count):
                one, two = chance.choice(values[-12:]), chance.choice(values[-12:])
                if chance.random() < 0.5:
                    value = builder.emit(chance.choice([*_UNARY, op.permute_dims])(one))
                else:
                    make = chance.choice(_BINARY)
                    value = builder.emit(make(one, two))
                    if make is op.matmul:
                        value = builder.emit(op.divide(value, relax.const(8.0, "float32")))
                values.append(value)
            result = builder.emit_output(relax.Tuple(values[-3:]))
        builder.emit_func_output(result)
    return builder.get()


def fused(session):
    """Return a session with the stages up to FuseTIR, which is the last of four more."""
    for name in ("LegalizeOps", "AnnotateTIROpPattern"):
        session = session.apply(name)
    return session.apply("FuseOps", fuse_opt_level=2).apply("FuseTIR")

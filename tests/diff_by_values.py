"""Compare the pairs of a diff with the values that the two stages have when they run.

Nodes that correspond have the same value. A node whose value another one has on the other side has
a partner, and the diff should find it.
"""

import random
import re
from typing import NamedTuple

import numpy as np
import tvm
from tvm import relax
from tvm.relax import op

import irviz
from irviz.ir.node_ids import definitions, identify
from irviz.model.graph.graph import INPUT_KINDS

_CAST = re.compile(r"relax\.astype|cast\d*")
_TAKES_A_NAME = ("relax.astype", "relax.permute_dims", "relax.layout_transform", "relax.to_vdevice")
"""What a pass may put behind an operation, and give it the operation's variable."""
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
    diff = diff or session.diff(before, after)
    (main,) = (one for one in diff.functions if one.after == session.function)
    sides = [
        _values(session, stage, graph)
        for stage, graph in zip((before, after), main.graphs, strict=True)
    ]

    def is_equal(one, two):
        return _is_equal(sides[0][one], sides[1][two], tolerance)

    group_of = {node: each for each in main.nodes for node in each.after}
    computed = [_computed(*side) for side in zip(sides, main.graphs, strict=True)]
    expected, missing = 0, []
    for node in computed[1]:
        partners = {one for one in computed[0] if is_equal(one, node)}
        expected += bool(partners)
        if partners and not partners.intersection(group_of[node].before):
            missing.append(node)
    wrong = []
    for each in main.nodes:
        pairs = [(one, two) for one in each.before for two in each.after]
        known = [(one, two) for one, two in pairs if one in sides[0] and two in sides[1]]
        casts = {_is_cast(main.graphs[0][a]) is not _is_cast(main.graphs[1][b]) for a, b in pairs}
        if casts == {True} or (known and not any(is_equal(*pair) for pair in known)):
            wrong.append((*each.before, "→", *each.after))
        for one, two, *_ in each.parts:
            is_known = one in sides[0] and two in sides[1]
            if is_known and not is_equal(one, two):
                wrong.append((one, "→", two))
    return Agreement(expected, missing, wrong)


def _is_cast(node):
    return bool(_CAST.fullmatch(node.callee))


def _computed(values, graph):
    """Return the nodes of a function that compute a value, and do more than cast one."""
    return [
        node.id
        for node in graph.nodes
        if node.id in values and node.kind not in INPUT_KINDS and not _is_cast(node)
    ]


def _values(session, stage, graph):
    """Return the values of nodes, except of memory, which holds others later on."""
    memory = {node.id for node in graph.nodes if node.callee.endswith("alloc_tensor")}
    visits = session.trace(stage).visits
    return {
        node: visit.value.arrays
        for node, visit in visits.items()
        if visit.value.arrays and node not in memory
    }


def _is_equal(mine, theirs, tolerance):
    return len(mine) == len(theirs) and all(
        _is_equal_array(one.astype("float64"), two.astype("float64"), tolerance)
        for one, two in zip(mine, theirs, strict=True)
    )


def _is_equal_array(one, two, tolerance):
    if one.size != two.size:
        return False
    if one.shape != two.shape:  # another layout
        one, two = np.sort(one.ravel()), np.sort(two.ravel())
    return np.abs(one - two).max(initial=0) <= tolerance * np.abs(one).max(initial=0)


def agreement_when_read(mod, after, tolerance=EXACT):
    """Return how the diff of two modules agrees with their values when no variable is shared.

    Returns None if one of the modules does not run, or the second takes new parameters.
    """
    read = read_again(after)
    session = irviz.Session(mod, isolate=False)
    function = session.function
    session = session.apply(lambda _: read)
    last = session.stages[-1]
    if last.error or function not in {one.name_hint for one in read.get_global_vars()}:
        return None
    before, taken = ({one.name for one in each[function].params} for each in (mod, read))
    if taken - before:  # so the two run with different inputs
        return None
    try:
        return agreement(session, "0", last.id, tolerance, irviz.diff(mod, read))
    except irviz.RunError:
        return None


def read_again(mod):
    """Return the module as it is read from a file: with other objects of the same names."""
    return tvm.ir.load_json(tvm.ir.save_json(mod))


def lost_variables(before, after):
    """Return how many variables survive in the functions of two modules, and the unpaired ones.

    A variable survives if the same object is bound again; it has to be paired with itself, unless
    a cast or a change of layout took it from the operation that had it.
    """
    count, lost = 0, []
    for diff in irviz.diff(before, after).functions:
        if not diff.nodes:
            continue
        mine, theirs = _bindings(before[diff.before]), _bindings(after[diff.after])
        pairs = {(one, two) for each in diff.nodes for one in each.before for two in each.after}
        for address in mine.keys() & theirs.keys():
            (one, was), (two, now) = mine[address], theirs[address]
            count += 1
            if (one, two) not in pairs and (was == now or now not in _TAKES_A_NAME):
                lost.append(f"{diff.name}: {one} of {was}, now of {now}")
    return count, lost


def _bindings(function):
    """Return the node and the operation of each variable of a function, by its address."""
    ids = {var.__chandle__(): node_id for var, node_id in identify(function).items()}
    found = {}
    for var, binding in definitions(function.params, function.body):
        value = getattr(binding, "value", None)
        operation = getattr(getattr(value, "op", None), "name", type(value).__name__)
        found[var.__chandle__()] = ids[var.__chandle__()], operation
    return found


def lowered(mod, *passes):
    """Return a module after passes for LLVM, which are given by name."""
    with tvm.target.Target("llvm"):
        for name in passes:
            options = {"fuse_opt_level": 2} if name == "FuseOps" else {}
            mod = getattr(relax.transform, name)(**options)(mod)
    return mod


FUSED = ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps", "FuseTIR")
CALLS = ("LegalizeOps", "ToNonDataflow", "RemovePurityChecking", "CallTIRRewrite")
SEQUENCES = {
    "fused PrimFuncs": FUSED,
    "fused functions": FUSED[:3],
    "calls that write to buffers": CALLS,
    "rounded and lowered": ("ToMixedPrecision", "LegalizeOps"),
}
"""Passes one after the other; a diff of the first and the last module passes over the others."""


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

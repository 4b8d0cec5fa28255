"""A second reading of Relax functions, written from what a graph promises and TVM's own walks.

It shares no code with irviz: variables are followed by identity, and what an expression uses is
asked of TVM's visitor and of its analysis.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence

import tvm
from tvm import IRModule, ir, relax, tirx
from tvm.relax.expr_functor import PyExprVisitor, visitor

from irviz.model.graph.graph import Graph, Node, NodeKind, RegionKind

MOST_NESTED = 50
"""How deep branches and functions are read; what is deeper is one node with TVM's text."""

_OTHER_OPERATORS = {"relax.make_closure"}
"""Operators that take a function and do not call it."""


def named_calls() -> dict[str, NodeKind]:
    """Return each registered Relax operator that calls its first argument, with its kind of node.

    It is read from TVM's registry: what the first argument is called there says whether it is a
    callee, and the operator's own name says what kind of callee.
    """
    found = {}
    for name in map(str, ir.Op.list_op_names()):
        if name.startswith("relax.") and name not in _OTHER_OPERATORS:
            verb = name.rpartition(".")[2].partition("_")[0]
            if _first_argument(name) in ("func", "func_name", "closure") or verb in _VERBS:
                found[name] = next(kind for word, kind in _KINDS.items() if word in name)
    return found


def is_tupled(operator: str) -> bool:
    """Tell whether a registered operator takes the callee's arguments as one tuple."""
    return _first_argument(operator) != "args"


def _first_argument(operator: str) -> str:
    arguments = ir.Op.get(operator).arguments
    return str(arguments[0].name) if arguments else ""


_VERBS = ("call", "invoke")
_KINDS = {
    "call_tir": NodeKind.CALL_TIR,
    "call_dps_packed": NodeKind.CALL_DPS_PACKED,
    "closure": NodeKind.CALL_FUNCTION,
    "call_": NodeKind.CALL_PACKED,
}
_NAMED_CALLS = named_calls()

Leaf = tuple[tuple[int, ...], ir.Expr]


@dataclasses.dataclass(eq=False)
class Expected:
    """One node that has to be there; `mentioned` are uses inside of a written argument."""

    name: str
    kind: NodeKind
    part: Part | None
    value: ir.Expr | None = None
    used: list[tuple[tuple[int, ...], Expected | Constant]] = dataclasses.field(
        default_factory=list
    )
    mentioned: list[tuple[tuple[int, ...], frozenset[Expected]]] = dataclasses.field(
        default_factory=list
    )
    written: list[tuple[int, ...]] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(eq=False)
class Part:
    """One region that has to be there: a block, a branch, the body of a function."""

    kind: RegionKind
    parent: Part | None
    owner: Expected | None = None
    name: str = ""


@dataclasses.dataclass(frozen=True)
class Constant:
    """A constant, by its address: one object is one node."""

    address: int


def check(mod: IRModule, name: str, graph: Graph) -> None:
    """Assert that a graph has what the function has: each node, each edge, and no other."""
    walk = _Walk()
    function = mod[name]
    walk.params(function.params, None)
    walk.body(function.body, None, 0)
    outputs = [source for _, source in walk.results(function.body, (), None)]

    nodes = [node for node in graph.nodes if node.kind is not NodeKind.CONSTANT]
    assert [node.name for node in nodes] == [expected.name for expected in walk.found]
    node_of = dict(zip(walk.found, nodes, strict=True))
    index_of = _check_regions(graph, walk.parts, node_of)
    constants: dict[Constant, str] = {}
    for expected, node in node_of.items():
        where = f"{name}: {node.id}"
        assert not expected.name or node.id.startswith(_visible(expected.name)), where
        assert node.kind is expected.kind, where
        assert node.region == index_of[expected.part], where
        _check_edges(graph, expected, node, node_of, constants)
        _check_purity(expected, node)
    for source, output in zip(outputs, graph.outputs, strict=True):
        if isinstance(source, Constant):
            assert constants.setdefault(source, output) == output
        else:
            assert node_of[source].id == output
    made = [node.id for node in graph.nodes if node.kind is NodeKind.CONSTANT]
    assert sorted(constants.values()) == sorted(made)
    _check_shape(graph)


def _check_regions(
    graph: Graph, parts: Sequence[Part], node_of: dict[Expected, Node]
) -> dict[Part | None, int | None]:
    index_of: dict[Part | None, int | None] = {part: index for index, part in enumerate(parts)}
    index_of[None] = None
    assert [(region.kind, region.parent, region.owner) for region in graph.regions] == [
        (part.kind, index_of[part.parent], part.owner and node_of[part.owner].id) for part in parts
    ]
    for part, region in zip(parts, graph.regions, strict=True):
        assert part.name in ("", region.name)
    return index_of


def _visible(name: str) -> str:
    return "".join(char if char.isprintable() else "\ufffd" for char in name)


def _check_edges(
    graph: Graph,
    expected: Expected,
    node: Node,
    node_of: dict[Expected, Node],
    constants: dict[Constant, str],
) -> None:
    entering = {edge.position: edge.source for edge in graph.entering.get(node.id, ())}
    for position, source in expected.used:
        found = entering.pop(position, None)
        assert found is not None, f"{node.id} has no edge at {position}"
        if isinstance(source, Constant):
            assert constants.setdefault(source, found) == found
        else:
            assert found == node_of[source].id, f"{node.id} at {position}"
    for position, sources in expected.mentioned:
        places = [(*position, index) for index in range(len(sources))]
        found_ids = [entering.pop(place, None) for place in places]
        wanted = sorted(node_of[source].id for source in sources)
        assert sorted(map(str, found_ids)) == wanted, f"{node.id} at {position}"
    assert entering == {}, f"{node.id} has edges from nowhere"
    assert [literal.position for literal in node.literals] == expected.written, node.id


def _check_purity(expected: Expected, node: Node) -> None:
    if expected.value is None or expected.kind is NodeKind.FUNCTION:  # making one has no effect
        assert node.is_pure
        return
    try:
        has_effect = relax.analysis.contains_impure_call(expected.value)
    except Exception:  # it wants the type of every callee, which malformed modules lack
        return
    assert node.is_pure is not has_effect, node.id


def _check_shape(graph: Graph) -> None:
    """Assert what holds for every graph: one id a node, one edge a position, edges forwards."""
    assert len(graph.index) == len(graph.nodes)
    ends = Counter((edge.target, edge.position) for edge in graph.edges)
    assert set(ends.values()) <= {1}
    for edge in graph.edges:
        is_back = graph.index[edge.source] >= graph.index[edge.target]
        assert not is_back or edge.source in _owners(graph, edge.target), f"{edge} leads back"


def _owners(graph: Graph, node_id: str) -> Iterator[str | None]:
    at = graph[node_id].region
    while at is not None:
        yield graph.regions[at].owner
        at = graph.regions[at].parent


class _Walk:
    """Walks over a function in the order of its text; `known` has what is in scope."""

    def __init__(self) -> None:
        self.found: list[Expected] = []
        self.parts: list[Part] = []
        self.known: dict[int, Expected] = {}

    def part(self, *what: RegionKind | Part | Expected | str | None) -> Part:
        self.parts.append(Part(*what))
        return self.parts[-1]

    def params(self, params: Sequence[ir.Var], part: Part | None) -> None:
        for param in params:
            expected = Expected(str(param.name), NodeKind.PARAM, part)
            self.known[param.__chandle__()] = expected
            self.found.append(expected)

    def body(self, body: ir.Expr, part: Part | None, depth: int) -> None:
        if not isinstance(body, relax.SeqExpr):
            return
        for block in body.blocks:
            is_dataflow = isinstance(block, relax.DataflowBlock)
            kind = RegionKind.DATAFLOW_BLOCK if is_dataflow else RegionKind.BINDING_BLOCK
            inside = self.part(kind, part)
            for binding in block.bindings:
                self.binding(binding, inside, depth)

    def binding(self, binding: relax.Binding, part: Part, depth: int) -> None:
        value = binding.value
        is_cast = isinstance(binding, relax.MatchCast)
        expected = Expected(str(binding.var.name), NodeKind.MATCH_CAST, part, value)
        if isinstance(value, relax.Function):  # it may call itself
            self.known[binding.var.__chandle__()] = expected
        if is_cast:
            self.use(expected, _leaves([value]))
        else:
            self.value(expected, value, depth)
        self.known[binding.var.__chandle__()] = expected
        self.found.append(expected)

    def value(self, expected: Expected, value: ir.Expr, depth: int) -> None:
        """Say what kind of node a value is, and what it uses."""
        is_nested = isinstance(value, relax.If | relax.Function | relax.SeqExpr)
        if is_nested and depth < MOST_NESTED:
            self.nested(expected, value, depth + 1)
        elif isinstance(value, _VALUES) or _is_arithmetic(value):
            expected.kind = NodeKind.VALUE
            self.use(expected, [((0,), value)])
        elif isinstance(value, ir.Call):
            expected.kind, arguments = _call(value)
            if expected.kind is NodeKind.OTHER:
                self.mention(expected, (), value)
            else:
                self.use(expected, arguments)
        elif isinstance(value, ir.Tuple):
            expected.kind = NodeKind.TUPLE
            self.use(expected, _leaves(value.fields))
        elif isinstance(value, ir.TupleGetItem):
            expected.kind = NodeKind.TUPLE_GET_ITEM
            self.use(expected, _leaves([value.tuple_value]))
        else:
            expected.kind = NodeKind.OTHER
            self.mention(expected, (), value)

    def nested(self, expected: Expected, value: ir.Expr, depth: int) -> None:
        kind = RegionKind.BRANCH
        parts = [((0,), "", value)]
        expected.kind = NodeKind.VALUE
        if isinstance(value, relax.If):
            expected.kind = NodeKind.IF
            self.use(expected, _leaves([value.cond]))
            parts = [((1,), "then", value.true_branch), ((2,), "else", value.false_branch)]
        elif isinstance(value, relax.Function):
            expected.kind, kind = NodeKind.FUNCTION, RegionKind.FUNCTION
            parts = [((0,), "", value.body)]
        for position, name, body in parts:
            inside = self.part(kind, expected.part, expected, name)
            if isinstance(value, relax.Function):
                self.params(value.params, inside)
            self.body(body, inside, depth)
            expected.used += self.results(body, position, inside)

    def results(
        self, body: ir.Expr, position: tuple[int, ...], part: Part | None
    ) -> list[tuple[tuple[int, ...], Expected | Constant]]:
        """Return what a body gives: what is no variable and no constant is one more node."""
        result = body.body if isinstance(body, relax.SeqExpr) else body
        fields = list(result.fields) if isinstance(result, ir.Tuple) else []
        leaves = list(_leaves(fields)) if fields else [((), result)]
        found: list[tuple[tuple[int, ...], Expected | Constant]] = []
        for at, leaf in leaves:
            source: Expected | Constant | None = self.known.get(leaf.__chandle__())
            if isinstance(leaf, ir.GenericConst):
                source = Constant(leaf.__chandle__())
            if source is None:
                source = Expected("", NodeKind.OTHER, part, leaf)
                self.value(source, leaf, 0)
                self.found.append(source)
            found.append(((*position, *at), source))
        return found

    def use(self, expected: Expected, leaves: Sequence[Leaf] | Iterator[Leaf]) -> None:
        for position, leaf in leaves:
            known = self.known.get(leaf.__chandle__())
            if known is not None:
                expected.used.append((position, known))
            elif _is_tensor(leaf):
                expected.used.append((position, Constant(leaf.__chandle__())))
            else:
                expected.written.append(position)
                self.mention(expected, position, leaf)

    def mention(self, expected: Expected, position: tuple[int, ...], value: ir.Expr) -> None:
        known = (self.known.get(var.__chandle__()) for var in variables(value))
        expected.mentioned.append((position, frozenset(each for each in known if each)))


_VALUES = (
    ir.Var,
    ir.GenericConst,
    relax.ShapeExpr,
    ir.StringImm,
    ir.GlobalVar,
    relax.ExternFunc,
)


def _is_arithmetic(value: ir.Expr) -> bool:
    """Tell whether a value is an expression of numbers: TIR's, calls of its operators included."""
    if isinstance(value, ir.Call):
        return isinstance(value.op, ir.Op) and not str(value.op.name).startswith("relax.")
    return ir.is_prim_expr(value) and not isinstance(value, ir.TupleGetItem)


def _call(call: ir.Call) -> tuple[NodeKind, list[Leaf]]:
    """Return the kind of a call, and its arguments by their position among the callee's."""
    op, args = call.op, list(call.args)
    if isinstance(op, ir.Op):
        name = str(op.name)
        kind = _NAMED_CALLS.get(name)
        if kind is None or not args or not _is_callee(args[0], name):
            return NodeKind.OPERATOR, list(_leaves(args))
        callee, *rest = args
        if is_tupled(name) and rest and isinstance(rest[0], ir.Tuple):
            rest = [*rest[0].fields, *rest[1:]]
        return kind, [*_called(callee), *_leaves(rest)]
    if not _is_callee(op, ""):
        return NodeKind.OTHER, []
    kind = NodeKind.CALL_PACKED if isinstance(op, relax.ExternFunc) else NodeKind.CALL_FUNCTION
    return kind, [*_called(op), *_leaves(args)]


def _is_callee(callee: ir.Expr, operator: str) -> bool:
    is_python = operator == "relax.call_py_func" and isinstance(callee, ir.StringImm)
    return is_python or isinstance(callee, ir.Var | ir.GlobalVar | relax.ExternFunc)


def _called(callee: ir.Expr) -> list[Leaf]:
    return [((), callee)] if isinstance(callee, ir.Var) else []


def _leaves(fields: Sequence[ir.Expr]) -> Iterator[Leaf]:
    for index, field in enumerate(fields):
        if isinstance(field, ir.Tuple) and len(field.fields):
            yield from (((index, *at), leaf) for at, leaf in _leaves(field.fields))
        else:
            yield (index,), field


def _is_tensor(leaf: ir.Expr) -> bool:
    is_constant = isinstance(leaf, ir.GenericConst)
    if not is_constant or not isinstance(leaf.value, tvm.runtime.Tensor):
        return False
    return len(leaf.value.shape) > 0


def variables(value: ir.Expr) -> list[ir.Var]:
    """Return the variables that an expression uses and does not bind, each of them once.

    TVM's visitor also meets the sizes in types, which its analysis leaves out.
    """
    match value:  # TVM's walks over Relax refuse these
        case tirx.PrimFunc():
            return []
        case tirx.Let():
            named = [*variables(value.value), *variables(value.body)]
            return [var for var in named if not var.same_as(value.var)]
        case ir.Call(args=args) if any(isinstance(each, tirx.PrimFunc) for each in args):
            return [var for each in args for var in variables(each)]
    walk = _Variables()
    walk.visit_expr(value)
    free = {var.__chandle__() for var in relax.analysis.free_vars(value)}
    found = {var.__chandle__(): var for var in walk.found if var.__chandle__() in free}
    assert len(found) == len(free)
    return list(found.values())


@visitor
class _Variables(PyExprVisitor):
    """TVM's own walk: every variable, at each of its uses."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[ir.Var] = []

    def visit_var_(self, op: ir.Var) -> None:
        self.found.append(op)

    def visit_dataflow_var_(self, op: ir.Var) -> None:
        self.found.append(op)

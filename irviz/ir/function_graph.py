"""Read a function of an IRModule as a Graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import tvm
import tvm_ffi
from tvm import ir, relax, tirx

from irviz.gc_pause import gc_paused
from irviz.ir.loop_nest_reader import loop_nest
from irviz.ir.module_functions import drawable_function
from irviz.ir.node_ids import MAX_NESTING, NodeIds, nested_bodies, unique_id
from irviz.ir.relax_calls import CallReader, ValueReading, items, leaves, other_type, other_types
from irviz.ir.tir_statements import parts_of
from irviz.ir.type_and_expression_labels import (
    TypeText,
    TypeTexts,
    attributes,
    expression_label,
    literal_label,
    literal_type,
    once_for_equal,
)
from irviz.model.graph.flops import FlopsOfFunction, NodeFlops, node_flops
from irviz.model.graph.graph import (
    OUTPUT,
    UNKNOWN,
    Edge,
    Graph,
    Literal,
    Node,
    NodeId,
    NodeKind,
    Position,
    Region,
    RegionKind,
)
from irviz.model.loop_nest import AxisKind, Block, Buffer, Scalar
from irviz.model.matching.block_matching import places
from irviz.worker import responses


def extract(mod: ir.IRModule, function: str = "main") -> Graph:
    """Read one function as a Graph: a Relax function with its branches, or a PrimFunc's blocks.

    A scalar constant is a literal of the node that uses it. A tensor, or a constant that is
    returned, is a node of its own. An expression of an unknown class is a node of kind OTHER with
    TVM's own text. Raises NoFunctionError if the module has no Relax function or PrimFunc of this
    name.
    """
    return read_function(mod, function).graph


class FunctionReading(NamedTuple):
    """The graph of a function, and what its nodes are.

    Attributes:
        constants: The tensor of each constant's node.
        variables: The node of each variable, by the variable's address; also those of constants.
    """

    graph: Graph
    constants: Mapping[NodeId, tvm.runtime.Tensor]
    variables: Mapping[int, NodeId]


def read_function(
    mod: ir.IRModule,
    function: str = "main",
    constant_names: ConstantNames | None = None,
    flops_of_function: FlopsOfFunction = lambda _: None,
) -> FunctionReading:
    """Return what `extract` returns, and what the nodes are; constants get the names of tensors.

    `flops_of_function` counts the FLOPs of calls of the module's functions, when they are asked
    for; by default they are unknown.
    """
    source = drawable_function(mod, function)
    if isinstance(source, tirx.PrimFunc):
        return FunctionReading(prim_func_graph(source, function), {}, {})

    @cache
    def count_flops(at: int) -> float | None:
        return node_flops(graph, graph.nodes[at], flops_of_function)

    reader = GraphReader(mod, constant_names or {}, count_flops)
    with gc_paused():
        reader.params(source.params, None)
        reader.blocks(source.body, None, 0)
        outputs = reader.results(source.body, OUTPUT, (), None)
    graph = Graph(
        function=function,
        nodes=tuple(reader.nodes),
        edges=tuple(reader.edges),
        regions=tuple(reader.regions),
        outputs=tuple(node_id for _, node_id in outputs),
        attributes=attributes(source.attrs),
    )
    return FunctionReading(graph, reader.constants, reader.ids)


# --- The only reader of Relax bindings: a function becomes nodes, edges and regions --------------


ConstantNames = Mapping[tvm.runtime.Tensor, str]
"""Names of tensors that became constants, by the identity of the tensor."""

_WITHOUT_EFFECT = (relax.ShapeExpr, ir.GenericConst, ir.StringImm, ir.GlobalVar, relax.ExternFunc)


# Variables are looked up by address because comparing TVM objects takes ten times as long.
#
# The nodes of a branch come before their `if`, where the branches meet. So edges lead forwards, any
# interval of the text can be folded without a cycle, and only a recursive call leads back.
class GraphReader:
    """Reads a function from its first line to its last; variables are looked up by address."""

    def __init__(
        self,
        mod: ir.IRModule,
        constant_names: ConstantNames,
        count_flops: Callable[[int], float | None],
    ) -> None:
        self.names = NodeIds()
        self.ids: dict[int, NodeId] = {}
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.regions: list[Region] = []
        self.constants: dict[NodeId, tvm.runtime.Tensor] = {}
        self._count_flops = count_flops
        self._constant_names = constant_names
        self._texts = once_for_equal(TypeTexts)
        self._calls = CallReader(mod)
        self._literals: dict[int, tuple[str, str]] = {}
        self._returned: dict[int, NodeId] = {}

    def params(self, params: Sequence[ir.Var], region: int | None) -> None:
        """Read the parameters of a function."""
        for param in items(params):
            name = str(param.name)
            node_id = self.ids[param.__chandle__()] = self.names.define(name)
            label = TypeText(param, self._texts)
            self.nodes.append(Node(node_id, NodeKind.PARAM, name, label, region=region))

    def blocks(self, body: ir.Expr, parent: int | None, depth: int) -> None:
        """Read the bindings of a body, block after block."""
        for block in body.blocks if isinstance(body, relax.SeqExpr) else ():
            is_dataflow = isinstance(block, relax.DataflowBlock)
            kind = RegionKind.DATAFLOW_BLOCK if is_dataflow else RegionKind.BINDING_BLOCK
            region = self._region(Region(kind, "", parent))
            for binding in items(block.bindings):
                var, value = binding.var, binding.value
                name, address = str(var.name), var.__chandle__()
                node_id = self.names.define(name)
                if type(binding) is relax.MatchCast:
                    checked = other_type(binding.ty, var.ty)
                    facts = (("ty", checked),) if checked else ()
                    found = ValueReading(NodeKind.MATCH_CAST, leaves([value]), attributes=facts)
                else:
                    if type(value) is relax.Function:  # which may call itself
                        self.ids[address] = node_id
                    found = self.value(value, node_id, region, depth)
                    if type(value) is ir.Call and (types := other_types(value, var.ty)):
                        found = found._replace(attributes=(*found.attributes, ("ty_args", types)))
                self._add(node_id, name, TypeText(var, self._texts), found, region)
                self.ids[address] = node_id

    def results(
        self, body: ir.Expr, target: NodeId, position: Position, region: int | None
    ) -> list[tuple[Position, NodeId]]:
        """Return the nodes of a body's results, by position; add those that do not exist yet."""
        found = []
        result = body.body if isinstance(body, relax.SeqExpr) else body
        is_tuple = isinstance(result, ir.Tuple) and len(result.fields) > 0
        for place, leaf in leaves(items(result.fields) if is_tuple else [result]):
            at = (*position, *(place if is_tuple else place[1:]))
            source = self._source(leaf)
            if source is None:
                name = f"{target}{list(at)}"
                if isinstance(leaf, ir.GenericConst):
                    source = self._constant(leaf, name, region)
                else:
                    source = unique_id(name, self.names.seen)
                    label = TypeText(leaf, self._texts)
                    self._add(source, "", label, self.value(leaf, source, region, 0), region)
            found.append((at, source))
        return found

    def value(
        self, value: ir.Expr, node_id: NodeId, region: int | None, depth: int
    ) -> ValueReading:
        """Read a value of any kind."""
        match value:
            case ir.Call():
                return self._calls.read(value, self.ids) or self._read_other(value)
            case ir.Tuple():
                return ValueReading(NodeKind.TUPLE, leaves(items(value.fields)))
            case ir.TupleGetItem():
                index = ("index", str(value.index))
                found = leaves([value.tuple_value])
                return ValueReading(NodeKind.TUPLE_GET_ITEM, found, attributes=(index,))
            case relax.If() | relax.Function() | relax.SeqExpr() if depth < MAX_NESTING:
                return self._read_nested(value, node_id, region, depth + 1)
            case _:
                return self._read_other(value)

    def _region(self, region: Region) -> int:
        self.regions.append(region)
        return len(self.regions) - 1

    def _add(
        self, node_id: NodeId, name: str, label: TypeText, reading: ValueReading, region: int | None
    ) -> None:
        literals: tuple[Literal, ...] = ()
        types: tuple[str, ...] = ()
        ids = self.ids
        for position, argument in reading.arguments:
            source = ids.get(argument.__chandle__())
            if source is not None:
                self.edges.append(Edge(source, node_id, position))
            elif _is_tensor_constant(argument):
                source = self._constant(argument, f"{node_id}{list(position)}", region)
                self.edges.append(Edge(source, node_id, position))
            else:
                text, type_, used, has_effect = self._literal(argument)
                if has_effect:
                    reading = reading._replace(is_pure=False, access=UNKNOWN)
                literals, types = (*literals, Literal(position, text)), (*types, type_)
                for index, source in enumerate(used):
                    self.edges.append(Edge(source, node_id, (*position, index)))
        for position, source in reading.results:
            self.edges.append(Edge(source, node_id, position))
        kind, _, callee, resolution, operator, attrs, is_pure, computes, access, _ = reading
        # `.value` is a descriptor, which takes a tenth of the time that a binding takes
        structure = hash((kind._value_, computes or callee, operator, attrs, literals))
        types = types if any(types) else ()
        facts = (callee, resolution, literals, attrs, region, operator, is_pure, structure)
        work = NodeFlops(self._count_flops, len(self.nodes))
        self.nodes.append(Node(node_id, kind, name, label, *facts, types, access, work=work))

    def _read_nested(
        self, value: ir.Expr, node_id: NodeId, region: int | None, depth: int
    ) -> ValueReading:
        """Read the branches of an If, or the body of a function or a sequence."""
        is_if = isinstance(value, relax.If)
        first, first_edge = len(self.nodes), len(self.edges)
        results: list[tuple[Position, NodeId]] = []
        for index, (name, params, body) in enumerate(nested_bodies(value)):
            kind = RegionKind.FUNCTION if isinstance(value, relax.Function) else RegionKind.BRANCH
            inner = self._region(Region(kind, name or str(node_id), region, node_id))
            self.params(params, inner)
            self.blocks(body, inner, depth)
            position = (index + 1,) if is_if else (0,)
            results += self.results(body, node_id, position, inner)
        inside = self.nodes[first:]
        structure = hash((tuple(n.structure for n in inside), len(self.edges) - first_edge))
        is_pure = all(node.is_pure for node in inside)
        found = ValueReading(
            NodeKind.VALUE, [], is_pure=is_pure, structure=structure, results=results
        )
        if is_if:
            return found._replace(kind=NodeKind.IF, arguments=leaves([value.cond]))
        if isinstance(value, relax.Function):
            attrs = attributes(value.attrs)
            return found._replace(kind=NodeKind.FUNCTION, attributes=attrs, is_pure=True)
        return found

    def _read_other(self, value: ir.Expr) -> ValueReading:
        """Read a value without arguments; one of an unknown class is a node with TVM's own text."""
        if isinstance(value, (ir.Var, *_WITHOUT_EFFECT)) or ir.is_prim_expr(value):
            return ValueReading(NodeKind.VALUE, leaves([value]))
        used = self._used_nodes(value)
        return ValueReading(
            NodeKind.OTHER,
            [],
            callee=type(value).__name__,
            attributes=(("text", expression_label(value)),),
            results=[((index,), source) for index, source in enumerate(used)],
        )

    def _literal(self, argument: ir.Expr) -> tuple[str, str, list[NodeId], bool]:
        """Return a literal's text and type, the nodes it uses, and whether it has an effect.

        Texts without either are made once for all literals that are alike.
        """
        key = tvm_ffi.structural_hash(argument)
        known = self._literals.get(key)
        if known is not None:
            return *known, [], False
        texts, used = (literal_label(argument), literal_type(argument)), self._used_nodes(argument)
        has_effect = _has_effect(argument)
        if not used and not has_effect:
            self._literals[key] = texts
        return *texts, used, has_effect

    def _used_nodes(self, value: ir.Expr) -> list[NodeId]:
        """Return the nodes of the variables that an expression uses, also in sizes."""
        if isinstance(value, ir.GenericConst | ir.StringImm):
            return []
        ids = (self.ids.get(var.__chandle__()) for var in _free_vars(value))
        return [node_id for node_id in ids if node_id is not None]

    def _source(self, leaf: ir.Expr) -> NodeId | None:
        if not isinstance(leaf, ir.Var | ir.GenericConst):
            return None
        return self.ids.get(leaf.__chandle__()) or self._returned.get(leaf.__chandle__())

    def _constant(self, constant: ir.GenericConst, id_hint: str, region: int | None) -> NodeId:
        # a scalar is a node where it is returned, and a literal elsewhere
        ids = self.ids if _is_tensor_constant(constant) else self._returned
        node_id = ids[constant.__chandle__()] = unique_id(id_hint, self.names.seen)
        name = ""
        if isinstance(constant.value, tvm.runtime.Tensor):
            self.constants[node_id] = constant.value
            name = self._constant_names.get(constant.value, "")
        label = TypeText(constant, self._texts)
        self.nodes.append(Node(node_id, NodeKind.CONSTANT, name, label, region=region))
        return node_id


responses.register(NodeFlops, NodeFlops.__call__, float)


def _is_tensor_constant(leaf: ir.Expr) -> bool:
    """Tell whether an expression is a constant with a shape; a scalar constant is a literal."""
    if not isinstance(leaf, ir.GenericConst) or not isinstance(leaf.value, tvm.runtime.Tensor):
        return False  # it may be a dtype too
    return bool(leaf.value.shape != ())


def _has_effect(value: ir.Expr) -> bool:
    if isinstance(value, _WITHOUT_EFFECT):
        return False
    try:
        return bool(relax.analysis.contains_impure_call(value))
    except Exception:  # TVM analyses Relax expressions only
        return False


def _free_vars(value: ir.Expr) -> list[ir.Var]:
    """Return the variables that an expression uses and does not define, each of them once."""
    try:
        return list(relax.analysis.free_vars(value))
    except Exception:  # a part is not Relax: collect every variable in it
        return list({one.__chandle__(): one for one in parts_of(value, ir.Var)}.values())


_LETTERS = {AxisKind.SPATIAL: "S", AxisKind.REDUCTION: "R"}


def prim_func_graph(function: tirx.PrimFunc, name: str) -> Graph:
    """Read a PrimFunc as the graph of its innermost blocks, in the order of the text.

    An edge is a buffer that one block writes and a later one reads. A buffer that is read before
    it is written is a parameter. Blocks around others are regions. A PrimFunc without blocks has
    only parameters as nodes.
    """
    nest = loop_nest(function, name)
    buffers = {one.name: one for one in (*nest.parameters, *nest.temporaries)}
    seen: dict[str, int] = {OUTPUT: 1}
    writers: dict[str, NodeId] = {}
    regions: list[Region] = []
    placed = places(nest)
    innermost = [each.block for each in placed if not each.inner]
    read_first = _read_first(innermost)
    params = [one for one in nest.parameters if one.name in read_first or not innermost]
    nodes = []
    for param in params:
        node_id = writers[param.name] = unique_id(param.name, seen)
        nodes.append(Node(node_id, NodeKind.PARAM, param.name, _type_label(param)))
    param_ids = {node.id for node in nodes}
    edges: list[Edge] = []
    region_of: dict[str, int] = {}
    for block, _, loops, around, _, inner in placed:
        region = region_of[around[-1].id] if around else None
        if inner:
            region_of[block.id] = len(regions)
            regions.append(Region(RegionKind.OUTER_BLOCK, block.name or "block", region))
            continue
        node_id = unique_id(block.name or "block", seen)
        sources = dict.fromkeys(access.buffer for access in block.reads if access.buffer in writers)
        edges += [Edge(writers[buffer], node_id, (index,)) for index, buffer in enumerate(sources)]
        names = list(dict.fromkeys(access.buffer for access in block.writes))
        types = ", ".join(_type_label(buffers[one]) for one in names if one in buffers)
        facts = {
            "axes": ", ".join(
                f"{one.name} {_LETTERS.get(one.kind, one.kind.value)} {one.extent}"
                for one in block.axes
            ),
            "threads": ", ".join(f"{one.thread} {one.extent}" for one in loops if one.thread),
        }
        nodes.append(
            Node(
                node_id,
                NodeKind.BLOCK,
                ", ".join(names),
                types,
                attributes=tuple((name, text) for name, text in facts.items() if text),
                region=region,
            )
        )
        writers |= dict.fromkeys(names, node_id)
    results = dict.fromkeys(writers[one.name] for one in nest.parameters if one.name in writers)
    outputs = tuple(one for one in results if one not in param_ids)
    attrs = attributes(function.attrs)
    return Graph(name, tuple(nodes), tuple(edges), tuple(regions), outputs, attributes=attrs)


def _read_first(blocks: Sequence[Block]) -> set[str]:
    """Return the buffers that a block reads before any block has written them."""
    found: set[str] = set()
    written: set[str] = set()
    for block in blocks:
        own = {access.buffer for access in block.writes} if block.init else set()
        found |= {access.buffer for access in block.reads} - written - own
        written |= {access.buffer for access in block.writes}
    return found


def _type_label(buffer: Buffer | Scalar) -> str:
    if isinstance(buffer, Scalar):
        return buffer.dtype
    dtype = "" if buffer.dtype == "float32" else f" {buffer.dtype}"
    scope = "" if buffer.scope == "global" else f" {buffer.scope}"
    return f"Buffer[{buffer.shape}]{dtype}{scope}"

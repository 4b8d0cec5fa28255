"""IRModule -> Graph: the only reader of Relax bindings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import tvm
from tvm import ir, relax, tirx

from irviz.ir.attributes import attributes
from irviz.ir.callee import callee_name, is_destination_passing
from irviz.ir.identity import bindings, distinct, function_named, identify, relax_function
from irviz.ir.type_label import dim_label, shape_label, type_label
from irviz.model.graph import Block, Edge, Graph, Literal, Node, NodeId, NodeKind, Resolution

ConstantNames = Mapping[tvm.runtime.Tensor, str]
"""Names of tensors that became constants, by the identity of the tensor."""


def extract(
    mod: ir.IRModule, function: str = "main", constant_names: ConstantNames | None = None
) -> Graph:
    """Read one Relax function of the module as a Graph.

    A scalar constant is a literal of the node that uses it, a tensor or one that is returned is
    a node of its own, named by `constant_names` where its tensor is known there. Raises
    ValueError when the module has no Relax function of this name.
    """
    source = relax_function(mod, function)
    ids = dict(identify(source))
    reader = _Reader(mod, ids, constant_names or {}, dict.fromkeys(ids.values(), 1))
    for param in source.params:
        reader.nodes.append(
            Node(reader.ids[param], NodeKind.PARAM, param.name, type_label(param.ty))
        )
    for block, binding in bindings(source):
        reader.read(binding, block)
    body = source.body.body if isinstance(source.body, relax.SeqExpr) else source.body
    outputs = reader.outputs(_leaves(body))
    blocks = source.body.blocks if isinstance(source.body, relax.SeqExpr) else ()
    return Graph(
        function=function,
        nodes=tuple(reader.nodes),
        edges=tuple(reader.edges),
        blocks=tuple(
            Block(index, isinstance(block, relax.DataflowBlock))
            for index, block in enumerate(blocks)
        ),
        outputs=outputs,
    )


def resolve(mod: ir.IRModule, name: str) -> Resolution:
    """Tell what the VM finds under this name: the module's own functions come first."""
    function = function_named(mod, name)
    if function is not None:
        is_prim = isinstance(function, tirx.PrimFunc)
        return Resolution.PRIM_FUNC if is_prim else Resolution.FUNCTION
    registered = tvm.get_global_func(name, allow_missing=True) is not None
    return Resolution.LIBRARY if registered else Resolution.UNKNOWN


@dataclass(frozen=True)
class _Reading:
    """What a value turned out to be, before its arguments are followed."""

    kind: NodeKind
    arguments: tuple[tuple[tuple[int, ...], ir.Expr], ...] = ()
    callee: str = ""
    resolution: Resolution | None = None
    attributes: tuple[tuple[str, str], ...] = ()


@dataclass
class _Reader:
    mod: ir.IRModule
    ids: dict[ir.Var | ir.GenericConst, NodeId]
    constant_names: ConstantNames
    seen: dict[str, int]
    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    resolved: dict[str, Resolution] = field(default_factory=dict)

    def read(self, binding: relax.Binding, block: int) -> None:
        reading = self.reading(binding)
        node_id = self.ids[binding.var]
        literals = []
        for position, argument in reading.arguments:
            source = self.source_of(argument)
            if source is None and _is_tensor_constant(argument):
                source = self.add_constant(argument, f"{node_id}{list(position)}", block)
            if source is not None:
                self.edges.append(Edge(source, node_id, position))
            else:
                literals.append(Literal(position, _literal(argument)))
                for index, var in enumerate(self.variables_of(argument)):
                    self.edges.append(Edge(self.ids[var], node_id, (*position, index)))
        self.nodes.append(
            Node(
                id=node_id,
                kind=reading.kind,
                name=binding.var.name,
                type_label=type_label(binding.var.ty),
                callee=reading.callee,
                resolution=reading.resolution,
                literals=tuple(literals),
                attributes=reading.attributes,
                block=block,
            )
        )

    def reading(self, binding: relax.Binding) -> _Reading:
        if isinstance(binding, relax.MatchCast):
            return _Reading(NodeKind.MATCH_CAST, tuple(_leaves(binding.value)))
        match binding.value:
            case ir.Call() as call:
                return self.call(call)
            case ir.Tuple() as value:
                return _Reading(NodeKind.TUPLE, tuple(_leaves(value)))
            case ir.TupleGetItem() as value:
                return _Reading(
                    NodeKind.TUPLE_GET_ITEM,
                    tuple(_leaves(value.tuple_value)),
                    attributes=(("index", str(value.index)),),
                )
            case value:
                return self.other(value)

    def call(self, call: ir.Call) -> _Reading:
        op = call.op
        if isinstance(op, ir.Op):
            if is_destination_passing(call):
                return self.destination_passing(call)
            return _Reading(
                NodeKind.OPERATOR,
                tuple(_leaves_of(call.args)),
                callee=op.name,
                attributes=attributes(call.attrs),
            )
        if isinstance(op, ir.GlobalVar | relax.ExternFunc):
            name = callee_name(op)
            return _Reading(
                NodeKind.CALL_FUNCTION, tuple(_leaves_of(call.args)), name, self.resolution(name)
            )
        return self.other(call)

    def destination_passing(self, call: ir.Call) -> _Reading:
        """Read `call_tir(f, (x, …), out_ty)`: the callee's arguments count from 0."""
        callee, packed, *rest = call.args
        if not isinstance(callee, ir.GlobalVar | relax.ExternFunc):
            return self.other(call)
        is_tuple = isinstance(packed, ir.Tuple)
        tensors = list(packed.fields) if is_tuple else [packed]
        name = callee_name(callee)
        is_call_tir = call.op.name == "relax.call_tir"
        return _Reading(
            NodeKind.CALL_TIR if is_call_tir else NodeKind.CALL_DPS_PACKED,
            tuple(_leaves_of([*tensors, *rest])),
            callee=name,
            resolution=self.resolution(name),
            attributes=attributes(call.attrs),
        )

    def other(self, value: ir.Expr) -> _Reading:
        """Keep TVM's own text, and every variable the value uses."""
        if isinstance(value, ir.Var | ir.GenericConst):
            return _Reading(NodeKind.OTHER, (((0,), value),))
        return _Reading(
            NodeKind.OTHER,
            tuple(((index,), var) for index, var in enumerate(self.variables_of(value))),
            callee=type(value).__name__,
            attributes=(("text", _text(value)),),
        )

    def resolution(self, name: str) -> Resolution:
        if name not in self.resolved:
            self.resolved[name] = resolve(self.mod, name)
        return self.resolved[name]

    def source_of(self, leaf: ir.Expr) -> NodeId | None:
        return self.ids.get(leaf) if isinstance(leaf, ir.Var | ir.GenericConst) else None

    def variables_of(self, value: ir.Expr) -> list[ir.Var]:
        """Return the variables of the function that an expression uses, sizes in it included."""
        return [var for var in relax.analysis.free_vars(value) if var in self.ids]

    def outputs(self, leaves: Iterable[tuple[tuple[int, ...], ir.Expr]]) -> tuple[NodeId, ...]:
        found = []
        for position, leaf in leaves:
            if isinstance(leaf, ir.GenericConst) and leaf not in self.ids:
                self.add_constant(leaf, f"return{list(position)}", None)
            found.append(self.source_of(leaf))
        return tuple(node_id for node_id in found if node_id is not None)

    def add_constant(self, constant: ir.GenericConst, wanted: str, block: int | None) -> NodeId:
        node_id = self.ids[constant] = distinct(wanted, self.seen)
        name = self.constant_names.get(constant.value, "")
        self.nodes.append(
            Node(node_id, NodeKind.CONSTANT, name, type_label(constant.ty), block=block)
        )
        return node_id


def _leaves_of(arguments: list[ir.Expr]) -> Iterator[tuple[tuple[int, ...], ir.Expr]]:
    for index, argument in enumerate(arguments):
        if isinstance(argument, ir.Tuple):
            for position, leaf in _leaves_of(argument.fields):
                yield (index, *position), leaf
        else:
            yield (index,), argument


def _leaves(value: ir.Expr) -> Iterator[tuple[tuple[int, ...], ir.Expr]]:
    return _leaves_of(value.fields if isinstance(value, ir.Tuple) else [value])


def _is_tensor_constant(leaf: ir.Expr) -> bool:
    if not isinstance(leaf, ir.GenericConst) or not isinstance(leaf.value, tvm.runtime.Tensor):
        return False  # it may be a dtype too
    return bool(leaf.value.shape != ())


def _text(value: ir.Expr) -> str:
    if ir.is_prim_expr(value):
        return dim_label(value)
    lines = [line for line in str(value).splitlines() if not line.startswith("# from ")]
    return "\n".join(lines).strip()


def _literal(leaf: ir.Expr) -> str:
    match leaf:
        case ir.GenericConst(value=tvm.runtime.Tensor() as tensor):
            return str(tensor.numpy())
        case ir.GenericConst():
            return str(leaf.value)
        case relax.ShapeExpr():
            return shape_label(leaf.values)
        case ir.StringImm():
            return repr(str(leaf.value))
        case _:
            return dim_label(leaf)

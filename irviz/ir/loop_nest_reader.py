"""Read a PrimFunc as its loop nest: loops, blocks and buffers, the rest as TVM's own text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache

from tvm import ir, s_tir, tirx

from irviz.ir.tir_statements import (
    ScopedNames,
    flatten_with_paths,
    is_number,
    nested_statements,
    script_lines,
    used_vars,
    walk_statements,
)
from irviz.ir.type_and_expression_labels import shape_label
from irviz.model.loop_nest import (
    Axis,
    AxisKind,
    Block,
    Buffer,
    BufferRegion,
    Loop,
    LoopKind,
    LoopNest,
    LoopNode,
    MatchBuffer,
    Scalar,
    Statement,
)

MAX_NESTING = 64
"""How deeply nodes nest; one statement counts the deeper ones."""


_USUAL_LAYOUT = {
    "strides": ("[]", "()"),
    "elem_offset": ("0",),
    "data_alignment": ("64",),
    "offset_factor": ("1",),
    "layout": ("None",),
    "allocated_addr": ("[]", "()"),
}
"""The fields of a buffer's type that say where its elements are, and their usual texts."""
_AXIS_KINDS = tuple(AxisKind)
assert {kind.name for kind in LoopKind} == {kind.name for kind in tirx.ForKind}


@lru_cache(maxsize=1024)  # stages share the functions that passes leave as they are
def loop_nest(prim_func: tirx.PrimFunc, name: str) -> LoopNest:
    """Read a PrimFunc in any state: with or without blocks, scheduled, or lowered.

    The root block that TVM puts around the body is not a node: its buffers are the function's
    temporaries, as in TVMScript.
    """
    reader = _Reader(script_lines(prim_func))
    parameters = reader.parameters(prim_func)
    body, path = prim_func.body, "body"
    if _is_plain_root(body):
        reader.allocate(body.block.alloc_buffers)
        body, path = body.block.body, "body.block.body"
    nodes = reader.nodes(body, 0, path)
    return LoopNest(name, parameters, tuple(reader.temporaries), nodes)


class _Reader:
    """Reads statements outermost first, because names depend on the enclosing scope."""

    def __init__(self, lines: dict[tirx.Stmt, list[str]]) -> None:
        self.temporaries: list[Buffer] = []
        self._lines = lines
        self._names = ScopedNames()
        self._drives: dict[ir.Var, dict[AxisKind, None]] = defaultdict(dict)

    def parameters(self, prim_func: tirx.PrimFunc) -> tuple[Buffer | Scalar, ...]:
        for param in prim_func.params:
            self._names.define(param)
        for param in filter(tirx.is_buffer_var, prim_func.params):
            for size in param.ty.shape:
                for var in used_vars(size):
                    self._names.define(var)
        return tuple(
            self._buffer(param)
            if tirx.is_buffer_var(param)
            else Scalar(self._names.define(param), _scalar_dtype(param.ty))
            for param in prim_func.params
        )

    def allocate(self, buffers: Iterable[ir.Var]) -> tuple[Buffer, ...]:
        new = tuple(self._buffer(buffer) for buffer in buffers)
        self.temporaries += new
        return new

    def nodes(self, stmt: tirx.Stmt, level: int, path: str) -> tuple[LoopNode, ...]:
        """Read a statement or a sequence in the current scope; `path` is TVM's access path."""
        statements = flatten_with_paths(stmt, path)
        return tuple(node for each, at in statements for node in self._read(each, level, at))

    def _read(self, stmt: tirx.Stmt, level: int, path: str) -> tuple[LoopNode, ...]:
        if level >= MAX_NESTING and nested_statements(stmt):
            inside = sum(1 for _ in walk_statements(stmt)) - 1
            text = f"{self._heading(stmt)} … ({inside} more inside, nested too deeply to show)"
            return (Statement(text, id=path),)
        match stmt:
            case tirx.For():
                return (self._loop(stmt, level, path),)
            case s_tir.SBlockRealize():
                return (self._block(stmt.block, level, path, stmt),)
            case s_tir.SBlock():
                return (self._block(stmt, level, path),)
            case tirx.IfThenElse():
                then = self._enclosing(stmt, "then_case", level, path)
                if stmt.else_case is None:
                    return (then,)
                with self._names.scope():
                    other = self.nodes(stmt.else_case, level + 1, f"{path}.else_case")
                return (then, Statement("else:", other, f"{path}#else"))
            case tirx.While() | tirx.AttrStmt():
                return (self._enclosing(stmt, "body", level, path),)
        self._define_vars(stmt)
        return (Statement(self._heading(stmt), id=path),)

    def _enclosing(self, stmt: tirx.Stmt, part: str, level: int, path: str) -> Statement:
        """Read a statement with one inner statement, or an `if` up to its `else`."""
        with self._names.scope():
            if isinstance(stmt, tirx.AttrStmt) and isinstance(stmt.node, tirx.IterVar):
                self._names.define(stmt.node.var)
            heading = self._heading(stmt)
            inner = self.nodes(getattr(stmt, part), level + 1, f"{path}.{part}")
            return Statement(heading, inner, path)

    def _loop(self, stmt: tirx.For, level: int, path: str) -> Loop:
        start, extent = self._names.text(stmt.min), self._names.text(stmt.extent)
        with self._names.scope():
            variable = self._names.define(stmt.loop_var)
            children = self.nodes(stmt.body, level + 1, f"{path}.body")
        return Loop(
            variable,
            extent,
            LoopKind[tirx.ForKind(stmt.kind).name],
            children,
            tuple(self._drives.pop(stmt.loop_var, {})),
            start,
            "1" if stmt.step is None else self._names.text(stmt.step),
            "" if stmt.thread_binding is None else str(stmt.thread_binding.thread_tag),
            self._annotations(stmt.annotations),
            path,
        )

    def _block(
        self, block: s_tir.SBlock, level: int, path: str, realize: s_tir.SBlockRealize | None = None
    ) -> Block:
        """Read a block, and the bindings of its axes if it has some."""
        inner_path = path if realize is None else f"{path}.block"
        bindings = [] if realize is None else list(realize.iter_values)
        where = None if realize is None else realize.predicate
        for axis, value in zip(block.iter_vars, bindings, strict=False):
            for var in used_vars(value):
                self._drives[var][_axis_kind(axis)] = None
        texts = list(map(self._names.text, bindings)) or [""] * len(block.iter_vars)
        predicate = "" if where is None or is_number(where, 1) else self._names.text(where)
        with self._names.scope():
            axes = tuple(map(self._axis, block.iter_vars, texts))
            reads, writes = (tuple(map(self._access, all_)) for all_ in (block.reads, block.writes))
            temporaries = self.allocate(block.alloc_buffers)
            matches = tuple(
                MatchBuffer(self._buffer(match.buffer), self._access(match.source))
                for match in block.match_buffers
            )
            init: tuple[LoopNode, ...] = ()
            if block.init is not None:
                with self._names.scope():
                    init = self.nodes(block.init, level + 1, f"{inner_path}.init")
            return Block(
                str(block.name_hint),
                axes,
                reads,
                writes,
                self.nodes(block.body, level + 1, f"{inner_path}.body"),
                init,
                temporaries,
                matches,
                predicate,
                self._annotations(block.annotations),
                path,
            )

    def _axis(self, axis: tirx.IterVar, binding: str) -> Axis:
        start, extent = "0", "?"
        if axis.dom is not None:
            start, extent = self._names.text(axis.dom.min), self._names.text(axis.dom.extent)
        return Axis(self._names.define(axis.var), _axis_kind(axis), extent, binding, start)

    def _access(self, region: ir.TensorRegion) -> BufferRegion:
        buffer, _, indices = self._names.text(region).partition("[")
        return BufferRegion(buffer, indices.removesuffix("]"))

    def _buffer(self, buffer: ir.Var) -> Buffer:
        type_ = buffer.ty
        shape = shape_label([self._names.rename(size) for size in type_.shape])
        scope = str(type_.storage_scope) or "global"
        texts = {name: self._names.text(getattr(type_, name)) for name in _USUAL_LAYOUT}
        unusual = [(name, one) for name, one in texts.items() if one not in _USUAL_LAYOUT[name]]
        layout = ", ".join(f"{name}={text}" for name, text in unusual)
        return Buffer(self._names.define(buffer), shape, str(type_.dtype), scope, layout)

    def _annotations(self, annotations: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
        return tuple((str(key), self._names.text(value)) for key, value in annotations.items())

    def _heading(self, stmt: tirx.Stmt) -> str:
        lines = self._lines.get(stmt)
        if lines:  # a statement with several occurrences is printed at each, in order
            return lines.pop(0) if len(lines) > 1 else lines[0]
        return type(stmt).__name__ if nested_statements(stmt) else self._names.text(stmt)

    def _define_vars(self, stmt: tirx.Stmt) -> None:
        match stmt:
            case tirx.AllocBuffer():
                self.allocate([stmt.buffer])
            case tirx.DeclBuffer():
                self._names.define(stmt.buffer)
            case tirx.Bind():
                self._names.define(stmt.var)
            case tirx.ScopeIdDefStmt():
                for var in getattr(stmt, "def").def_ids:
                    self._names.define(var)


def _is_plain_root(stmt: tirx.Stmt) -> bool:
    if not isinstance(stmt, s_tir.SBlockRealize) or not is_number(stmt.predicate, 1):
        return False
    root = stmt.block
    fields = (root.iter_vars, root.reads, root.writes, root.match_buffers, root.annotations)
    return root.name_hint == "root" and root.init is None and not any(map(len, fields))


def _axis_kind(axis: tirx.IterVar) -> AxisKind:
    number = int(axis.iter_type)
    return _AXIS_KINDS[number] if number < len(_AXIS_KINDS) else AxisKind.OPAQUE


def _scalar_dtype(type_: ir.Type) -> str:
    if isinstance(type_, ir.PrimType):
        return str(type_.dtype)
    return "handle" if isinstance(type_, ir.PointerType) else str(type_).splitlines()[-1]

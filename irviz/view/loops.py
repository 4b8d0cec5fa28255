"""The loop nest of a PrimFunc as HTML, for the narrow pane beside the picture."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from html import escape

from irviz.model.loops import (
    Access,
    Axis,
    AxisKind,
    Block,
    Buffer,
    Loop,
    LoopKind,
    LoopNest,
    LoopNode,
    Scalar,
    Statement,
)

LOOP_KINDS: dict[LoopKind, str] = {
    LoopKind.SERIAL: "",  # goes without saying
    LoopKind.PARALLEL: "parallel",
    LoopKind.VECTORIZED: "vectorized",
    LoopKind.UNROLLED: "unrolled",
    LoopKind.THREAD_BINDING: "thread",
}
assert LOOP_KINDS.keys() == set(LoopKind), "every kind of loop has a word"

AXIS_KINDS: dict[AxisKind, str] = {
    AxisKind.SPATIAL: "spatial (S)",
    AxisKind.REDUCTION: "reduction (R)",
    **{kind: kind.value for kind in AxisKind if kind not in (AxisKind.SPATIAL, AxisKind.REDUCTION)},
}


def loops_html(nest: LoopNest, choosable: Collection[str] = ()) -> str:
    """Return the parameters and temporary buffers of a PrimFunc, and its loops and blocks.

    What stands for a node with an id has it as `data-node`. The line of each node of `choosable`,
    which are ids, has it as `data-choice` too.
    """
    tree = _list(nest.body, choosable)
    parameters = _line("parameters", ", ".join(map(_parameter, nest.parameters)) or "none")
    temporaries = _line("temporaries", ", ".join(map(_parameter, nest.temporaries)) or "none")
    return (
        f'<div class="irviz-loops"><h5>Loops of {escape(nest.name)}</h5>'
        f'{parameters}{temporaries}<div class="irviz-loops-tree">{tree}</div></div>'
    )


def _list(nodes: Iterable[LoopNode], choosable: Collection[str]) -> str:
    items = "".join(f"<li>{_node(node, choosable)}</li>" for node in nodes)
    return f'<ul class="irviz-loops-nodes">{items}</ul>' if items else ""


def _node(node: LoopNode, choosable: Collection[str]) -> str:
    match node:
        case Loop():
            return _loop(node, choosable)
        case Block():
            return _block(node, choosable)
        case Statement():
            text = escape(node.text)
            code = f'<code class="irviz-loops-statement"{_named("node", node.id)}>{text}</code>'
            return code + _list(node.children, choosable)


def _named(role: str, node_id: str) -> str:
    return f' data-{role}="{escape(node_id)}"' if node_id else ""


def _loop(loop: Loop, choosable: Collection[str]) -> str:
    words = [*(kind.value for kind in loop.axes), LOOP_KINDS[loop.kind], loop.thread]
    words += [f"{key} = {value}" for key, value in loop.annotations]
    words = [word for word in words if word]
    span = loop.extent if loop.start == "0" else f"{loop.extent} from {loop.start}"
    span += "" if loop.step == "1" else f" by {loop.step}"
    head = f"<code>for <b>{escape(loop.variable)}</b> in {escape(span)}</code>"
    tail = f'<span class="irviz-loops-words"> · {escape(" · ".join(words))}</span>' if words else ""
    names = _named("node", loop.id) + _named("choice", loop.id if loop.id in choosable else "")
    line = f'<div class="irviz-loops-loop"{names}>{head}{tail}</div>'
    return line + _list(loop.children, choosable)


def _block(block: Block, choosable: Collection[str]) -> str:
    lines = [
        _line(word, ", ".join(_axis(axis) for axis in block.axes if axis.kind is kind))
        for kind, word in AXIS_KINDS.items()
    ]
    lines.append(_line("where", block.predicate))
    if block.reads or block.writes:
        reads, writes = (", ".join(map(_access, each)) for each in (block.reads, block.writes))
        lines.append(_line("reads → writes", f"{reads or 'nothing'} → {writes or 'nothing'}"))
    lines.append(_line("temporaries", ", ".join(map(_parameter, block.temporaries))))
    lines += [
        _line("view", f"{_parameter(match.buffer)} of {_access(match.source)}")
        for match in block.matches
    ]
    lines += [_line(key, value or '""') for key, value in block.annotations]
    if block.init:
        init = f'<span class="irviz-loops-words">init</span>{_list(block.init, choosable)}'
        lines.append(f'<div class="irviz-loops-init">{init}</div>')
    choice = _named("choice", block.id if block.id in choosable else "")
    return (
        f'<div class="irviz-loops-block"{_named("node", block.id)}>'
        f'<div class="irviz-loops-name"{choice}>block <b>{escape(block.name)}</b></div>'
        f"{''.join(lines)}{_list(block.children, choosable)}</div>"
    )


def _line(word: str, text: str) -> str:
    if not text:
        return ""
    words = f'<span class="irviz-loops-words">{escape(word)}</span>'
    return f'<div class="irviz-loops-line">{words} <code>{escape(text)}</code></div>'


def _axis(axis: Axis) -> str:
    size = axis.extent if axis.start == "0" else f"{axis.extent} from {axis.start}"
    bound = f" = {axis.binding}" if axis.binding else ""
    return f"{axis.name}{bound} of {size}"


def _access(access: Access) -> str:
    return f"{access.buffer}[{access.region}]"


def _parameter(parameter: Buffer | Scalar) -> str:
    match parameter:
        case Buffer():
            scope = "" if parameter.scope == "global" else f" {parameter.scope}"
            return f"{parameter.name}: {parameter.shape} {parameter.dtype}{scope}"
        case Scalar():
            return f"{parameter.name}: {parameter.dtype}"

"""The difference between two modules: functions by name, and the number of bindings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tvm import ir, relax
from tvm_ffi import structural_equal

from irviz.ir.function_graph import extract
from irviz.ir.node_ids import identify
from irviz.model.graph.graph import INPUT_KINDS, Graph, NodeId, NodeKind, Resolution

_MOST_NAMES = 4


@dataclass(frozen=True)
class ModuleChanges:
    """The functions that differ, by name, and the number of bindings changed in them.

    `of_module` is whether attributes or global infos of the module itself differ.
    """

    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    bindings: int = 0
    of_module: bool = False

    def __bool__(self) -> bool:
        return self != ModuleChanges()

    def __str__(self) -> str:
        words = [f"{self.bindings} binding{'s' * (self.bindings != 1)}"] if self.bindings else []
        for verb in ("changed", "added", "removed"):
            names: tuple[str, ...] = getattr(self, verb)
            if names:
                shown = ", ".join(names[:_MOST_NAMES]) + (", …" if len(names) > _MOST_NAMES else "")
                words.append(f"{len(names)} function{'s' * (len(names) != 1)} {verb} ({shown})")
        words += ["attributes of the module"] if self.of_module else []
        return "; ".join(words) or "nothing"


def compare_modules(before: ir.IRModule, after: ir.IRModule) -> ModuleChanges:
    """Compare two modules; functions are matched by name."""
    if before.same_as(after):
        return ModuleChanges()
    old, new = (
        {gvar.name_hint: function for gvar, function in mod.functions.items()}
        for mod in (before, after)
    )
    both = sorted(old.keys() & new.keys())
    changed = [name for name in both if not structural_equal(old[name], new[name])]
    bindings = sum(
        _count_changes(_Version.of(before, name), _Version.of(after, name))
        for name in changed
        if isinstance(old[name], relax.Function) and isinstance(new[name], relax.Function)
    )
    return ModuleChanges(
        tuple(changed),
        tuple(sorted(new.keys() - old.keys())),
        tuple(sorted(old.keys() - new.keys())),
        bindings,
        not structural_equal(_without_functions(before), _without_functions(after)),
    )


def _without_functions(mod: ir.IRModule) -> ir.IRModule:
    return ir.IRModule({}, attrs=mod.attrs, global_infos=mod.global_infos)


class _Version(NamedTuple):
    """One version of a function: its bound variables by address, and what each node computes."""

    bound: Mapping[int, NodeId]
    nodes: Mapping[NodeId, Description]

    @classmethod
    def of(cls, mod: ir.IRModule, name: str) -> _Version:
        nodes, params = descriptions(extract(mod, name)), set(mod[name].params)
        bound = {
            var.__chandle__(): node_id
            for var, node_id in identify(mod[name]).items()
            if var not in params and node_id in nodes
        }
        return cls(bound, nodes)


def _renamed(description: Description, names: Mapping[str, str]) -> Description:
    operands = tuple((names.get(name, name), place) for name, place in description.operands)
    return description._replace(operands=operands)


def _count_changes(was: _Version, now: _Version) -> int:
    """Return how many bindings were changed, replaced, added or removed.

    Variables match if they are the same object or have the same name; a variable with another
    name that is bound to the same value counts as renamed, not as changed.
    """
    before: dict[str, str] = {
        now.bound[address]: was.bound[address] for address in now.bound.keys() & was.bound.keys()
    }
    left = dict.fromkeys(one for one in was.bound.values() if one not in set(before.values()))
    for node_id in now.bound.values():
        if node_id not in before and node_id in left:
            before[node_id] = node_id
            del left[node_id]
    renamed = {was.nodes[node_id]: node_id for node_id in reversed(left)}
    changed = added = 0
    for node_id in now.bound.values():  # in program order: operands come first
        description = _renamed(now.nodes[node_id], before)
        if node_id in before:
            changed += description != was.nodes[NodeId(before[node_id])]
        elif description in renamed:
            before[node_id] = renamed.pop(description)
            del left[NodeId(before[node_id])]
        else:
            added += 1
    return changed + max(added, len(left))


# --- node descriptions -------------------------------------------------------------------------
#
# Descriptions of what nodes compute, for comparison between graphs.


class Description(NamedTuple):
    """A description of a node: nodes with equal descriptions compute the same."""

    kind: NodeKind
    callee: str
    resolution: Resolution | None
    literals: tuple[object, ...]
    operands: tuple[tuple[str, tuple[int, ...]], ...]


def descriptions(graph: Graph) -> dict[NodeId, Description]:
    """Return a description of each node; inputs are identified by name, or else by id.

    Types are ignored: nearly all of them change when symbolic sizes become known. A constant with
    the name of the parameter that it replaced is the same input.
    """
    names = {
        node.id: (node.name or node.id) if node.kind in INPUT_KINDS else node.id
        for node in graph.nodes
    }
    operands: dict[NodeId, list[tuple[str, tuple[int, ...]]]] = {
        node.id: [] for node in graph.nodes
    }
    for edge in graph.edges:
        operands[edge.target].append((names[edge.source], edge.position))
    return {
        node.id: Description(
            node.kind, node.callee, node.resolution, node.literals, tuple(operands[node.id])
        )
        for node in graph.nodes
    }

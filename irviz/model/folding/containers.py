"""The containers of a graph, which can be expanded and collapsed: regions, repeats and parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from irviz.gc_pause import gc_paused
from irviz.model.folding.folding_limits import MAX_CHILDREN, PART_CHILDREN, SMALL_GRAPH
from irviz.model.folding.repeats import BoundNodes, bound_nodes, find_repeats
from irviz.model.graph.graph import Graph, NodeId, RegionKind


@dataclass(frozen=True, slots=True, eq=False)
class Container:
    """The steps from `start` to before `stop`, which can be drawn as one node.

    `children` are containers and steps; the children of a repeat are those of its first copy.
    `owner` is the node whose value a region makes, `region` the index of that region.
    """

    id: str
    kind: RegionKind
    name: str
    start: int
    stop: int
    children: tuple[Container | int, ...]
    copies: int = 1
    owner: NodeId | None = None
    region: int | None = None

    @property
    def held(self) -> int:
        """The number of steps in a copy."""
        return (self.stop - self.start) // self.copies

    @property
    def inside(self) -> list[Container]:
        """The children that are containers."""
        return [child for child in self.children if isinstance(child, Container)]


@dataclass(frozen=True, eq=False)
class ContainerTree:
    """The containers of a graph; the root holds all of its steps."""

    bound: BoundNodes
    root: Container

    @property
    def graph(self) -> Graph:
        """The whole graph."""
        return self.bound.graph


@gc_paused()
def container_tree(graph: Graph) -> ContainerTree:
    """Find the containers of a graph in O(n log n) time.

    The only containers of a small graph are its regions.
    """
    bound = bound_nodes(graph)
    builder = _Builder(bound, is_small=len(graph.nodes) <= SMALL_GRAPH)
    children = builder.contents(builder.units(None, 0, len(bound.nodes)))
    root = Container("", RegionKind.FUNCTION, graph.function, 0, len(bound.nodes), children)
    return ContainerTree(bound, root)


Unit = Container | int


class _Builder:
    def __init__(self, bound: BoundNodes, *, is_small: bool) -> None:
        self.bound, self.is_small = bound, is_small
        self._ids: set[str] = set(bound.graph.index)
        self._paths: dict[int, tuple[int, ...]] = {}
        self._codes: dict[str, int] = {}

    def units(self, region: int | None, start: int, stop: int) -> list[Unit]:
        """Return the steps of a region, with the steps of an inner region as one container."""
        depth = len(self._path(region))

        def inner_region(step: int) -> tuple[int, ...]:
            return self._path(self.bound.nodes[step].region)[depth : depth + 1]

        units: list[Unit] = []
        for inner, group in groupby(range(start, stop), key=inner_region):
            steps = list(group)
            if inner:
                units.append(self._region(inner[0], steps[0], steps[-1] + 1))
            else:
                units += steps
        return units

    def contents(self, units: Sequence[Unit]) -> tuple[Container | int, ...]:
        """Put repeats into containers, and divide what is still too long."""
        return self._divided(self._with_repeats(units))

    def _with_repeats(self, units: Sequence[Unit]) -> Sequence[Unit]:
        if self.is_small or len(units) < 2:
            return units
        codes = [self._code(unit) for unit in units]
        bounds = [_start(unit) for unit in units]
        bounds.append(_stop(units[-1]))
        children: list[Unit] = []
        index = 0
        for start, period, copies in find_repeats(self.bound, codes, bounds, 0, len(units)):
            children += units[index:start]
            inner = self.contents(units[start : start + period])
            index = start + period * copies
            first, stop = bounds[start], bounds[index]
            found = self._id(f"repeat{copies}", first)
            children.append(
                Container(found, RegionKind.REPEAT, f"×{copies}", first, stop, inner, copies)
            )
        return [*children, *units[index:]]

    def _divided(self, units: Sequence[Unit]) -> tuple[Unit, ...]:
        """Divide a long sequence into parts, at positions that few values cross."""
        while len(units) > MAX_CHILDREN:
            parts: list[Unit] = []
            index = 0
            size = min(max(PART_CHILDREN, -(-len(units) // MAX_CHILDREN)), MAX_CHILDREN // 2)
            while index < len(units):
                end = len(units)
                if index + size + size // 2 < len(units):
                    near = range(index + size // 2, index + size + size // 2)
                    middle = index + size
                    end = min(
                        near,
                        key=lambda at: (self.bound.live[_start(units[at])], abs(at - middle)),
                    )
                parts.append(self._part(tuple(units[index:end])))
                index = end
            units = parts
        return tuple(units)

    def _part(self, units: tuple[Unit, ...]) -> Container:
        start, stop = _start(units[0]), _stop(units[-1])
        name = f"steps {start + 1} – {stop}"
        return Container(
            self._id(f"part{len(units)}", start), RegionKind.PART, name, start, stop, units
        )

    def _region(self, index: int, start: int, stop: int) -> Container:
        region = self.bound.graph.regions[index]
        units = self.units(index, start, stop)
        children = self.contents(units)
        name = "dataflow" if region.kind is RegionKind.DATAFLOW_BLOCK else region.name
        found = self._id(region.name or region.kind.value, start)
        branch = region.name if region.kind is RegionKind.BRANCH else ""
        self._codes[found] = hash((region.kind.value, branch, *map(self._code, units)))
        return Container(found, region.kind, name, start, stop, children, 1, region.owner, index)

    def _path(self, region: int | None) -> tuple[int, ...]:
        """Return the regions around a region and itself, without binding blocks."""
        if region is None:
            return ()
        if region not in self._paths:
            found = self.bound.graph.regions[region]
            around = self._path(found.parent)
            is_container = found.kind is not RegionKind.BINDING_BLOCK
            self._paths[region] = (*around, region) if is_container else around
        return self._paths[region]

    def _code(self, unit: Unit) -> int:
        return self.bound.codes[unit] if isinstance(unit, int) else self._codes[unit.id]

    def _id(self, prefix: str, start: int) -> str:
        found = f"{prefix}:{self.bound.nodes[start].id}"
        while found in self._ids:
            found += "'"
        self._ids.add(found)
        return found


def _start(unit: Unit) -> int:
    return unit if isinstance(unit, int) else unit.start


def _stop(unit: Unit) -> int:
    return unit + 1 if isinstance(unit, int) else unit.stop

"""What can be opened and closed in a graph: its regions, repeats, and parts of what is long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from irviz.model.graph import Graph, NodeId, Region, RegionKind
from irviz.model.pause import no_collection
from irviz.model.repeat import Steps, repeats, steps

MOST_CHILDREN = 120
"""How many children a container has at most; what would have more is divided into parts."""
_PART = 40
_FEW = 60


@dataclass(frozen=True, slots=True, eq=False)
class Container:
    """A stretch of the steps start to stop that can be shown as one.

    `children` are containers and steps; those of a repeat are its first copy's.
    """

    id: str
    kind: RegionKind
    name: str
    start: int
    stop: int
    children: tuple[Container | int, ...]
    copies: int = 1
    owner: NodeId | None = None

    @property
    def held(self) -> int:
        """How many steps one copy has."""
        return (self.stop - self.start) // self.copies


@dataclass(frozen=True, eq=False)
class Tree:
    """The containers of a graph; the root holds all of its steps."""

    steps: Steps
    root: Container

    def containers(self) -> Iterator[Container]:
        """Yield every container below the root, each before what it holds."""
        waiting = [self.root]
        while waiting:
            inner = [child for child in waiting.pop().children if isinstance(child, Container)]
            yield from inner
            waiting += inner


@no_collection()
def tree(graph: Graph) -> Tree:
    """Find what can be opened and closed in a graph, in n log n steps.

    A small graph is left as it is written: only its regions are containers.
    """
    of = steps(graph)
    builder = _Builder(of, is_small=len(graph.nodes) <= _FEW)
    children = builder.divided(builder.children(builder.units(None, 0, len(of.nodes))))
    root = Container("", RegionKind.FUNCTION, graph.function, 0, len(of.nodes), tuple(children))
    return Tree(of, root)


Unit = Container | int


class _Builder:
    def __init__(self, of: Steps, *, is_small: bool) -> None:
        self.of, self.is_small = of, is_small
        self._ids: set[str] = set(of.graph.index)
        self._paths: dict[int, tuple[int, ...]] = {}
        self._codes: dict[str, int] = {}

    def units(self, region: int | None, start: int, stop: int) -> list[Unit]:
        """Return the steps of a region, those of a region in it as one container."""
        depth = len(self._path(region))
        units: list[Unit] = []
        index = start
        while index < stop:
            path = self._path(self.of.nodes[index].region)
            if len(path) == depth:
                units.append(index)
                index += 1
                continue
            inner = path[depth]
            end = index + 1
            while (
                end < stop
                and self._path(self.of.nodes[end].region)[: depth + 1] == path[: depth + 1]
            ):
                end += 1
            units.append(self._region(inner, index, end))
            index = end
        return units

    def children(self, units: Sequence[Unit]) -> list[Unit]:
        """Put the repeats among these units into containers."""
        if self.is_small or len(units) < 2:
            return list(units)
        codes = [self._code(unit) for unit in units]
        bounds = [_start(unit) for unit in units]
        bounds.append(_stop(units[-1]))
        children: list[Unit] = []
        index = 0
        for start, period, copies in repeats(self.of, codes, bounds, 0, len(units)):
            children += units[index:start]
            inner = self.divided(self.children(units[start : start + period]))
            index = start + period * copies
            children.append(
                Container(
                    self._id(f"repeat{copies}", bounds[start]),
                    RegionKind.REPEAT,
                    f"×{copies}",
                    bounds[start],
                    bounds[index],
                    tuple(inner),
                    copies,
                )
            )
        return [*children, *units[index:]]

    def divided(self, units: Sequence[Unit]) -> list[Unit]:
        """Put what is too long to be shown at once into parts, cut where few values go over."""
        while len(units) > MOST_CHILDREN:
            parts: list[Unit] = []
            index = 0
            size = min(max(_PART, -(-len(units) // MOST_CHILDREN)), MOST_CHILDREN // 2)
            while index < len(units):
                end = len(units)
                if index + size + size // 2 < len(units):
                    near = range(index + size // 2, index + size + size // 2)
                    middle = index + size
                    end = min(
                        near,
                        key=lambda at: (self.of.live[_start(units[at])], abs(at - middle)),
                    )
                held = tuple(units[index:end])
                parts.append(self._part(held))
                index = end
            units = parts
        return list(units)

    def _part(self, held: tuple[Unit, ...]) -> Container:
        start, stop = _start(held[0]), _stop(held[-1])
        name = f"steps {start + 1} – {stop}"
        return Container(
            self._id(f"part{len(held)}", start), RegionKind.PART, name, start, stop, held
        )

    def _region(self, index: int, start: int, stop: int) -> Container | int:
        region: Region = self.of.graph.regions[index]
        units = self.units(index, start, stop)
        children = self.divided(self.children(units))
        name = region.name
        if region.kind is RegionKind.DATAFLOW_BLOCK:
            name = "dataflow"
        found = self._id(region.kind.value if not region.name else region.name, start)
        which = region.name if region.kind is RegionKind.BRANCH else ""
        self._codes[found] = hash((region.kind.value, which, *map(self._code, units)))
        return Container(
            found,
            region.kind,
            name,
            start,
            stop,
            tuple(children),
            owner=region.owner,
        )

    def _path(self, region: int | None) -> tuple[int, ...]:
        """Return the regions around a region and itself, without blocks that have no frame."""
        if region is None:
            return ()
        if region not in self._paths:
            found = self.of.graph.regions[region]
            around = self._path(found.parent)
            has_frame = found.kind is not RegionKind.BINDING_BLOCK
            self._paths[region] = (*around, region) if has_frame else around
        return self._paths[region]

    def _code(self, unit: Unit) -> int:
        if isinstance(unit, int):
            return self.of.codes[unit]
        return self._codes[unit.id]

    def _id(self, what: str, start: int) -> str:
        found = f"{what}:{self.of.nodes[start].id}"
        while found in self._ids:
            found += "'"
        self._ids.add(found)
        return found


def _start(unit: Unit) -> int:
    return unit if isinstance(unit, int) else unit.start


def _stop(unit: Unit) -> int:
    return unit + 1 if isinstance(unit, int) else unit.stop

"""The containers of a graph, which can be expanded and collapsed.

They are regions, the model's layers, repeats, and parts of long sequences.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from irviz import limits
from irviz.gc_pause import gc_paused
from irviz.model.folding.repeats import BoundNodes, bound_nodes, find_repeats
from irviz.model.graph.flops import shape_in
from irviz.model.graph.graph import Graph, Layer, Node, NodeId, NodeKind, RegionKind
from irviz.model.graph.layers import common_layer, layer_name
from irviz.model.graph.memory_accesses import ALLOCATIONS, BUFFERS, CHECKS, KILLS, computing


@dataclass(frozen=True, slots=True, eq=False)
class Container:
    """The steps in range(start, stop), which can be drawn as one node.

    `children` are containers and steps; the children of a repeat are those of its first copy.
    `owner` is the node whose value a region makes, `region` the index of that region, `layer` the
    full name of a layer, "" for no layer. `remarks` say how the copies of a repeat differ.
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
    layer: str = ""
    remarks: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The name with the remarks."""
        return " · ".join((self.name, *self.remarks))

    @property
    def held(self) -> int:
        """The number of steps in a copy."""
        return (self.stop - self.start) // self.copies

    @property
    def inside(self) -> list[Container]:
        """The children that are containers."""
        return [child for child in self.children if isinstance(child, Container)]

    @property
    def parts(self) -> list[Container]:
        """The children that may be expanded automatically: not calls with their buffers."""
        return [one for one in self.inside if one.kind is not RegionKind.CALL]


@dataclass(frozen=True, eq=False)
class ContainerTree:
    """The containers of a graph; the root holds all of its steps.

    Attributes:
        is_lowered: Whether calls write into buffers that the function allocates.
    """

    bound: BoundNodes
    root: Container
    has_layers: bool = False
    is_lowered: bool = False

    @property
    def graph(self) -> Graph:
        """The whole graph."""
        return self.bound.graph


@gc_paused()
def container_tree(graph: Graph, *, folds_calls: bool = True) -> ContainerTree:
    """Find the containers of a graph in O(n log n) time.

    A small graph has no containers but its regions, unless it has many parameters, which would be
    drawn side by side. A layer is a container if its steps are consecutive; repeats start and end
    where the layers in them do. A call is folded with its buffers, except in a comparison with
    a stage that has no buffers.
    """
    bound = bound_nodes(graph)
    inputs = len(graph.nodes) - len(bound.nodes)
    is_small = len(graph.nodes) <= limits.SMALL_GRAPH and inputs <= limits.SMALL_INPUTS
    builder = _Builder(bound, is_small=is_small, folds_calls=folds_calls)
    children = builder.contents(builder.units(None, 0, len(bound.nodes)))
    root = Container("", RegionKind.FUNCTION, graph.function, 0, len(bound.nodes), children)
    return ContainerTree(bound, root, bool(builder.layers), builder.is_lowered)


def writes_into_buffers(graph: Graph) -> bool:
    """Tell whether calls write into buffers that the function allocates."""
    return any(node.callee in BUFFERS for node in graph.nodes)


Unit = Container | int

_LISTS = ("", "Sequential", "ModuleList")
"""Classes of layers that say less than the class of a single layer inside."""
_MAX_NAMES = 3
_MAX_BESIDE = 2
"""The most steps between two steps of a chain, such as those that prepare a weight."""
_MIN_INPUTS = 2
"""A step between layers with this many inputs, such as a fused call, is a container with them."""


class _Builder:
    def __init__(self, bound: BoundNodes, *, is_small: bool, folds_calls: bool) -> None:
        self.bound, self.is_small, self.folds_calls = bound, is_small, folds_calls
        self._ids: set[str] = set(bound.graph.index)
        self._codes: dict[str, tuple[int, int]] = {}
        self.layers = [] if is_small else _step_layers(bound)
        self.is_lowered = writes_into_buffers(bound.graph)
        self._outer = len(common_layer(self.layers))

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
            elif self.is_lowered and self.folds_calls:
                units += map(self._call, buffer_calls(self.bound, steps))
            else:
                units += steps
        return units

    def _call(self, steps: Sequence[int]) -> Unit:
        """Return the container of a call with its buffers, or a single step."""
        if len(steps) == 1:
            return steps[0]
        start, stop = steps[0], steps[-1] + 1
        calls = computing(self.bound.nodes[start:stop])
        found = self._id("call", start)
        self._set_codes(found, "call", steps)
        if self.layers:
            layer = self.layers[self.bound.at[calls[0].id]]
            self.layers[start:stop] = [layer] * len(steps)
        name = steps_title(self.bound.nodes[start:stop])
        return Container(found, RegionKind.CALL, name, start, stop, tuple(steps))

    def contents(self, units: Sequence[Unit]) -> tuple[Container | int, ...]:
        """Put layers and repeats into containers, and fold sequences that are still too long."""
        return self._folded(self._with_layers(units, self._outer))

    def _with_layers(self, units: Sequence[Unit], depth: int) -> Sequence[Unit]:
        """Put consecutive steps of a layer into a container; `depth` is that of the layers around.

        A layer that holds all steps has no container of its own: it is shown by the one around it.
        """
        if not self.layers or len(units) < 2:
            return units
        layers = [common_layer(self.layers[_start(unit) : _stop(unit)]) for unit in units]
        depth = max(depth, len(common_layer(layers)))
        found: list[Unit] = []
        pairs = zip(layers, units, strict=True)
        for inner, group in groupby(pairs, key=lambda pair: pair[0][depth : depth + 1]):
            run = [unit for _, unit in group]
            if inner:
                found.append(self._layer(run, depth + 1))
            else:
                found += run
        return found

    def _layer(self, units: Sequence[Unit], depth: int) -> Unit:
        """Return the container of a layer, or its only step if that has no inputs of its own."""
        start, stop = _start(units[0]), _stop(units[-1])
        if isinstance(units[0], int) and stop - start == 1 and not self._count_inputs(start):
            return units[0]
        layer = common_layer(self.layers[start:stop])
        outer = next(
            (at for at in range(depth, len(layer)) if layer[at - 1].kind not in _LISTS), -1
        )
        name = layer_name(layer[depth - 1 :] if outer < 0 else layer[depth - 1 : outer])
        kind = layer[outer if outer < 0 else outer - 1].kind
        for part in reversed(layer[: depth - 1] if name[0].isdecimal() else ()):
            name = f"{part.name}.{name}"
            if not part.name[0].isdecimal():
                break
        full = layer_name(layer)
        inner = self._with_layers(units, depth)
        found = self._id(f"layer:{full}")
        self._set_codes(found, "layer", inner)
        title = f"{name} · {kind}" if kind else name
        children = self._folded(inner)
        if len(children) == 1 and isinstance(children[0], Container):
            if children[0].layer:
                self._codes[children[0].id] = self._codes[found]
                return children[0]
            if children[0].kind is RegionKind.CALL:
                children = children[0].children
        return Container(found, RegionKind.LAYER, title, start, stop, children, layer=full)

    def _count_inputs(self, step: int) -> int:
        return sum(operand.step < 0 for operand in self.bound.operands[step])

    def _folded(self, units: Sequence[Unit]) -> tuple[Unit, ...]:
        """Put repeats into containers, and long sequences, and steps between layers."""
        units = self._with_stages(units)
        runs = [list(run) for _, run in groupby(units, key=_is_call)]
        if self.layers and len(runs) > 1:
            least = limits.MIN_LOOSE if count_ranks(self.bound, units) <= limits.FIRST_RANKS else 2
            units = [unit for run in runs for unit in self._between(run, least)]
        return self._divided(units)

    def _with_stages(self, units: Sequence[Unit]) -> Sequence[Unit]:
        """Put repeats into containers; if there are many layers, similar ones too, as stages.

        A stage of a model is a run of layers of one class whose results have the same type.
        """
        repeats = self._with_repeats(units)
        layers = [unit for unit in repeats if not isinstance(unit, int) and unit.layer]
        if len(layers) < limits.MIN_STAGED:
            return repeats
        found: list[Unit] = []
        for _, run in groupby(repeats, key=self._class_and_result):
            stage = list(run)
            found += [self._stage(units, stage)] if len(stage) > 1 else stage
        return found

    def _class_and_result(self, unit: Unit) -> tuple[str, str]:
        if isinstance(unit, int) or not unit.layer:
            return str(_start(unit)), ""  # a stage of its own
        steps = reversed(range(unit.start, unit.stop))
        result = next((one for one in steps if self.bound.last[one] >= unit.stop), unit.start)
        return unit.name.partition(" · ")[2], self.bound.nodes[result].type_label

    def _stage(self, units: Sequence[Unit], children: Sequence[Unit]) -> Container:
        start, stop = _start(children[0]), _stop(children[-1])
        inside = [unit for unit in units if start <= _start(unit) < stop]
        layers = [unit for unit in inside if isinstance(unit, Container)]
        title, full = layer_titles(layers)
        found = self._id(f"layer:{full}")
        self._set_codes(found, "stage", inside)
        return Container(found, RegionKind.LAYER, title, start, stop, tuple(children), layer=full)

    def _between(self, units: Sequence[Unit], least: int) -> Sequence[Unit]:
        """Put long runs of steps into containers, and steps with several inputs."""
        if not _is_call(units[0]):
            return units
        if len(units) > 1 and _stop(units[-1]) - _start(units[0]) < least:
            return [one for unit in units for one in self._between([unit], least)]
        if len(units) == 1 and (
            not isinstance(units[0], int) or self._count_inputs(units[0]) < _MIN_INPUTS
        ):
            return units
        return [self._steps("between", units)]

    def _steps(self, prefix: str, units: Sequence[Unit]) -> Container:
        """Return a container of consecutive steps, named by what they compute."""
        start, stop = _start(units[0]), _stop(units[-1])
        found = self._id(prefix, start)
        name = steps_title(self.bound.nodes[start:stop])
        return Container(found, RegionKind.PART, name, start, stop, self._divided(units))

    def _with_chains(self, units: tuple[Unit, ...]) -> tuple[Unit, ...]:
        """Put chains into containers: steps whose values are used by the next one or two only.

        Steps that fit on a screen as one column are left as they are.
        """
        if not self.layers or count_ranks(self.bound, units) <= limits.FIRST_RANKS:
            return units
        found: list[Unit] = []
        index = 0
        while index < len(units):
            end, reach = index, 0
            for at in range(index, min(len(units), index + len(units) - 1)):
                if at - end > _MAX_BESIDE:
                    break
                if reach < _stop(units[at]):
                    end = at
                steps = range(_start(units[at]), _stop(units[at]))
                reach = max(reach, *(self.bound.last[step] for step in steps))
            chain = units[index : end + 1]
            found += [self._steps("chain", chain)] if len(chain) >= limits.MIN_LOOSE else chain[:1]
            index += len(chain) if len(chain) >= limits.MIN_LOOSE else 1
        return tuple(found)

    def _with_repeats(self, units: Sequence[Unit]) -> Sequence[Unit]:
        if self.is_small or len(units) < 2:
            return units
        codes = list(zip(*map(self._code, units), strict=True))
        bounds = [_start(unit) for unit in units]
        bounds.append(_stop(units[-1]))
        children: list[Unit] = []
        index = 0
        found = find_repeats(self.bound, codes[0], bounds)
        if not found and self.layers:
            found = find_repeats(self.bound, codes[1], bounds)
        for start, period, copies in found:
            children += units[index:start]
            index = start + period * copies
            children.append(self._repeat(units[start:index], period, copies))
        return [*children, *units[index:]]

    def _repeat(self, units: Sequence[Unit], period: int, copies: int) -> Container:
        """Return the container of a repeat; a copy that is one layer shows the layer's contents."""
        start, stop = _start(units[0]), _stop(units[-1])
        named = [unit for unit in units if isinstance(unit, Container) and unit.layer]
        codes = [self._code(unit)[0] for unit in units]
        remarks = repeat_remarks(
            functions_differ=codes[period:] != codes[:-period],
            storage_rotates=self.bound.has_rotation(start, (stop - start) // copies, copies),
        )
        name, full = layer_titles(named, copies)
        kind = RegionKind.REPEAT
        if period == 1 and len(named) == copies and all(one.copies == 1 for one in named):
            found = self._id(f"repeat{copies}:{named[0].layer}")
            inner = named[0].children
            return Container(
                found, kind, name, start, stop, inner, copies, layer=full, remarks=remarks
            )
        found = self._id(f"repeat{copies}", start)
        if len(named) != copies:
            name = f"{named[0].name} … {named[-1].name} ×{copies}" if named else f"×{copies}"
        inner = self._folded(units[:period])
        if not named:
            inner = self._with_chains(inner)
        return Container(found, kind, name, start, stop, inner, copies, remarks=remarks)

    def _divided(self, units: Sequence[Unit]) -> tuple[Unit, ...]:
        """Divide a long sequence into parts where few values cross."""
        most = limits.MAX_CHILDREN
        least = max(limits.PART_CHILDREN, -(-len(units) // most))
        if self.layers and self.is_lowered:  # a layer that runs as a long chain of calls
            most = 2 * limits.FIRST_RANKS
            least = max(limits.MIN_LOOSE, -(-len(units) // limits.MIN_NODES))
        size = min(least, limits.MAX_CHILDREN // 2)
        while len(units) > most:
            parts: list[Unit] = []
            index = 0
            while index < len(units):
                end = len(units)
                if index + size + size // 2 < len(units):
                    near = range(index + size // 2, index + size + size // 2)
                    middle = index + size
                    end = min(
                        near, key=lambda at: (self.bound.live[_start(units[at])], abs(at - middle))
                    )
                part = tuple(units[index:end])
                first, stop = _start(part[0]), _stop(part[-1])
                found, name = self._id(f"part{len(part)}", first), f"steps {first + 1} – {stop}"
                parts.append(Container(found, RegionKind.PART, name, first, stop, part))
                index = end
            units = parts
        return tuple(units)

    def _region(self, index: int, start: int, stop: int) -> Container:
        region = self.bound.graph.regions[index]
        units = self.units(index, start, stop)
        children = self.contents(units)
        name = "dataflow" if region.kind is RegionKind.DATAFLOW_BLOCK else region.name
        found = self._id(region.name or region.kind.value, start)
        branch = region.name if region.kind is RegionKind.BRANCH else ""
        self._set_codes(found, f"{region.kind.value} {branch}", units)
        return Container(found, region.kind, name, start, stop, children, 1, region.owner, index)

    def _path(self, region: int | None) -> tuple[int, ...]:
        """Return a region and the regions around it, without binding blocks."""
        regions = self.bound.graph.regions
        around = self.bound.graph.regions_around(region)
        found = [one for one in around if regions[one].kind is not RegionKind.BINDING_BLOCK]
        return tuple(reversed(found))

    def _code(self, unit: Unit) -> tuple[int, int]:
        """Return a unit's code, and one that is also equal for similar calls."""
        if isinstance(unit, int):
            return self.bound.codes[unit], self.bound.similar[unit]
        return self._codes[unit.id]

    def _set_codes(self, container: str, kind: str, units: Sequence[Unit]) -> None:
        codes = [self._code(unit) for unit in units]
        exact, similar = (hash((kind, *column)) for column in zip(*codes, strict=True))
        self._codes[container] = exact, similar

    def _id(self, prefix: str, start: int | None = None) -> str:
        found = prefix if start is None else f"{prefix}:{self.bound.nodes[start].id}"
        while found in self._ids:
            found += "'"
        self._ids.add(found)
        return found


def count_ranks(bound: BoundNodes, units: Sequence[Unit]) -> int:
    """Return the length of the longest path through consecutive units."""
    starts = [_start(unit) for unit in units]
    ranks = [1] * len(starts)
    for index, unit in enumerate(units):
        for step in range(_start(unit), _stop(unit)):
            for operand in bound.operands[step]:
                if starts[0] <= operand.step < starts[index]:
                    source = bisect_right(starts, operand.step) - 1
                    ranks[index] = max(ranks[index], ranks[source] + 1)
    return max(ranks, default=0)


def _is_call(unit: Unit) -> bool:
    """Return whether a unit is a step, or a call with its buffers in one stage or another."""
    return isinstance(unit, int) or unit.kind in (RegionKind.CALL, RegionKind.FUSED)


def _start(unit: Unit) -> int:
    return unit if isinstance(unit, int) else unit.start


def _stop(unit: Unit) -> int:
    return unit + 1 if isinstance(unit, int) else unit.stop


def _step_layers(bound: BoundNodes) -> list[Layer]:
    """Return the layer of each step; none if no step has one."""
    if not any(node.layers for node in bound.nodes):
        return []
    layers = [common_layer(node.layers) for node in bound.nodes]
    for output in bound.graph.outputs:
        step = bound.at.get(output, -1)
        if bound.renamed(step) is not None and bound.nodes[step].kind is NodeKind.VALUE:
            layers[step] = common_layer(layers)
    return layers


# --- buffer calls ------------------------------------------------------------------------------
#
# Group calls in a lowered function with the steps that allocate, name and free their buffers.


_NAMES = (NodeKind.VALUE, NodeKind.TUPLE)


def buffer_calls(bound: BoundNodes, steps: Sequence[int]) -> list[Sequence[int]]:
    """Divide consecutive steps into calls with their buffers, checks of arguments, and the rest.

    A call takes the allocations before it, and the aliases and frees of these after it. Any other
    step is a group of its own, as is an allocation without a call.
    """
    found: list[Sequence[int]] = []
    run: list[int] = []
    call = -1

    def close() -> None:
        nonlocal run, call
        found.extend([run] if call >= 0 else [[one] for one in run])
        run, call = [], -1

    for step in steps:
        callee = bound.nodes[step].callee
        if callee in CHECKS:
            if call < 0 or bound.nodes[call].callee not in CHECKS:
                close()
            run, call = [*run, step], step
            continue
        if callee in ALLOCATIONS:
            if call >= 0:
                close()
        elif not (callee in KILLS and run) and not _names(bound, step, run):
            if call >= 0 or not _uses(bound, step, run):
                close()
            call = step
        run.append(step)
    close()
    return found


def _names(bound: BoundNodes, step: int, run: Sequence[int]) -> bool:
    """Return whether a step only gives another name to a value of these steps."""
    operands = bound.operands[step]
    return (
        bound.nodes[step].kind in _NAMES and bool(operands) and all(o.step in run for o in operands)
    )


def _uses(bound: BoundNodes, step: int, run: Sequence[int]) -> bool:
    """Return whether a step uses the last of the steps of a run that allocate."""
    made = [one for one in run if bound.nodes[one].callee in ALLOCATIONS]
    return not made or any(operand.step == made[-1] for operand in bound.operands[step])


# --- Titles of consecutive layers: names, number of copies, and class ----------------------------


_NUMBERED = re.compile(r"(.*?)(\d+)")
_MAX_TITLE_NAMES = 4


def layer_titles(layers: Sequence[Container], copies: int = 1) -> tuple[str, str]:
    """Return the title and the full name of consecutive layers, which may be equal copies."""
    kinds = {one.name.partition(" · ")[2] for one in layers}
    kind = kinds.pop() if len(kinds) == 1 else ""
    short = _span([one.name.partition(" · ")[0] for one in layers])
    title = f"{short} ×{copies}" if copies > 1 else short
    return (f"{title} · {kind}" if kind else title), _span([one.layer for one in layers])


def _span(names: Sequence[str]) -> str:
    """Return names as one: `layers.0–47`, or `query | key | value`."""
    found = [_NUMBERED.fullmatch(name) for name in names]
    numbers = [int(one[2]) for one in found if one is not None]
    stems = {one[1] for one in found if one is not None}
    if len(numbers) == len(names) and len(stems) == 1:
        first = numbers[0]
        if numbers == list(range(first, first + len(numbers))):
            return f"{stems.pop()}{first}–{numbers[-1]}"
    if len(set(names)) == 1:
        return names[0]
    if len(names) > _MAX_TITLE_NAMES:
        names = (*names[: _MAX_TITLE_NAMES - 2], "…", names[-1])
    return " | ".join(names)


_UNITS = ("", " k", " M", " G", " T")

UNKNOWN_FLOPS = "not known"
STORAGE_ROTATES = "storage rotates"


def repeat_remarks(*, functions_differ: bool, storage_rotates: bool) -> tuple[str, ...]:
    """Return what the title of a repeat says of its copies.

    They may call functions that differ, and use different storage from outside.
    """
    found = ("functions differ",) if functions_differ else ()
    return (*found, STORAGE_ROTATES) if storage_rotates else found


Facts = tuple[tuple[str, str], ...]
"""The attributes of a group."""


def group_facts(nodes: Sequence[Node], layer: str = "", copies: int = 1) -> Facts:
    """Return the attributes of a group, over all copies unless they say otherwise.

    The nodes are those of all copies, without parameters and constants. `layer` is the full name of
    the layer that it shows, "" for none.
    """
    names = Counter(map(operation_name, computing(nodes)))
    counts = [(name, count // copies) for name, count in names.most_common(_MAX_NAMES)]
    most = [f"{name} ×{count}" if count > 1 else name for name, count in counts]
    if len(set(map(operation_name, nodes))) > len(counts):
        most.append("…")
    held = ("each holds" if copies > 1 else "holds", ", ".join(most))
    flops = flops_facts(nodes)
    if not layer:
        return *flops, held
    return ("layer", layer), *flops, ("operators", f"{len(nodes):,}"), held


def steps_title(nodes: Sequence[Node]) -> str:
    """Return the title of consecutive steps: what they compute, or how many they are."""
    names = dict.fromkeys(map(operation_name, computing(nodes)))
    return ", ".join(names) if len(names) <= _MAX_NAMES else f"{len(nodes)} operators"


def operation_name(node: Node) -> str:
    """Return the name of a node's callee, or else its kind."""
    return node.callee.removeprefix("relax.").removeprefix("vm.builtin.") or node.kind.value


def flops_facts(nodes: Sequence[Node]) -> Facts:
    """Return the FLOPs of nodes, at least those that are known; nothing if there are none."""
    known = [one.flops for one in nodes if one.flops is not None]
    count = sum(known)
    if len(known) == len(nodes):
        return (("FLOPs", short_count(count)),) if count else ()
    least = f"≥ {short_count(count)}" if count else UNKNOWN_FLOPS
    return (("FLOPs", f"{least}: sizes are symbolic, or code is not of this module"),)


_STATISTIC = re.compile(r"[._](running|moving)_(mean|var)$")


def with_parameters(group: Node, weights: int) -> Node:
    """Return a group with the number of elements in its parameters, if it has any."""
    if not weights:
        return group
    return group._replace(attributes=(("parameters", short_count(weights)), *group.attributes))


def count_elements(leaf: Node) -> int:
    """Return the number of elements in a parameter, 0 if its shape is unknown.

    The running statistics of a normalisation are not counted, as in the papers on models.
    """
    shape = None if _STATISTIC.search(leaf.name) else shape_in(leaf.type_label)
    return 0 if shape is None else math.prod(shape)


def short_count(count: float) -> str:
    """Format a number with three digits: `11.7 M`."""
    unit = 0
    while count >= 999.5 and unit < len(_UNITS) - 1:
        count, unit = count / 1000, unit + 1
    return f"{count:.{0 if not unit or count >= 99.95 else 1}f}{_UNITS[unit]}"

"""The diff of two stages: what became of each function, also of a lost one, and of each node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial, reduce
from itertools import pairwise, zip_longest
from typing import NamedTuple

import tvm_ffi
from tvm import ir, relax, tirx

from irviz.errors import NotFoundError
from irviz.gc_pause import gc_paused
from irviz.ir.iteration_domains import compare_domains
from irviz.ir.module_functions import drawable_functions, function_named, relax_functions
from irviz.ir.parameter_values import is_equal_tensor
from irviz.ir.tvmscript import function_texts, tvmscript
from irviz.ir.type_and_expression_labels import attributes, is_same_type, type_parts, type_parts_of
from irviz.model.diff.canonical_names import Names, Renaming, names_of_sizes
from irviz.model.diff.compare_functions import (
    FunctionFingerprint,
    NodeComparison,
    attribute_differences,
    block_differences,
    block_partners,
    diff_nodes,
    function_differences,
    match_functions,
    moved_nodes,
    moved_params,
    ranks,
    result_differences,
    with_changed_callees,
    with_own_differences,
)
from irviz.model.diff.compare_loop_nests import diff_loop_nests
from irviz.model.diff.corresponding_nodes import (
    DiffSide,
    NodeLinks,
    Step,
    block_links,
    compose_steps,
    group_by_place,
    link_nodes,
    node_groups,
    unchanged_links,
)
from irviz.model.diff.diff_result import (
    Aspect,
    ChangeKind,
    Difference,
    FunctionDiff,
    FunctionText,
    ModuleDiff,
    ModuleText,
    NodeDiff,
)
from irviz.model.diff.union_graph import UnionGraph, union_graph
from irviz.model.graph.graph import Graph, Node, NodeId, NodeKind, Resolution
from irviz.model.graph.memory_accesses import MemoryEffects
from irviz.model.matching.alignment import Alignment, MatchedBy
from irviz.session.stage_cache import (
    Reading,
    graph_of,
    kept_by_stage,
    known_pairs,
    nest_of,
    reading_of,
    script_of,
)
from irviz.transforms.stage import Stage, StageTree
from irviz.units import first_names


def diff_stages(tree: StageTree, before: str, after: str, function: str = "") -> ModuleDiff:
    """Return the differences between two stages of a tree, or those of one `function`.

    Stages several steps apart are compared through those in between. Raises NotFoundError for an
    unknown stage, and if neither stage has the function.
    """
    stages = tree.path_between(before, after)
    before_title, after_title = (f"{one.id} {one.label}" for one in (stages[0], stages[-1]))
    return _diff_path(stages, (before_title, after_title), function)


def diff_modules(
    before: Stage, after: Stage, titles: tuple[str, str] = ("", ""), function: str = ""
) -> ModuleDiff:
    """Return the differences between the modules of two stages, compared directly."""
    return _diff_path((before, after), titles, function)


def union_along(tree: StageTree, stages: Sequence[str], function: str) -> UnionGraph:
    """Return the union graph of a function, named as in the first stage, in several stages.

    Raises NotFoundError if there is no such stage, or one of them has no such Relax function.
    """
    graphs: list[Graph] = []
    steps: list[Sequence[NodeDiff]] = []
    for before, after in pairwise(stages if len(stages) > 1 else [*stages, *stages]):
        path = tree.path_between(before, after)
        found = [one for one in _diff_path(path, ("", ""), function).functions if one.nodes]
        one = next((one for one in found if one.before == function and one.after), None)
        if one is None or one.graphs[0] is None or one.graphs[1] is None:
            raise NotFoundError(
                f"stage {before} or {after} has no Relax function {function!r}: "
                "give stages that have it"
            )
        graphs = [*(graphs or [one.graphs[0]]), one.graphs[1]]
        steps.append(one.nodes)
        function = one.after
    return union_graph(graphs, steps) if len(stages) > 1 else union_graph(graphs[:1], [])


@gc_paused()
def _diff_path(stages: Sequence[Stage], titles: tuple[str, str], function: str) -> ModuleDiff:
    first, last = stages[0], stages[-1]
    # a name resolves to something else once that is registered; entries are matched without a look
    unread = entries(first.module) & entries(last.module) - {function} if function else set()
    read = (
        reading_of(one, name)
        for one in (first, last)
        for name in relax_functions(one.module).keys() - unread
    )
    # a stage with the module of the one before adds nothing to the path
    changed = [two for one, two in pairwise(stages) if not two.module.same_as(one.module)]
    path = (first, *(one for one in changed if one is not last), last)
    return ModuleDiff(
        *titles,
        _function_diffs(last, path, function, frozenset(read)),
        tuple(_module_differences(first.module, last.module)),
        _transforms(stages),
        (ModuleText(partial(_function_texts, first)), ModuleText(partial(_function_texts, last))),
    )


@kept_by_stage
def _function_diffs(
    last: Stage, stages: Sequence[Stage], function: str, _: frozenset[Reading]
) -> tuple[FunctionDiff, ...]:
    """Return the diff of each function on the way to the last stage, or those of one `function`."""
    first = stages[0]
    steps = (_matched_functions(*step) for step in pairwise(stages))
    pairs = reduce(lambda found, step: found.compose(step, _both), steps)
    by_name = frozenset(entries(first.module) & entries(last.module))
    fingerprints = _fingerprints(first, by_name), _fingerprints(last, by_name)
    if function and function not in fingerprints[0] and function not in fingerprints[1]:
        names = [*map(repr, {**fingerprints[0], **fingerprints[1]})]
        known = first_names(names, 3) or "none"
        raise NotFoundError(f"neither module has a function {function!r}; they have {known}")
    wanted = _with_callees(stages, pairs, function) if function else list(pairs.pairs)
    compared = _compare_functions(stages, pairs, wanted, fingerprints)
    removed = [one for one in fingerprints[0] if one not in pairs.there and function in ("", one)]
    added = [one for one in fingerprints[1] if one not in pairs.back and function in ("", one)]
    found = [
        *compared,
        *(_one_sided(first, name, is_added=False) for name in removed),
        *(_one_sided(last, name, is_added=True) for name in added),
    ]
    if function:
        found = [one for one in found if function in (one.before, one.after)]
    return tuple(sorted(found, key=lambda one: (not one.nodes, one.name)))


def _with_callees(
    stages: Sequence[Stage], pairs: Alignment[str, MatchedBy], function: str
) -> Sequence[tuple[str, str]]:
    """Return the pair of a function and those of its callees, on which its calls depend."""
    called: set[str] = set()
    for pair in pairs.pairs:
        if function in pair and pair[0] in relax_functions(stages[0].module):
            called |= {node.callee for node in graph_of(stages[0], pair[0]).nodes}
    return [pair for pair in pairs.pairs if function in pair or pair[0] in called]


def _compare_functions(
    stages: Sequence[Stage],
    pairs: Alignment[str, MatchedBy],
    wanted: Sequence[tuple[str, str]],
    fingerprints: tuple[Mapping[str, FunctionFingerprint], Mapping[str, FunctionFingerprint]],
) -> list[FunctionDiff]:
    first, last = stages[0], stages[-1]
    mine, theirs = relax_functions(first.module), relax_functions(last.module)
    found = []
    for pair in wanted:
        one, two = fingerprints[0][pair[0]], fingerprints[1][pair[1]]
        if pair[0] in mine and pair[1] in theirs:
            diff = _relax_diff(stages, pair, pairs.partners)
        elif one.kind == two.kind and one.body != two.body:
            diff = _plain_diff(first, last, pair)
        else:
            diff = FunctionDiff(*pair, ChangeKind.SAME)
        diff = replace(diff, by=pairs.pairs[pair])
        found.append(with_own_differences(diff, function_differences(pair, one, two)))
    return with_changed_callees(found)


def _relax_diff(
    stages: Sequence[Stage], pair: tuple[str, str], names: Mapping[str, str]
) -> FunctionDiff:
    first, last = stages[0], stages[-1]
    before, after = graph_of(first, pair[0]), graph_of(last, pair[1])
    links = _links_along(stages, pair)
    groups = node_groups(links, before, after)
    sides = (first, pair[0]), (last, pair[1])
    tensors = [reading_of(*side).constants for side in sides]
    comparison = NodeComparison(
        before,
        after,
        names,
        {},
        links.values,
        type_parts_of,
        is_same_type,
        lambda one, two: is_equal_tensor(tensors[0].get(one), tensors[1].get(two)),
        Renaming(*(_names(*side) for side in sides)),
    )
    groups = group_by_place(groups, before, after, comparison.is_other_operation)
    partners = {two: one for one, two in filter(None, (each.partners for each in groups))}
    comparison = replace(comparison, partners=partners)
    blocks = block_partners(groups, before, after)
    singles = {
        each.after[0]: each.before[0] for each in groups if len(each.before + each.after) == 2
    }
    accesses = _effects(first).accesses(pair[0]), _effects(last).accesses(pair[1])
    moved = {
        **moved_params(singles, before, after),
        **moved_nodes(singles, before, after, accesses),
    }
    nodes = diff_nodes(links, groups, blocks, comparison, moved)
    result_types = [type_parts(stage.module[name].ret_ty) for stage, name in sides]
    results = (
        *block_differences(blocks, before, after),
        *result_differences(comparison, (result_types[0], result_types[1])),
    )
    return FunctionDiff(
        *pair, ChangeKind.SAME, differences=results, nodes=nodes, graphs=(before, after)
    )


def _plain_diff(before: Stage, after: Stage, pair: tuple[str, str]) -> FunctionDiff:
    """Return the diff of a function of the same kind that is not a Relax function."""
    graphs = _graph(before, pair[0]), _graph(after, pair[1])
    mine, theirs = nest_of(before, pair[0]), nest_of(after, pair[1])
    functions = before.module[pair[0]], after.module[pair[1]]
    own = [Difference(Aspect.LOOPS, "", "")] if mine or theirs else []
    loops = None
    if mine is not None and theirs is not None:
        loops = diff_loop_nests(mine, theirs, partial(compare_domains, *functions))
        own += loops.parameters
    if loops is None or not loops.differs:
        own.append(_first_other_line(*functions))
    return FunctionDiff(
        *pair,
        ChangeKind.SAME,
        differences=tuple(own),
        loops=loops,
        graphs=graphs,
        nests=(mine, theirs),
    )


def _first_other_line(before: ir.BaseFunc, after: ir.BaseFunc) -> Difference:
    """Return the first line that differs, or the place of a difference not visible in the text."""
    lines = tvmscript(before).splitlines(), tvmscript(after).splitlines()
    for one, two in zip_longest(*lines, fillvalue=""):
        if one != two:
            return Difference(Aspect.STATEMENT, one.strip(), two.strip())
    place = tvm_ffi.get_first_structural_mismatch(before, after)
    return Difference(Aspect.STATEMENT, "", "", str(place[0]) if place else "")


def _graph(stage: Stage, name: str) -> Graph | None:
    is_drawable = isinstance(stage.module[name], (relax.Function, tirx.PrimFunc))
    return graph_of(stage, name) if is_drawable else None


def _one_sided(stage: Stage, name: str, *, is_added: bool) -> FunctionDiff:
    graph, nest = _graph(stage, name), nest_of(stage, name)
    added, removed = ChangeKind.ADDED, ChangeKind.REMOVED
    if is_added:
        return FunctionDiff("", name, added, graphs=(None, graph), nests=(None, nest))
    return FunctionDiff(name, "", removed, graphs=(graph, None), nests=(nest, None))


def entries(mod: ir.IRModule) -> set[str]:
    """Return the Relax functions that can be called from outside, which keep their names."""
    functions = relax_functions(mod)
    return {
        name for name, one in functions.items() if "global_symbol" in dict(attributes(one.attrs))
    }


@kept_by_stage
def _matched_functions(before: Stage, after: Stage) -> Alignment[str, MatchedBy]:
    mine, theirs = (entries(stage.module) for stage in (before, after))
    by_name = frozenset(mine & theirs)
    return match_functions(_fingerprints(before, by_name), _fingerprints(after, by_name))


def _both(first: MatchedBy, second: MatchedBy) -> MatchedBy:
    return first if first is second else MatchedBy.STAGES


def _links_along(stages: Sequence[Stage], pair: tuple[str, str]) -> NodeLinks:
    """Relate the nodes of a function step by step, because each step keeps most of them."""
    steps = []
    name = pair[0]
    for before, after in pairwise(stages):
        name_after = _matched_functions(before, after).partners[name]
        steps.append(_step(before, after, name, name_after))
        name = name_after
    return reduce(compose_steps, steps).links


@kept_by_stage
def _step(before: Stage, after: Stage, name: str, name_after: str) -> Step:
    """Return the relation of a function over one step, and of the functions that it calls."""

    def inside(one: NodeId, two: NodeId) -> Step | None:
        callee, other = mine[one].callee, theirs[two].callee
        is_matched = callee in names and names[callee] == other
        return _step(before, after, callee, other) if is_matched else None

    names = _matched_functions(before, after).partners
    functions = before.module[name], after.module[name_after]
    sides = [isinstance(each, relax.Function) for each in functions]
    if all(sides):
        mine, theirs = graph_of(before, name), graph_of(after, name_after)
        return Step(_links(before, after, name, name_after), inside)
    if sides[0]:
        pairs = block_links(_calls_with_blocks(before, name), _blocks(after, name_after))
    elif sides[1]:
        found = block_links(_calls_with_blocks(after, name_after), _blocks(before, name))
        pairs = [(one, two) for two, one in found]
    else:
        kept = set(_blocks(after, name_after))
        pairs = [(one, one) for one in _blocks(before, name) if one in kept]
    return Step(NodeLinks(dict.fromkeys(pairs, MatchedBy.CONTENTS)))


def _calls_with_blocks(stage: Stage, name: str) -> list[tuple[NodeId, list[NodeId]]]:
    nodes = graph_of(stage, name).nodes
    calls = [node for node in nodes if node.kind is NodeKind.CALL_TIR]
    return [(call.id, _blocks(stage, call.callee)) for call in calls]


@kept_by_stage
def _blocks(stage: Stage, name: str) -> list[NodeId]:
    """Return the blocks of a PrimFunc in the order of its text, none for another function."""
    if not isinstance(function_named(stage.module, name), tirx.PrimFunc):
        return []
    return [node.id for node in graph_of(stage, name).nodes if node.kind is NodeKind.BLOCK]


@kept_by_stage
def _links(before: Stage, after: Stage, name: str, name_after: str) -> NodeLinks:
    if before.module[name].same_as(after.module[name_after]):
        return unchanged_links(graph_of(after, name_after))
    known = known_pairs(after, before, name_after, name)
    functions = _matched_functions(before, after)
    return link_nodes(_reading(before, name), _reading(after, name_after), functions, known)


def _reading(stage: Stage, name: str) -> DiffSide:
    order = ranks(_effects(stage).accesses(name))
    return DiffSide(graph_of(stage, name), _graphs(stage), _names(stage, name), order)


@kept_by_stage
def _graphs(stage: Stage) -> Mapping[str, Graph]:
    return {name: graph_of(stage, name) for name in relax_functions(stage.module)}


@kept_by_stage
def _effects(stage: Stage) -> MemoryEffects:
    return MemoryEffects(_graphs(stage))


@kept_by_stage
def _names(stage: Stage, name: str) -> Names:
    return names_of_sizes(graph_of(stage, name), type_parts_of)


def _module_differences(before: ir.IRModule, after: ir.IRModule) -> list[Difference]:
    found = attribute_differences(attributes(before.attrs), attributes(after.attrs))
    infos = [
        [(str(name), str(info)) for name, info in mod.global_infos.items()]
        for mod in (before, after)
    ]
    return found + attribute_differences(*infos)


def _function_texts(stage: Stage) -> Mapping[str, FunctionText]:
    """Return the texts of functions, none if TVM cannot print the module."""
    try:
        return function_texts(script_of(stage))
    except (ValueError, RuntimeError, TypeError):
        return {}


def _transforms(stages: Sequence[Stage]) -> str:
    """Return the names of the transforms from the first stage to the last, "" for other paths."""
    if any(after.parent != before.id for before, after in pairwise(stages)):
        return ""
    return ", ".join(stage.label.partition("(")[0] for stage in stages[1:])


# --- Fingerprints of a module's functions, equal for functions that do the same ------------------


_SYMBOL = "global_symbol"
_NO_BODY = 0
_CALL_DEPTH = 3
"""How many calls deep callees are told apart by what they compute."""


@kept_by_stage
def _fingerprints(stage: Stage, by_name: frozenset[str]) -> Mapping[str, FunctionFingerprint]:
    """Return the fingerprint of each function by its name; those in `by_name` have no body."""
    found = {}
    names = relax_functions(stage.module).keys() - by_name
    bodies = _body_hashes({name: graph_of(stage, name) for name in names})
    for gvar, function in stage.module.functions.items():
        name = str(gvar.name_hint)
        attrs = attributes(getattr(function, "attrs", None))
        symbol = dict(attrs).get(_SYMBOL)
        own = tuple(item for item in attrs if item != (_SYMBOL, name))
        kind = type(function).__name__
        if isinstance(function, relax.Function):
            body = bodies.get(name, _NO_BODY)
            kind = kind if function.is_pure else f"{kind}, impure"
        elif isinstance(function, tirx.PrimFunc):
            for attribute, _ in attrs:
                function = function.without_attr(attribute)
            # variables that attributes inside a lowered PrimFunc name count as free ones
            body = int(tvm_ffi.structural_hash(function, map_free_vars=True))
        else:
            body = int(tvm_ffi.structural_hash(function))
        found[name] = FunctionFingerprint(kind, body, own, symbol is not None)
    return dict(sorted(found.items()))


def _body_hashes(graphs: Mapping[str, Graph]) -> Mapping[str, int]:
    """Return a number for each graph, equal for the same operations on the same operands.

    Calls of the functions given count by what these compute and not by their names, so that
    functions which call each other, or themselves, may be renamed.
    """
    hashes = dict.fromkeys(graphs, 0)
    for _ in range(_CALL_DEPTH):
        hashes = {name: _graph_hash(graph, hashes) for name, graph in graphs.items()}
        if not any(node.callee in graphs for graph in graphs.values() for node in graph.nodes):
            break
    return hashes


def _graph_hash(graph: Graph, callees: Mapping[str, int]) -> int:
    """Return a number that is equal for graphs with the same operations on the same operands."""
    index = graph.index
    owners = {region.owner for region in graph.regions}
    operations = tuple(
        (node.kind.value, 0 if node.id in owners else _operation(node, callees), node.region)
        for node in graph.nodes  # an owner's operation is what its region contains
    )
    types = tuple(str(node.type_text) for node in graph.nodes)
    edges = tuple((index[edge.source], index[edge.target], edge.position) for edge in graph.edges)
    outputs = tuple(index[one] for one in graph.outputs)
    return hash((operations, types, edges, outputs))


def _operation(node: Node, callees: Mapping[str, int]) -> int:
    if node.resolution is not Resolution.FUNCTION or node.callee not in callees:
        return node.structure
    return hash((node.operator, node.attributes, node.literals, callees[node.callee]))


# --- What became of a function that a stage lacks ------------------------------------------------


_MOST_STEPS = 8
"""How many stages are searched for the last one that called the function."""


class LostFunction(NamedTuple):
    """Why a stage lacks a function; `instead` lists functions to show instead."""

    words: str
    instead: tuple[str, ...]


def is_lost(tree: StageTree, stage: Stage, function: str) -> bool:
    """Tell whether a stage lacks a function that another stage of the same root has."""
    return not _has(stage, function) and any(
        tree.lineage(one.id)[0] is tree.lineage(stage.id)[0]
        for one in tree.stages
        if _has(one, function)
    )


def lost_function(tree: StageTree, stage: Stage, function: str) -> LostFunction:
    """Explain what became of a function for which `is_lost` is true."""
    words = f"This stage has no function {function!r}"
    lineage = tree.lineage(stage.id)
    last = next((at for at in reversed(range(len(lineage))) if _has(lineage[at], function)), None)
    if last is None:
        made = next(one for one in tree.stages if _has(one, function))
        words = f"{words}: stage {made.id} ({made.label}) makes it."
        return LostFunction(words, tuple(drawable_functions(stage.module))[:1])
    gone = lineage[last + 1]
    words = f"{words}: stage {gone.id} ({gone.label}) removed it."
    try:
        became = tuple(_became(lineage, last, function))
    except Exception:  # a module cannot be read: it is known all the same that it is lost
        became = ()
    if became:
        words += f" What it computed is in {' and '.join(map(repr, became))}."
    return LostFunction(words, became or tuple(drawable_functions(stage.module))[:1])


def _has(stage: Stage, function: str) -> bool:
    return function_named(stage.module, function) is not None


def _became(
    lineage: Sequence[Stage], last: int, function: str, known: frozenset[str] = frozenset()
) -> list[str]:
    """Return the functions of the last stage that replace one that it lacks."""
    for at in range(last, max(last - _MOST_STEPS, -1), -1):
        found = _in_next(lineage[at], lineage[at + 1], function) - {function} - known
        if found:
            kept = {name for name in found if _has(lineage[-1], name)}
            for name in found - kept:  # fused, and then fused again
                later = max(i for i in range(at + 1, len(lineage)) if _has(lineage[i], name))
                kept.update(_became(lineage, later, name, known | {function}))
            return sorted(kept)
    return []


@lru_cache(maxsize=64)
def _in_next(before: Stage, after: Stage, function: str) -> frozenset[str]:
    """Return the functions of the next stage that replace one of the stage before.

    This is called for each later stage, and needs the diff of two modules.
    """
    callers = [
        name
        for name in relax_functions(before.module)
        if any(node.callee == function for node in graph_of(before, name).nodes)
    ]
    names: set[str] = set()
    for one in diff_modules(before, after).functions:
        if one.before == function and one.after not in ("", function):
            names.add(one.after)
        if one.before in callers and one.after:
            names.update(_called_now(one, function, after))
    return frozenset(names)


def _called_now(caller: FunctionDiff, function: str, after: Stage) -> Iterator[str]:
    """Yield what a caller now calls in place of a function, or the caller if fused into it."""
    mine, theirs = caller.graphs
    if caller.after not in relax_functions(after.module):
        yield caller.after
    elif mine is not None and theirs is not None:
        for change in caller.nodes:
            if any(mine[one].callee == function for one in change.before if one in mine.index):
                callees = (theirs[one].callee for one in change.after if one in theirs.index)
                yield from (name for name in callees if name != function and _has(after, name))

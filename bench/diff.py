"""Measure the diff: its time, its memory, and how often it is right, with the bars.

    python bench/diff.py                  everything, some ten minutes
    python bench/diff.py time memory      only these parts

Times are of this machine, now: compare ratios within one run, not numbers between runs. What is
right is told by the second readings of the tests: the values of both stages when they run, and
TVM's structural equality of each binding.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import random
import time
import tracemalloc
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from statistics import median
from typing import Any

import made_modules
import tvm
from child_processes import in_children
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy
from measurement_table import against, end, forget, heading, missed
from shared_with_tests import from_tests
from tvm import ir, relax
from tvm_ffi import structural_equal

import irviz
from irviz.course.mlp import MODULES
from irviz.session import stage_cache, stage_diff
from irviz.session.session import Session
from irviz.transforms.passes.catalog import CatalogEntry, catalog
from irviz.transforms.stage import Stage
from irviz.view.module_diff import Diff

_RANDOM = 60
_SEED = 20
_MUTANTS = 10
"""Of each module."""
_OTHER_VALUES = "DecomposeOpsForTraining"
"""The pass that makes batch_norm use the statistics of the batch."""
_AT_ONCE = 16
"""Modules that a child process mutates."""


def main() -> None:
    """Run the parts that were asked for, all of them by default."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts: dict[str, Callable[[], None]] = {
        "time": times,
        "pictures": pictures,
        "pipeline": pipeline,
        "memory": memory,
        "values": values,
        "recall": recall,
        "histories": histories,
        "structure": structure,
        "names": names,
        "mutants": mutants,
        "prim_func_mutants": prim_func_mutants,
    }
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(parts)}")
    options = parser.parse_args()
    unknown = set(options.parts) - set(parts)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(parts)}")
    warnings.simplefilter("ignore")
    heading("bar")
    for part in options.parts or parts:
        parts[part]()
    end()


# --- time and memory ---------------------------------------------------------------------------


def _pairs(bindings: int) -> Iterator[tuple[str, ir.IRModule, ir.IRModule]]:
    """Yield pairs of large stages: variables are shared, as by a pass, or are not, as by files."""
    mod = made_modules.decoder(bindings)
    yield "a pass that changes nothing", mod, relax.transform.ConvertToDataflow()(mod.clone())
    yield "made again", mod, made_modules.decoder(bindings)
    yield "every operator lowered", mod, _lowered(mod)
    yield "ToMixedPrecision", mod, relax.transform.ToMixedPrecision()(mod)


def _lowered(mod: ir.IRModule) -> ir.IRModule:
    """Return what LegalizeOps makes of operators, in a hundredth of its time.

    It keeps the variables; each operator becomes a call of what it became in one layer.
    """
    legal = made_modules.legalized(made_modules.bindings_of(mod))
    (block,) = mod["main"].body.blocks
    (other,) = legal["main"].body.blocks
    known = dict(zip(legal["main"].params, mod["main"].params, strict=True))
    bindings = []
    for mine, theirs in zip(block.bindings, other.bindings, strict=True):
        callee, arguments = theirs.value.args
        given = relax.Tuple([known.get(one, one) for one in arguments.fields])
        call = relax.Call(
            theirs.value.op, [callee, given], theirs.value.attrs, theirs.value.ty_args
        )
        bindings.append(relax.VarBinding(mine.var, relax.BlockBuilder().normalize(call)))
        known[theirs.var] = mine.var
    body = relax.SeqExpr([relax.DataflowBlock(bindings)], mod["main"].body.body)
    main = relax.Function(mod["main"].params, body, mod["main"].ret_ty, attrs=mod["main"].attrs)
    functions = {gvar: one for gvar, one in legal.functions.items() if gvar.name_hint != "main"}
    return ir.IRModule({**functions, legal.get_global_var("main"): main})


def times() -> None:
    """Measure `irviz.diff`, which also reads both graphs, beside TVM's own printing, in turns."""
    mod = MODULES["MyModuleHighLevel"]
    _time("MLP, LegalizeOps", mod, relax.transform.LegalizeOps()(mod), 0.02, 30)
    for bindings, rounds in ((2_000, 9), (17_000, 5)):
        for what, before, after in _pairs(bindings):
            bar = 1.0 if bindings == 17_000 else None
            _time(f"{bindings:,}, {what}", before, after, bar, rounds)


def _time(
    what: str, before: ir.IRModule, after: ir.IRModule, bar: float | None, rounds: int
) -> None:
    prints, diffs = [], []
    for _ in range(rounds + 1):
        forget()
        prints.append(_timed(lambda: (before.script(), after.script())))
        diffs.append(_timed(partial(irviz.diff, before, after)))
    ratios = [diff / shown for shown, diff in zip(prints[1:], diffs[1:], strict=True)]
    against(f"{what}: the first irviz.diff", diffs[:1], "ms")
    against(f"{what}: irviz.diff of new modules", diffs[1:], "ms", bar)
    against(f"{what}: … / mod.script() of both", ratios, "x")


def pictures() -> None:
    """Measure the pictures of a diff: folded, laid out and drawn, without the diff itself."""
    mod = MODULES["MyModuleHighLevel"]
    pairs = [("MLP, LegalizeOps", mod, relax.transform.LegalizeOps()(mod))]
    pairs += [(f"17,000, {what}", *both) for what, *both in _pairs(17_000)][2:]
    for bar, (what, before, after) in zip((0.06, 1.5, 1.5), pairs, strict=True):
        forget()
        stages = Stage("0", before), Stage("1", after)
        found = Diff.of(stage_diff.diff_modules(*stages, ("before", "after")))
        taken = []
        for _ in range(8):
            forget()
            taken.append(_timed(found.figure))
        against(f"{what}: picture", taken[1:], "ms", bar)


def pipeline() -> None:
    """Measure text and picture of each pair of neighbours in the default pipeline of 32 layers."""
    mod = made_modules.exported(32 * made_modules.BINDINGS)
    found: dict[str, list[float]] = defaultdict(list)
    for _ in range(3):
        with irviz.record() as recording, tvm.target.Target("llvm"):
            relax.get_pipeline("default")(mod)
        session = recording.session()
        ids = [stage.id for stage in session.stages]
        for before, after in (*pairwise(ids), (ids[0], ids[-1])):
            seconds = _timed(partial(_show_diff, session, before, after))
            found[f"{before} to {after}"].append(seconds)
    neighbours = [median(seconds) for seconds in found.values()]
    end = neighbours.pop()
    against(f"32 layers, {len(neighbours)} pairs of neighbours, medians", neighbours, "ms", 1.0)
    print(f"{'… the largest':58} {max(neighbours) * 1e3:6.0f} ms; first to last {end * 1e3:.0f} ms")


def _show_diff(session: Session, before: str, after: str) -> None:
    diff = session.diff(before, after)
    diff.text()
    with contextlib.suppress(irviz.DrawError):  # nothing differs
        diff.figure()


def memory() -> None:
    """Measure what a diff takes, beside its two graphs."""
    for what, before, after in _pairs(17_000):
        forget()
        stages = Stage("0", before), Stage("1", after)
        gc.collect()
        tracemalloc.start()
        _read(stages)
        gc.collect()
        graphs = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        found = stage_diff.diff_modules(*stages, ("before", "after"))
        peak = tracemalloc.get_traced_memory()[1]
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert found.functions
        against(f"17,000, {what}: both graphs", [graphs / 2**20], "MB")
        against(f"17,000, {what}: with the diff / both graphs", [kept / graphs], "x", 2)
        against(f"17,000, {what}: … at most, on the way", [peak / graphs], "x")


def _read(stages: tuple[Stage, Stage]) -> None:
    for stage in stages:
        stage_cache.graph_of(stage, "main")


def _timed(act: Callable[[], object]) -> float:
    gc.collect()
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


# --- how often it is right ---------------------------------------------------------------------


def values() -> None:
    """Count the pairs that the values of both stages contradict, and the partners found."""
    by_values = from_tests("diff_by_values")
    mods = {
        **MODULES,
        "decoder": made_modules.decoder(2 * made_modules.BINDINGS),
        **{f"random {at}": by_values.random_operators(at) for at in range(8)},
    }
    kinds: Mapping[str, tuple[Callable[[Session], Session], float, float, bool]] = {
        "FuseTIR, by the stages between": (by_values.fused, by_values.EXACT, 0.97, False),
        "FuseTIR, two modules alone": (by_values.fused, by_values.EXACT, 0.0, True),
        "ToMixedPrecision": (
            lambda session: session.apply("ToMixedPrecision"),
            by_values.ROUNDED,
            0.95,
            False,
        ),
    }
    for what, (apply, tolerance, bar, is_alone) in kinds.items():
        expected = missing = wrong = 0
        for mod in mods.values():
            session = apply(Session(mod, isolate=False))
            last = session.stages[-1]
            first = "1" if is_alone else "0"
            alone = irviz.diff(session.stage(first).module, last.module) if is_alone else None
            found = by_values.agreement(session, first, last.id, tolerance, alone)
            expected += found.expected
            missing += len(found.missing)
            wrong += len(found.wrong)
        share = 1 - missing / expected
        print(
            f"{what}: {wrong} wrong pairs, {expected - missing} of {expected} partners found, "
            f"{share:.1%} (bar: 0, {bar:.0%}){missed(what, share < bar or wrong)}",
            flush=True,
        )


def recall() -> None:
    """Count the variables and the values that survive a pass and have no partner in its diff."""
    constructs, by_structure = from_tests("constructs"), from_tests("diff_by_structure")
    by_values = from_tests("diff_by_values")
    named = [one for one in constructs.WELL_FORMED if one not in by_structure.UNMARKABLE]
    modules: dict[str, list[ir.IRModule]] = {
        "the course's": [*MODULES.values(), made_modules.decoder(2 * made_modules.BINDINGS)],
        "operators": [by_values.random_operators(at) for at in range(8)],
        "constructs": [constructs.construct(name) for name in named],
        "random": drawn(constructs.random_modules()),
    }
    with contextlib.suppress(ImportError):  # PyTorch is not a dependency
        from torch_modules import torch_modules

        modules["torch"] = list(torch_modules().values())
    entries = {entry.name: partial(by_structure.passed, entry) for entry in _relax_entries()}
    for name, passes in by_values.SEQUENCES.items():
        entries[name] = partial(_lowered_by, by_values, passes)
    for what, mods in modules.items():
        found: Counter[str] = Counter()
        for name, apply in entries.items():
            if name == _OTHER_VALUES:
                continue
            tolerance = by_values.EXACT
            if name == "ToMixedPrecision" or "rounded" in name:
                tolerance = by_values.ROUNDED
            for each in in_children(partial(_recall, by_values, apply, tolerance), mods):
                found.update(each or {"refused": 1})
        _share(f"{what} modules ({len(mods)}): variables", found, "variables", 0.995)
        _share(f"{what} modules ({len(mods)}): values, no variable shared", found, "values", 0.97)
        wrong = found["wrong"]
        print(f"… {wrong} wrong pairs (bar: 0){missed(f'{what}: pairs', wrong)}", flush=True)


def histories() -> None:
    """Count the operators whose history ends before the last stage of a recorded compilation."""
    try:
        from torch_modules import torch_modules
    except ImportError:
        print("histories: not measured, as PyTorch is not installed")
        return
    gone, count = [], 0
    mods = torch_modules()
    for name, mod in mods.items():
        with irviz.record() as recording:
            tvm.compile(mod, "llvm")
        session = recording.session()
        for node in irviz.graph(session.stage("0").module).nodes:
            if node.callee:
                count += 1
                steps = session.history(node.id, stage="0").steps
                gone += [] if steps[-1].nodes else [f"{name}: {node.id} of {node.callee}"]
    end = missed("histories", gone)
    print(f"compilations of {len(mods)}: {len(gone)} of {count:,} operators gone (bar 0){end}")
    print(*gone[:5], sep="\n")


def _share(what: str, found: Mapping[str, int], kind: str, bar: float) -> None:
    expected, lost = found[kind], found[f"{kind} lost"]
    share = 1 - lost / max(expected, 1)
    end = missed(what, share < bar)
    print(f"{what}: {expected - lost:,} of {expected:,} paired, {share:.2%} (bar {bar:.1%}){end}")


def _lowered_by(by_values: Any, passes: Sequence[str], mod: ir.IRModule) -> ir.IRModule | None:
    try:
        return by_values.lowered(mod, *passes)  # type: ignore[no-any-return]
    except Exception:  # a pass refuses the module
        return None


def _recall(
    by_values: Any,
    apply: Callable[[ir.IRModule], ir.IRModule | None],
    tolerance: float,
    mod: ir.IRModule,
) -> Mapping[str, int]:
    after = apply(mod)
    if after is None:
        return {"refused": 1}
    count, lost = by_values.lost_variables(mod, after)
    found = by_values.agreement_when_read(mod, after, tolerance)
    values = (found.expected, len(found.missing), len(found.wrong)) if found else (0, 0, 0)
    names = "variables", "variables lost", "values", "values lost", "wrong"
    return dict(zip(names, (count, len(lost), *values), strict=True))


def structure() -> None:
    """Count the nodes about which the diff and TVM's structural equality disagree."""
    constructs, by_structure = from_tests("constructs"), from_tests("diff_by_structure")
    entries = _relax_entries()
    named = {
        name: constructs.construct(name)
        for name in constructs.WELL_FORMED
        if name not in by_structure.UNMARKABLE
    }
    for what, mods in (
        ("the course's modules", list(MODULES.values())),
        ("constructs", list(named.values())),
        ("random modules", drawn(constructs.random_modules())),
        ("simple random modules", drawn(from_tests("modules").programs())),
    ):
        counts: Counter[str] = Counter()
        for entry in entries:
            for found in in_children(partial(_disagreements, by_structure, entry), mods):
                counts["end the process" if found is None else found[0]] += 1
                counts["wrong"] += found[1] if found else 0
        ended = counts["end the process"]
        print(
            f"{len(entries)} passes over {what} ({len(mods)}): {counts['compared']} pairs of "
            f"modules compared in both directions, {counts['refused']} refused by the pass, "
            f"{ended} end the process, {counts['wrong']} wrong nodes (bar: 0)"
            f"{missed(f'structure of {what}', counts['wrong'])}",
            flush=True,
        )


def _relax_entries() -> list[CatalogEntry]:
    """Return the passes over Relax functions that run no code and measure nothing."""
    return [
        entry
        for entry in catalog()
        if entry.group in ("relax", "operator rewrites", "pipelines")
        and not entry.is_measured
        and not entry.evaluates_code
    ]


def _disagreements(by_structure: object, entry: CatalogEntry, mod: ir.IRModule) -> tuple[str, int]:
    found = by_structure.wrong_after(entry, mod)  # type: ignore[attr-defined]
    return ("refused", 0) if found is None else ("compared", len(found))


def names() -> None:
    """Count the modules that differ from themselves with other names and another order."""
    constructs, by_structure = from_tests("constructs"), from_tests("diff_by_structure")
    for what, mods in (
        ("random modules", drawn(constructs.random_modules())),
        ("simple random modules", drawn(from_tests("modules").programs())),
    ):
        wrong = 0
        for at, mod in enumerate(mods):
            renamed = by_structure.renamed(mod)
            assert structural_equal(mod, renamed)
            others = renamed, by_structure.permuted(mod, at), by_structure.permuted(renamed, at)
            wrong += sum(bool(irviz.diff(mod, other)) for other in others)
        end = missed(f"names of {what}", wrong)
        print(f"other names, order, both, of {len(mods)} {what}: {wrong} differ (bar: 0){end}")


def prim_func_mutants() -> None:
    """Count wrong diffs of changed PrimFuncs, and wrong verdicts on what their blocks visit."""
    made, schedules = from_tests("prim_func_mutants"), from_tests("random_schedules")
    rng = random.Random(_SEED)
    counts: Counter[str] = Counter()
    for function in made.functions(schedules.random_schedule, _RANDOM // 5).values():
        changed = [*made.mutants(function, rng), *made.equal_mutants(function)]
        for _, mutant in changed:
            is_equal = made.is_equal(function, mutant)
            counts["equal" if is_equal else "different"] += 1
            if bool(made.diff_of(function, mutant)) == is_equal:
                counts["false alarms" if is_equal else "missed"] += 1
    print(
        f"mutants of PrimFuncs: {counts['different']} different, {counts['missed']} missed; "
        f"{counts['equal']} equal, {counts['false alarms']} false alarms (bar: 0 of 400, 0 of 100)"
        f"{missed('mutants of PrimFuncs', counts['missed'] + counts['false alarms'])}",
        flush=True,
    )
    domains: Counter[tuple[bool, bool]] = Counter()
    for at in range(5 * _RANDOM):
        before, after, _ = schedules.random_schedule(at)
        for mod in (after, schedules.with_planted_error(after, random.Random(at))):
            domains.update(schedules.verdicts(irviz.diff(before, mod), before, mod))
    wrong = sum(count for (said, is_so), count in domains.items() if said != is_so)
    print(
        f"blocks of random schedules: {sum(domains.values())} verdicts on what they visit, "
        f"{domains[False, False]} errors told, {wrong} wrong (bar: 0)"
        f"{missed('blocks of random schedules', wrong)}"
    )


def mutants() -> None:
    """Count the equal mutants of modules that differ, and the other ones that do not."""
    constructs, making = from_tests("constructs"), from_tests("mutants")
    named = {**MODULES, "decoder": made_modules.decoder(2 * made_modules.BINDINGS)}
    small = {name: constructs.construct(name) for name in constructs.WELL_FORMED}
    lowered = {
        f"{pipeline} {name}": constructs.PIPELINES[pipeline](small[name])
        for pipeline in ("planned", "lowered")
        for name in ("network", "symbolic network", "in place")
    }
    sources = {**making.sources(named), **small, **lowered}
    for what, judge, mods in (("modules with Relax functions", _judged, sources),):
        counts: Counter[str] = Counter()
        for at in range(0, len(mods), _AT_ONCE):
            some = list(mods.items())[at : at + _AT_ONCE]
            for (name, _), found in zip(some, in_children(judge, some), strict=True):
                counts["end the process"] += found is None
                for kind, is_equal, differs in found or ():
                    counts["equal" if is_equal else "different"] += 1
                    if differs is is_equal:
                        counts["false alarms" if differs else "missed"] += 1
                        words = "a false alarm" if differs else "missed"
                        print(f"{name}, {kind}: {words}", flush=True)
        print(
            f"mutants of {len(mods)} {what}: {counts['different']} different ones, "
            f"{counts['missed']} missed, {counts['equal']} equal ones, {counts['false alarms']} "
            f"false alarms (bar: 0 and 0); {counts['end the process']} end the process"
            f"{missed('mutants', counts['missed'] + counts['false alarms'])}"
        )


def _judged(named: tuple[str, ir.IRModule]) -> list[tuple[str, bool, bool]]:
    """Return the kind of each mutant of a module, whether it is equal, and whether it differs."""
    name, mod = named
    making, is_same_run = from_tests("mutants"), from_tests("symbolic_run").is_same_run
    made = making.mutants(mod, random.Random(f"{_SEED} {name}"), _MUTANTS, is_same_run)
    return [(one.kind, one.is_equal, bool(irviz.diff(mod, one.module))) for one in made]


def drawn(strategy: SearchStrategy[ir.IRModule]) -> list[ir.IRModule]:
    """Return modules that are drawn at random, the same ones each time."""
    found: list[ir.IRModule] = []

    @seed(_SEED)
    @settings(
        max_examples=_RANDOM,
        database=None,
        derandomize=False,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def draw(mod: ir.IRModule) -> None:
        found.append(mod)

    draw()
    return found


if __name__ == "__main__":
    main()

"""Measure what recording costs a build: medians with the smallest and the largest seen.

    python bench/recording_cost.py              the lecture's MLP, decoder stacks of 8 and 32 layers
    python bench/recording_cost.py --rounds 41

Builds with and without recording take turns, and each pair gives one ratio; builds without, once
more, show what these ratios are where nothing differs. Where that is more than the bar, they say
little. So the recorder's own time is measured as well: what it takes in its callbacks during a
build, and how much longer a pass takes that does nothing.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable
from functools import partial
from statistics import median
from time import perf_counter
from typing import TypeVar

import made_modules
import tvm
from measurement_table import against, end, heading, missed
from tvm import ir, relax

from irviz.course.mlp import MyModule
from irviz.explorer.explorer import ExplorableRecording, record
from irviz.transforms.recording import record_passes

BAR = 0.02
"""How much longer a build may take."""

_MANY = 5_000
T = TypeVar("T")


def main() -> None:
    """Measure each module."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15, help="pairs of builds of each module")
    rounds = parser.parse_args().rounds
    heading("bar")
    each = [_longer_pass() for _ in range(5)]
    print(f"a pass that does nothing is {1e6 * median(each):.1f} us longer")
    measure("MLP", MyModule, 3 * rounds, median(each))
    measure("8 layers", made_modules.decoder(8 * made_modules.BINDINGS), rounds, median(each))
    measure("32 layers", made_modules.decoder(32 * made_modules.BINDINGS), rounds, median(each))
    end()


def measure(what: str, mod: ir.IRModule, rounds: int, longer: float) -> None:
    """Measure builds of one module; a pass takes so many seconds longer."""
    times: dict[str, list[float]] = {"plain": [], "recorded": [], "plain again": []}
    in_callbacks, afterwards, count = [], [], 0
    _build(mod)
    for turn in range(rounds):
        names = list(times)
        for name in names[turn % 3 :] + names[: turn % 3]:
            seconds, recording = _timed(partial(_record if name == "recorded" else _build, mod))
            times[name].append(seconds)
            if recording is not None:
                in_callbacks.append(recording.cost / recording.seconds)
                count = sum(1 for _ in recording.walk())
                afterwards.append(_timed(recording.session)[0])
    plain = times["plain"]
    against(f"{what}: built", plain)
    against(f"{what}: built and recorded, {count} passes", times["recorded"])
    noise = _compare(f"{what}: built again, longer by", times["plain again"], plain, has_bar=False)
    # where two times the same differ by more than the bar, there is nothing to hold against it
    _compare(f"{what}: recorded, longer by", times["recorded"], plain, has_bar=noise <= BAR)
    _shares(f"{what}: in the recorder's callbacks", in_callbacks, has_bar=True)
    _shares(
        f"{what}: if each pass is as much longer", [count * longer / median(plain)], has_bar=True
    )
    against(f"{what}: recording.session() afterwards", afterwards)
    _shares(f"{what}: … of the build", [median(afterwards) / median(plain)], has_bar=False)


def _compare(what: str, some: list[float], others: list[float], *, has_bar: bool) -> float:
    """Print by how much some times are longer than others; return the larger of two measures."""
    pairs = [one / other - 1 for one, other in zip(some, others, strict=True)]
    whole = median(some) / median(others) - 1
    _shares(f"{what}, pair by pair", pairs, has_bar=has_bar)
    _shares(f"{what}, medians", [whole], has_bar=has_bar)
    return max(abs(median(pairs)), abs(whole))


def _shares(what: str, shares: list[float], *, has_bar: bool) -> None:
    words = f"<= {100 * BAR:g} %" if has_bar else ""
    words += missed(what, has_bar and median(shares) > BAR)
    numbers = " ".join(f"{100 * one:6.2f} % " for one in (median(shares), min(shares), max(shares)))
    print(f"{what:58} {numbers}   {words}".rstrip(), flush=True)


def _build(mod: ir.IRModule) -> None:
    tvm.compile(mod, "llvm")


def _record(mod: ir.IRModule) -> ExplorableRecording:
    with record() as recording:
        _build(mod)
    return recording


def _timed(call: Callable[[], T]) -> tuple[float, T]:
    gc.collect()
    begun = perf_counter()
    result = call()
    return perf_counter() - begun, result


def _longer_pass() -> float:
    """Return how many seconds longer a pass takes that is recorded, as passes in C++ are run."""
    nothing = relax.transform.RewriteCUDAGraph()
    many = tvm.transform.Sequential([nothing] * _MANY)

    def recorded() -> None:
        with record_passes():
            many(MyModule)

    many(MyModule)
    return (_timed(recorded)[0] - _timed(lambda: many(MyModule))[0]) / _MANY


if __name__ == "__main__":
    main()

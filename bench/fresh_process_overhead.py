"""Measure what a fresh process for each run costs, and what confining it costs.

    python bench/fresh_process_overhead.py

The same small run takes turns in a worker itself, in a fork of it, and in a fork that is confined;
a figure is the median of what a round takes longer, with the smallest and the largest. Runs are
made one by one, as a reader makes them, and without a pause. The exit code is 1 if a run that a
reader makes costs more than the bar.
"""

from __future__ import annotations

import time

from measurement_table import against, end, heading

import irviz
from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MyModule
from irviz.runtime import run as run_in_worker
from irviz.worker.sandbox import can_confine
from irviz.worker.supervisor import RUNS, Worker

ROUNDS = 60
BAR_SECONDS = 0.005
PAUSE_SECONDS = 0.05


def main() -> None:
    """Measure everything."""
    heading("bar")
    inside = Worker()
    inside.call(_run_inside)
    session = irviz.Session(MyModule, params=mlp_params(), inputs=digits().images[:1])
    ways = {"in the worker itself": (session, inside), "in a fresh process": (session, RUNS)}
    if can_confine():
        confined = session.with_run_config(confine=True)
        ways["in one that is confined"] = (confined, RUNS)
    for pause, how in ((PAUSE_SECONDS, "one by one"), (0.0, "without a pause")):
        taken = _in_turn(ways, pause)
        first, *others = taken.items()
        against(f"a run {first[0]}, {how}", first[1])
        for name, times in others:
            over = [one - other for one, other in zip(times, first[1], strict=True)]
            against(f"more {name}, {how}", over, "ms", BAR_SECONDS if pause else None)
    inside.stop()
    end()


def _run_inside() -> None:
    """Let this worker run everything itself."""
    from irviz.worker import one_shot_process

    one_shot_process.CAN_FORK = False


def _in_turn(ways: dict[str, tuple[irviz.Session, Worker]], pause: float) -> dict[str, list[float]]:
    """Return the seconds of each way in each round, after five rounds that do not count."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    names = list(ways)
    for number in range(ROUNDS + 5):
        for offset in range(len(names)):
            name = names[(number + offset) % len(names)]
            session, run_in_worker.RUNS = ways[name]
            session.run()  # what another way has made ready is made ready anew
            time.sleep(pause)
            start = time.perf_counter()
            session.run()
            if number >= 5:
                found[name].append(time.perf_counter() - start)
    run_in_worker.RUNS = RUNS
    return found


if __name__ == "__main__":
    main()

"""The page's server collects garbage when nobody waits."""

import asyncio
import gc
import time
import weakref
from collections.abc import Iterator

import pytest

from irviz.cli.page_server import collect_when_idle


class _Cycle:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def collector() -> Iterator[None]:
    was_enabled, thresholds = gc.isenabled(), gc.get_threshold()
    gc.enable()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()
    if not was_enabled:
        gc.disable()


@pytest.mark.usefixtures("collector")
@pytest.mark.parametrize("is_used", [True, False])
def test_garbage_stays_while_the_process_is_used(is_used: bool) -> None:
    began = time.monotonic()

    async def work() -> bool:
        used = time.monotonic if is_used else lambda: began
        task = asyncio.get_running_loop().create_task(collect_when_idle(used, 0.1))
        await asyncio.sleep(0)
        old = _Cycle()
        is_there = weakref.ref(old)
        gc.collect(1)  # so that only a full collection finds it
        gc.collect(1)
        del old
        await asyncio.sleep(0.5)
        task.cancel()
        return is_there() is not None

    assert asyncio.run(work()) == is_used

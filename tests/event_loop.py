"""The event loop of a kernel, and how a test waits for what happens in it."""

import asyncio
import faulthandler
import time

LONG = 30.0
"""Seconds after which a test has failed."""


def in_kernel(test):
    """Run a test as a kernel runs cells: with an event loop in which widgets are told."""
    asyncio.run(test())


async def until(check):
    """Wait until something holds; fail if it takes long, and tell what each thread does."""
    deadline = time.monotonic() + LONG
    while not check():
        if time.monotonic() >= deadline:
            faulthandler.dump_traceback(2)
            raise AssertionError("it takes too long")
        await asyncio.sleep(0.002)

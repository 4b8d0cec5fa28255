"""What the start page offers to try, without a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from irviz.cli.commands import demo_session
from irviz.cli.page_launcher import DEMO

if TYPE_CHECKING:
    from irviz.session.session import Session


class Example(NamedTuple):
    """A session that can be opened: what it shows, and what to do with it."""

    title: str
    words: str
    session: Callable[[], Session]


def _pipeline() -> Session:
    session = demo_session("MyModuleHighLevel")
    for name in ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps", "FuseTIR"):
        session = session.apply(name)
    return session


EXAMPLES: Mapping[str, Example] = {
    DEMO: Example(
        "A small neural network",
        "Bind its weights, replace a kernel, and press Run: are the digits still right?",
        demo_session,
    ),
    ":pipeline:": Example(
        "Four passes",
        "Step through the stages with Alt and the arrows; press d to see what each pass changed.",
        _pipeline,
    ),
    ":loops:": Example(
        "The loops of a matrix product",
        "Split and reorder them in Schedule, and see what each step does to the time.",
        lambda: demo_session("MyModuleStatic", "linear0"),
    ),
}
"""The examples by the names that requests have for them."""

"""The main job on the lecture's MLP, from the module as given to a library call, checked."""

from __future__ import annotations

from irviz.app.session import Session
from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MyModule
from irviz.model.result import RunResult, compare
from irviz.view.badge import duration, verdict_line


def demo_session() -> Session:
    """Return a session on the lecture's MLP with its weights and the held-out digits."""
    held_out = digits()
    return Session(MyModule, params=mlp_params(), inputs=held_out.images, labels=held_out.labels)


def demo_stages() -> Session:
    """Return the session with its weights bound and then ReLU swapped for the library's."""
    return demo_session().bind().swap("relu0", "env.relu")


def report(session: Session) -> list[str]:
    """Run every stage and return a line on each: classes right, how it compares, time."""
    lines: list[str] = []
    first: RunResult | None = None
    for stage in session.stages:
        result = session.run(stage=stage.id)
        first = first or result
        against = compare(result, first)
        lines.append(
            f"{stage.id}  {stage.label:32}  {result.correct} of {result.cases} right  "
            f"max |Δ| {against.max_abs_diff:.1e} ({verdict_line(against).split(',')[0]})  "
            f"{duration(result.seconds)} an image"
        )
    return lines

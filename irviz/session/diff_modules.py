"""The diff of two modules, files or stages of saved sessions, without a session."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

from irviz.limits import OPERATION_SECONDS
from irviz.loaders.load_in_worker import Reader, reader
from irviz.loaders.loaded_model import Missing
from irviz.session.open_session import is_session, load, split_stage
from irviz.session.operation_limits import limited
from irviz.session.session import Session
from irviz.session.stage_diff import diff_modules, diff_stages
from irviz.transforms.stage import INITIAL
from irviz.view.module_diff import Diff
from irviz.worker.supervisor import Worker

_SECONDS, _LEAST_SECONDS = 8.5, 3.0
"""Opening and comparing two small files takes at most 8.5 s; comparing may always take 3 s."""


def diff(
    a: object, b: object, function: str = "", *, module: str = "", missing: Missing = "error"
) -> Diff:
    """Return the differences between two modules: what became of each function and node.

    Nothing in a file is run.

    Args:
        a: The module before, or anything that `irviz.load` takes. `"work.irviz#1"` names a stage of
            a saved session; without the number it is the session's current stage.
        b: The module after, likewise.
        function: Compare only this function.
        module: The name of the module to read, if a file defines several.
        missing: What to do with calls that TVM's importer does not support, as in `irviz.load`.

    Raises:
        LoadError: One of the two is not a model.
        NotFoundError: There is no such stage, or no such function.

    Example:
        ```python
        print(irviz.diff(MyModule, relax.transform.LegalizeOps()(MyModule)).text())
        ```
    """
    (file, stage), (other_file, other_stage) = split_stage(a), split_stage(b)
    if is_session(file) and file == other_file:
        before = load(file, name=module)
        stage = stage or before.current_id
        with limited("the comparison", *before.stages):
            return Diff.of(
                diff_stages(before.tree, stage, other_stage or before.current_id, function)
            )
    began = time.monotonic()
    before, after = _load_both(file, other_file, module, missing)
    left = max(_LEAST_SECONDS, _SECONDS - (time.monotonic() - began))
    one = before.tree.stage(stage or None)
    two = after.tree.stage(other_stage or None)
    titles = _title(a, one.label, "before"), _title(b, two.label, "after")
    with limited("the comparison", one, two, seconds=min(OPERATION_SECONDS, left)):
        return Diff.of(diff_modules(one, two, titles, function))


def recordings(a: str, b: str) -> tuple[Session, Session] | None:
    """Return the sessions of two saved recordings, None if either file is something else.

    A name with the number of a stage, such as `"work.irviz#1"`, is not a whole recording.
    """
    if any(not is_session(path) or stage for path, stage in map(split_stage, (a, b))):
        return None
    one, two = _load_both(a, b)
    is_recorded = [any(stage.seconds is not None for stage in each.stages) for each in (one, two)]
    return (one, two) if all(is_recorded) else None


def _load_both(
    a: object, b: object, name: str = "", missing: Missing = "error"
) -> tuple[Session, Session]:
    """Open two files or models, files at the same time: each is read in a process of its own."""
    if not all(isinstance(each, str | os.PathLike) for each in (a, b)):
        return load(a, name=name, missing=missing), load(b, name=name, missing=missing)

    worker = Worker()

    def load_second() -> Session:
        began = time.monotonic()
        worker.call(os.getpid, answer=int)  # when its process has started
        reader.set(Reader(worker, time.monotonic() - began))
        return load(b, name=name, missing=missing)

    with ThreadPoolExecutor(1) as threads:
        second = threads.submit(copy_context().run, load_second)
        try:
            return load(a, name=name, missing=missing), second.result()
        finally:
            worker.stop()  # also if the first file cannot be opened


def _title(what: object, label: str, default: str) -> str:
    """Return a module's title in the diff: its file, name or stage."""
    if isinstance(what, str | os.PathLike):
        return os.fspath(what)
    name = getattr(what, "__name__", "")
    return str(name) or (default if label == INITIAL else label)

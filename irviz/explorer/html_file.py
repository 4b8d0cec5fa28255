"""Write a session to one HTML file, which shows it without a kernel or a network."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import re
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

from markupsafe import Markup

from irviz.atomic_write import atomic_write, target_path
from irviz.errors import RunError
from irviz.explorer.offline_data import last, record_in_steps
from irviz.explorer.state import Runs, State
from irviz.explorer.viewer import STATIC
from irviz.runtime.run import TraceRequest
from irviz.session.operation_limits import SECONDS, limited_together
from irviz.session.session import Session
from irviz.view.templating import render

SUFFIX = ".html"
_LONG = 100
_MANY = 6
"""Records with at least this many fields are written once, however often they occur."""
_NUMBER = "$"
"""The only key of an object that stands for a text."""
_EXPORTS = re.compile(r"export\{(?P<names>[^{}]*)\};(?=\s*(/\*!.*\*/\s*)?\Z)", re.DOTALL)
_START = re.compile(r"(?P<name>[\w$]+) as showRecordedPage\b")


def save_html(session: Session, path: str | os.PathLike[str], *, run: bool = False) -> Path:
    """Write a session to a single HTML file, atomically.

    A browser opens it from disk. It shows the stages with all their functions, the differences from
    the stage before, TVMScript and facts. It fetches nothing, and its stages cannot be transformed
    or run.

    Args:
        path: A file name ending in `.html`.
        run: Whether to run the stages first. The file then has the values of all nodes for the
            first case, and how the results compare; otherwise it has neither.

    Raises:
        SaveError: The file name has another suffix, or the file cannot be written.
        UntrustedError: Stages of an opened file would have to be run; see `Session.trust`.
    """
    target = target_path(path, [SUFFIX])
    state = State.of(session)
    return write_html(_run(state) if run else state, target)


def write_html(state: State, path: str | os.PathLike[str]) -> Path:
    """Write everything that an explorer in this state can show, with its recorded values."""
    target = target_path(path, [SUFFIX])
    content = page_content(last(page_in_steps(state)))
    with atomic_write(target) as partial:
        partial.write_bytes(content)
    return target


def page_content(page: str) -> bytes:
    """Return the content of the file."""
    return page.encode("utf-8", "replace")  # a file's name may be no text


def page_in_steps(state: State) -> Generator[str, None, str]:
    """Return the page: the viewer, its style sheet and a recording of what it shows.

    Yields progress messages.
    """
    seconds = SECONDS * len(state.session.stages)
    recording = yield from limited_together(record_in_steps(state), seconds)
    values: dict[str, int] = {}
    shortened = _shortened(recording, values)
    packed = {"recording": shortened, "values": [json.loads(one) for one in values]}
    json_bytes = json.dumps(packed, separators=(",", ":")).encode()
    script = _program((STATIC / "viewer.js").read_text(encoding="utf-8"))
    style = (STATIC / "viewer.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = render(
        "offline_page",
        title=recording["traits"]["title"],
        digest=digest,
        style=Markup(style),  # noqa: S704 - both are irviz's own
        script=Markup(script),  # noqa: S704
        # no character of base64 means anything in HTML
        recording=base64.b64encode(gzip.compress(json_bytes, mtime=0)).decode(),
    )
    return str(page)


def _shortened(value: object, values: dict[str, int]) -> object:
    """Return data with long texts and records replaced by numbers, as stages have much in common.

    gzip alone finds no repetition more than 32 kB apart. A record's texts come before it in
    `values`, which are JSON.
    """
    match value:
        case str() if len(value) > _LONG:
            return {_NUMBER: values.setdefault(json.dumps(value), len(values))}
        case dict():
            record = {key: _shortened(one, values) for key, one in value.items()}
            if len(record) < _MANY:
                return record
            return {_NUMBER: values.setdefault(json.dumps(record), len(values))}
        case list():
            return [_shortened(one, values) for one in value]
    return value


def _program(bundle: str) -> str:
    """Return the viewer's module, changed to show the recording instead of exporting names."""
    exports = _EXPORTS.search(bundle)
    start = exports and _START.search(exports["names"])
    assert exports is not None, "the bundle ends in its exports"
    assert start is not None, "one of which shows a recording"
    return f"{bundle[: exports.start()]}{start['name']}(document);{bundle[exports.end() :]}"


def _run(state: State) -> State:
    """Run all stages and record the values of the first case."""
    runs, traces = Runs(), {}
    session = state.session
    for stage in session.stages:
        if stage.error:
            continue
        answer: object
        try:
            answer = session.run(stage=stage.id, trace=TraceRequest(0))
            traces[stage.id] = answer.trace
        except (RunError, ValueError) as failure:
            answer = failure
        runs = runs.add(stage.id, 0, answer)
    kept = {stage: trace for stage, trace in traces.items() if trace is not None}
    return replace(state, runs={session.function: replace(runs, traces=kept)})

"""Write the script of stages from an opened file in the worker, as that applies their passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irviz.errors import RunError
from irviz.ir.module_functions import drawable_functions
from irviz.limits import SCRIPT_SECONDS
from irviz.loaders.tvm_json import read_objects
from irviz.runtime.run import CallInputs
from irviz.session.saving.session_file import decode_session, encode_session
from irviz.session.session_state import SessionState
from irviz.transforms.python_script import PythonScript
from irviz.transforms.stage import Stage
from irviz.transforms.stage_tree import StageTree, to_script
from irviz.worker.supervisor import TRIES, WorkerError


def script_in_worker(stages: Sequence[Stage], state: SessionState) -> PythonScript:
    """Return the script that recreates the last stage of a path, as `to_script` does.

    The stages are sent as the entries of a session file. Raises RunError if writing takes too long
    or ends the worker, and SessionFileError if a stage cannot be sent.
    """
    tree = StageTree(tuple(stages), stages[-1].id, 1 + max(int(stage.id) for stage in stages))
    function = next(name for stage in stages for name in drawable_functions(stage.module))
    entries = encode_session(SessionState(tree, function, CallInputs(), state.run_config))
    try:
        return TRIES.call(_write_script, entries, seconds=SCRIPT_SECONDS * len(stages))
    except WorkerError as failure:
        raise RunError(f"the script could not be written: {failure}") from failure


def _write_script(entries: Mapping[str, bytes]) -> PythonScript:
    """Write the script. Runs in the worker."""
    return to_script(decode_session(entries, "the session", read_objects).tree.stages)

"""The TVMScript of stages as plain data, with the lines of functions and nodes."""

from __future__ import annotations

from functools import lru_cache

import tvm
from tvm import ir

from irviz.errors import LimitError, NumPyError, message_of
from irviz.explorer.stage_pictures import attempted, graph_or_none
from irviz.explorer.state import Side, State, derived
from irviz.explorer.viewer import schema
from irviz.ir import tvmscript as tvmscript_lines
from irviz.ir.module_functions import drawable_functions
from irviz.ir.module_to_numpy import heading, line_offsets, part_offsets, write_function
from irviz.session.node_history import blame
from irviz.session.operation_limits import limited
from irviz.session.stage_cache import script_of
from irviz.transforms.stage import Stage
from irviz.view.svg_primitives import visible


@derived(
    lambda state: (
        *(state.has_script, state.has_numpy, state.stage, state.stage_of("reference")),
        *(state.has_blame, state.function if state.has_blame else ""),
    )
)
def scripts(state: State) -> schema.Scripts:
    """Return the scripts of both sides; none while the text is hidden."""

    def side(name: Side) -> schema.Script | None:
        stage = state.stage_of(name) if state.has_script else None
        is_alone = name == "current" and not state.reference
        if stage is None:
            return None
        script = script_data(stage, is_alone and state.has_numpy)
        has_blame = is_alone and state.has_blame
        return {**script, "blame": blamed_lines(state, stage)} if has_blame else script

    return {"current": side("current"), "reference": side("reference")}


@derived(lambda state: (state.has_script, state.function, state.stage, state.stage_of("reference")))
def block_lines(state: State) -> schema.BlockLines:
    """Return the lines of the drawn PrimFuncs; none while the text is hidden."""
    shown = (state.stage, state.stage_of("reference")) if state.has_script else ()
    return {
        stage.id: {state.function: block_lines_of(stage, state.function)}
        for stage in shown
        if stage is not None
    }


def block_lines_of(stage: Stage, function: str) -> dict[str, int]:
    """Return the line of each parameter and block of a PrimFunc; empty if it is not printed."""
    script, graph = printed(stage), graph_or_none(stage, function)
    if graph is None or isinstance(script, Exception):
        return {}
    lines = tvmscript_lines.block_lines(script, graph)
    return {str(node): line for node, line in lines.items()}


def blamed_lines(state: State, stage: Stage) -> list[schema.BlamedLine]:
    """Return which pass last changed each line of a stage; empty if it is not printed."""
    found = attempted(
        "the text", lambda: blame(state.session.tree, state.function, stage.id), stage
    )
    if isinstance(found, Exception):  # TVM does not print every module that it makes
        return []
    return [
        {
            "stage": "" if line.stage is None else line.stage.id,
            "function": line.function,
            "node": line.node,
        }
        for line in found.lines
    ]


def printed(stage: Stage) -> tvmscript_lines.Script | Exception:
    """Return the script of a stage, or why there is none."""
    return attempted("the text", lambda: script_of(stage), stage)


@lru_cache(maxsize=8)
def script_data(stage: Stage, has_numpy: bool = False) -> schema.Script:
    """Return the script of a stage, or the reason why it cannot be printed."""
    script = printed(stage)
    if isinstance(script, Exception):
        words = f"# {message_of(script)}".replace("\n", "\n# ")
        script, has_numpy = tvmscript_lines.Script(words, {}, {}), False
    return {
        "stage": stage.id,
        "label": visible(stage.label),
        "text": visible(script.text),
        "functions": _functions(script),
        "lines": _lines(script),
        "numpy": _numpy(stage, script) if has_numpy else [],
        "blame": [],
    }


def _lines(script: tvmscript_lines.Script) -> dict[str, dict[str, int]]:
    """Return the line of each node, by function and node: widgets send numbers quickly."""
    found: dict[str, dict[str, int]] = {}
    for (function, node), line in script.lines.items():
        found.setdefault(function, {})[str(node)] = line
    return found


def _numpy(stage: Stage, script: tvmscript_lines.Script) -> list[schema.NumPyText]:
    try:
        with limited("the NumPy", stage):
            return numpy_texts(stage.module, script)
    except LimitError as failure:
        return unwritten(f"{str(failure).capitalize()}.")


def _functions(script: tvmscript_lines.Script) -> list[schema.ScriptFunction]:
    """Return the functions, starting at their decorators, in the order of the text."""
    texts = tvmscript_lines.function_texts(script)
    return [
        {"name": name, "first": text.start, "last": text.start + len(text.lines) - 1}
        for name, text in texts.items()
    ]


# --- The functions of a module as NumPy, with the lines of TVMScript that they come from ----------


_MOST_FUNCTIONS = 300
"""The most functions that are translated; this takes about a second."""


def numpy_texts(mod: ir.IRModule, script: tvmscript_lines.Script) -> list[schema.NumPyText]:
    """Return a module's functions as NumPy, in the order of its TVMScript.

    For a function with a construct that NumPy lacks, there is a comment with the construct and its
    line.
    """
    functions = drawable_functions(mod)
    names = sorted(
        (name for name in functions if name in script.functions), key=script.functions.__getitem__
    )
    texts = [_numpy_text(mod, name, script) for name in names[:_MOST_FUNCTIONS]]
    if len(names) > _MOST_FUNCTIONS:
        texts += unwritten(f"The module has {len(names)} functions, and these are the first.")
    head = heading([one["text"] for one in texts])
    return [{"function": "", "text": head, "lines": []}, *texts]


def unwritten(why: str) -> list[schema.NumPyText]:
    """Return a comment in place of functions that are not translated."""
    words = f"{why} irviz.to_numpy(mod, name) writes any of them."
    return [{"function": "", "text": _comment(words), "lines": []}]


def _numpy_text(mod: ir.IRModule, name: str, script: tvmscript_lines.Script) -> schema.NumPyText:
    offsets = part_offsets(mod[name], name, script)
    constants: list[tvm.runtime.Tensor] = []
    try:
        written = write_function(mod, name, constants)
    except NumPyError as failure:
        at = offsets.get(failure.origin, 0)
        line = script.functions[name] + at
        words = _comment(f"{name} cannot be written as NumPy: line {line} has {failure.construct}.")
        return {"function": name, "text": words, "lines": [at]}
    lines = line_offsets(written, offsets)
    return {"function": name, "text": visible(written.source), "lines": lines}


def _comment(words: str) -> str:
    return visible(f"# {' '.join(words.split())}")

"""The functions of a module as NumPy, with the lines of TVMScript that they come from."""

from __future__ import annotations

import tvm
from tvm import ir

from irviz.errors import NumPyError
from irviz.explorer.viewer.schema import NumPyText
from irviz.ir.module_functions import drawable_functions
from irviz.ir.numpy_code.numpy_lines import line_offsets, part_offsets
from irviz.ir.numpy_code.numpy_program import heading, write_function
from irviz.ir.text.tvmscript_lines import Script
from irviz.view.bidi_escapes import visible

_MOST_FUNCTIONS = 300
"""The most functions that are translated; this takes about a second."""


def numpy_texts(mod: ir.IRModule, script: Script) -> list[NumPyText]:
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


def unwritten(why: str) -> list[NumPyText]:
    """Return a comment in place of functions that are not translated."""
    words = f"{why} irviz.to_numpy(mod, name) writes any of them."
    return [{"function": "", "text": _comment(words), "lines": []}]


def _numpy_text(mod: ir.IRModule, name: str, script: Script) -> NumPyText:
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

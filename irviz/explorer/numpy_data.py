"""The functions of a module as NumPy, with the lines of TVMScript that their lines were made of."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import tvm
from tvm import ir, tirx

from irviz.errors import NumPyError
from irviz.explorer.viewer.schema import NumPyText
from irviz.ir.module_functions import drawable_functions
from irviz.ir.node_ids import NodeIds, definitions
from irviz.ir.numpy_code.numpy_program import heading, write_function
from irviz.ir.text.tvmscript_lines import Script
from irviz.ir.tir.statement_lines import statement_offsets
from irviz.view.bidi_escapes import visible

_MOST_FUNCTIONS = 300
"""How many functions are written: about a second."""
_WIDTH = 88


def numpy_texts(mod: ir.IRModule, script: Script) -> list[NumPyText]:
    """Return a module's functions as NumPy, in the order of its TVMScript.

    A function with a construct that NumPy does not have is a comment that names it and its line.
    """
    functions = drawable_functions(mod)
    names = sorted(
        (name for name in functions if name in script.functions), key=script.functions.__getitem__
    )
    texts = [_numpy_text(mod, name, script) for name in names[:_MOST_FUNCTIONS]]
    if len(names) > _MOST_FUNCTIONS:
        words = (
            f"The module has {len(names)} functions; irviz.to_numpy(mod, name) writes those that "
            "are not here."
        )
        texts.append({"function": "", "text": _comment(words), "lines": []})
    head = heading([one["text"] for one in texts])
    return [{"function": "", "text": head, "lines": []}, *texts]


def _numpy_text(mod: ir.IRModule, name: str, script: Script) -> NumPyText:
    offsets = {None: 0, **_offsets(mod[name], name, script)}
    constants: list[tvm.runtime.Tensor] = []
    try:
        written = write_function(mod, name, constants)
    except NumPyError as failure:
        at = offsets.get(failure.origin, 0)
        line = script.functions[name] + at
        words = _comment(f"{name} cannot be written as NumPy: line {line} has {failure.construct}.")
        return {"function": name, "text": words, "lines": [at] * (words.count("\n") + 1)}
    lines: list[int] = []
    enclosing = 0
    for number in range(1, written.source.count("\n") + 2):
        origin = written.lines.get(number)
        if origin is not None:
            enclosing = offsets.get(origin, enclosing)  # the loops of a T.grid share its line
        lines.append(-1 if origin is None else enclosing)
    return {"function": name, "text": visible(written.source), "lines": lines}


def _offsets(function: ir.BaseFunc, name: str, script: Script) -> Mapping[object, int]:
    """Return how many lines below its `def` each part of a function begins, 0 for all of it."""
    if isinstance(function, tirx.PrimFunc):
        return {function: 0, **statement_offsets(function, name)}
    start, ids = script.functions[name], NodeIds()
    found: dict[object, int] = {function: 0}
    for var, binding in definitions(function.params, function.body):
        node = ids.define(var.name)
        if binding is not None and (name, node) in script.lines:
            found[binding] = script.lines[name, node] - start
    return found


def _comment(words: str) -> str:
    plain = visible(" ".join(words.split()))
    return textwrap.fill(plain, _WIDTH, initial_indent="# ", subsequent_indent="# ")

"""TVMScript that every version of Python can read."""

from __future__ import annotations

from typing import Any

from tvm import ir


def tvmscript(printed: ir.IRModule | ir.BaseFunc, **options: Any) -> str:
    """Return the TVMScript of a module or function: `script(**options)`, the same in every Python.

    Python 3.12 lets TVM write sizes as type parameters, `def main[n](...)`, which is no syntax of
    an older Python, and would make what is saved depend on where it was written.
    """
    return str(printed.script(extra_config={"script.use_pep695": False}, **options))

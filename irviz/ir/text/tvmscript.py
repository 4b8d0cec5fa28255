"""TVMScript that every version of Python can read."""

from __future__ import annotations

from typing import Any

from tvm import ir


def tvmscript(printed: ir.IRModule | ir.BaseFunc, **options: Any) -> str:
    """Return the TVMScript of a module or function: `script(**options)`, the same in every Python.

    Python 3.12 lets TVM write sizes as type parameters, `def main[n](...)`, which older Pythons
    cannot parse, and which would make saved files depend on the Python that wrote them.
    """
    return str(printed.script(extra_config={"script.use_pep695": False}, **options))

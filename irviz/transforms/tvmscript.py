"""A module or a function as an expression that reads it from TVMScript, where that says all."""

from __future__ import annotations

from tvm import ir, tirx
from tvm_ffi import structural_equal

from irviz.ir.admission import admit
from irviz.ir.bare_parser import from_admitted


def module_source(mod: ir.IRModule) -> str | None:
    """Return the expression that reads a module; None when it would give another module."""
    return _source(mod, [gvar.name_hint for gvar in mod.functions])


def prim_func_source(function: tirx.PrimFunc, name: str) -> str | None:
    """Return the expression that reads a PrimFunc; None when it would give another."""
    return _source(function.with_attr("global_symbol", name), [name])


def _source(value: ir.IRModule | tirx.PrimFunc, names: list[str]) -> str | None:
    if not all(name.isidentifier() for name in names):
        return None  # such a name is printed as it is, and could say anything
    try:
        text = value.script(show_meta=False)
        if "'''" in text:
            return None
        # names come from the module, and a module may come from a file
        is_same = structural_equal(from_admitted(admit(text).text), value)
    except Exception:  # what is refused, or TVM does not print or read: there is another way
        return None
    body = "\n".join(line for line in text.splitlines() if not line.startswith("# from "))
    return f"tvm.script.from_source(r'''\n{body.strip()}\n''')" if is_same else None

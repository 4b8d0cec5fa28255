"""Modules and PrimFuncs as Python expressions that parse TVMScript, where that is lossless."""

from __future__ import annotations

from tvm import ir, tirx
from tvm_ffi import structural_equal

from irviz.loaders.tvmscript.admission import admit
from irviz.loaders.tvmscript.isolated_parser import parse_admitted


def module_source(mod: ir.IRModule) -> str | None:
    """Return the expression for a module, None if TVMScript does not reproduce it."""
    return _source(mod, [gvar.name_hint for gvar in mod.functions])


def prim_func_source(function: tirx.PrimFunc, name: str) -> str | None:
    """Return the expression for a PrimFunc, None if TVMScript does not reproduce it."""
    return _source(function.with_attr("global_symbol", name), [name])


def _source(value: ir.IRModule | tirx.PrimFunc, names: list[str]) -> str | None:
    if not all(name.isidentifier() for name in names):
        return None  # TVM prints such a name unescaped, so it could contain code
    try:
        text = value.script(show_meta=False)
        if "'''" in text:
            return None
        # names come from the module, which may come from an untrusted file
        is_same = structural_equal(parse_admitted(admit(text).text), value)
    except Exception:  # refused, or TVM cannot print or parse it: the caller embeds it instead
        return None
    body = "\n".join(line for line in text.splitlines() if not line.startswith("# from "))
    return f"tvm.script.from_source(r'''\n{body.strip()}\n''')" if is_same else None

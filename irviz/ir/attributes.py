"""The attributes of an operator call, as text."""

from __future__ import annotations

from tvm import ir

from irviz.ir.type_label import dim_label


def attributes(attrs: ir.Attrs | None) -> tuple[tuple[str, str], ...]:
    """Return the set attributes by name, in TVM's order; the unset ones (None) are left out."""
    if attrs is None:
        return ()
    if isinstance(attrs, ir.DictAttrs):
        items = [(str(key), attrs[key]) for key in attrs.keys()]  # noqa: SIM118 - no iterator
    else:
        names = [field.name for field in type(attrs).__tvm_ffi_type_info__.fields]
        items = [(name, getattr(attrs, name)) for name in names]
    return tuple((name, _text(value)) for name, value in items if value is not None)


def _text(value: object) -> str:
    return dim_label(value) if isinstance(value, ir.Expr) else str(value)

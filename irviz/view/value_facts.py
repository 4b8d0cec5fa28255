"""What a value is, as HTML: its type, its numbers, and a warning where some are none."""

from __future__ import annotations

import math
from html import escape

from irviz.model.summary import Summary
from irviz.view.words import number


def value_html(label: str, summary: Summary | None, text: str = "", words: str = "") -> str:
    """Return the facts of a node's value: of one tensor of it, or of what is only text.

    `words` stand above the facts as they are.
    """
    parts = [f"<h5>value of {escape(label)}</h5>" if label else "<h5>value</h5>"]
    if words:
        parts.append(f'<p class="irviz-hint">{escape(words)}</p>')
    if summary is not None and not summary.is_finite:
        parts.append(f'<p class="irviz-error" role="status">⚠ {escape(not_finite(summary))}</p>')
    facts = _facts(summary) if summary is not None else []
    if text:
        facts.insert(0, ("value", text))
    rows = "".join(f"<dt>{escape(key)}</dt><dd>{escape(fact)}</dd>" for key, fact in facts)
    if rows:
        parts.append(f"<dl>{rows}</dl>")
    return f'<div class="irviz-details">{"".join(parts)}</div>'


def not_finite(summary: Summary) -> str:
    """Return in words how many numbers of an array are none."""
    counted = ((summary.nans, "NaN"), (summary.infs, "Inf"))
    found = " and ".join(f"{count:,} {name}" for count, name in counted if count)
    size = math.prod(summary.shape)
    return f"{found} among {size:,} numbers" if size > 1 else f"the number is {found[2:]}"


def _facts(summary: Summary) -> list[tuple[str, str]]:
    shape = "scalar" if not summary.shape else str(summary.shape)
    facts = [("shape", shape), ("dtype", summary.dtype), ("bytes", f"{summary.nbytes:,}")]
    numbers = [
        ("minimum", summary.minimum),
        ("maximum", summary.maximum),
        ("mean", summary.mean),
        ("std", summary.std),
    ]
    if summary.shape:
        facts += [(name, number(value, 6)) for name, value in numbers if value is not None]
    elif summary.minimum is not None:
        facts.append(("number", number(summary.minimum, 9)))
    return facts

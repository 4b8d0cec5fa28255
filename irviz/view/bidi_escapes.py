"""Escape bidirectional control characters, so that text is shown in the order of its characters."""

from __future__ import annotations

import re

_BIDIRECTIONAL = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """Replace bidirectional control characters by escapes with their code points.

    Unescaped, they could display names in a file in a misleading order (Unicode Technical Report
    36, section 2.5).
    """
    return _BIDIRECTIONAL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)

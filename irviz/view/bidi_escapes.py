"""Text whose order on the page is the order of its characters."""

from __future__ import annotations

import re

_BIDIRECTIONAL = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """Write bidirectional control characters as escapes with their numbers.

    As they are, they would show the names in a file in another order than they have (Unicode
    Technical Report 36, section 2.5).
    """
    return _BIDIRECTIONAL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)

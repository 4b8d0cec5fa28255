"""The limits of what is read from files: its size, its depth, and the time and memory for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SyntaxLimits:
    """The limits of a Python text: its characters, its tokens, and the depth of its syntax tree."""

    characters: int
    tokens: int
    depth: int
    admits_formatted_strings: bool = False


# A large text consists mostly of weights in JSON; a module of 17,000 bindings has one million
# tokens; TVM's own parser fails at about this depth.
TVMSCRIPT_LIMITS = SyntaxLimits(64 * 2**20, tokens=2_000_000, depth=150)
# libcst takes about ten seconds for so many tokens.
UPGRADE_LIMITS = SyntaxLimits(2_000_000, tokens=150_000, depth=100, admits_formatted_strings=True)

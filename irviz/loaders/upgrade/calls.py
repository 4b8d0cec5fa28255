"""Calls to rewrite, and the parts of new ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import libcst as cst

from irviz.loaders.upgrade.dotted_names import DottedNames
from irviz.loaders.upgrade.upgrade_result import AddNote

_NO_SPACE: Final = cst.SimpleWhitespace("")
_TIGHT: Final = cst.AssignEqual(_NO_SPACE, _NO_SPACE)
SPACED: Final = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


@dataclass(frozen=True)
class CallSite:
    """A call: the old one, which has a position and a scope, and the new one, with new parts.

    `meaning` is the full name of the function, and `add_note` adds a note at the call.
    """

    old: cst.Call
    new: cst.Call
    meaning: str
    names: DottedNames
    add_note: AddNote

    def spelled(self, meaning: str) -> cst.BaseExpression:
        """Return a full name as this call's text can write it."""
        return self.names.spelled(meaning, self.old.func)

    def of(self, meaning: str, args: Sequence[cst.Arg]) -> cst.Call:
        """Return the call with another function and other arguments."""
        return self.new.with_changes(func=self.spelled(meaning), args=args)


def callee(node: cst.BaseExpression) -> cst.BaseExpression:
    """Return what a decorator or an expression calls, or the node itself if it calls nothing."""
    return node.func if isinstance(node, cst.Call) else node


def keyword(arg: cst.Arg) -> str:
    """Return the keyword of an argument, or ""."""
    return arg.keyword.value if arg.keyword else ""


def keyword_arg(name: str, value: cst.BaseExpression) -> cst.Arg:
    """Return an argument like `name=value`."""
    return cst.Arg(value, keyword=cst.Name(name), equal=_TIGHT)


def with_keywords(args: Sequence[cst.Arg], new: Mapping[str, str]) -> list[cst.Arg]:
    """Return arguments with other keywords."""
    return [
        arg.with_changes(keyword=cst.Name(new[keyword(arg)])) if keyword(arg) in new else arg
        for arg in args
    ]


def with_arg(args: Sequence[cst.Arg], new: cst.Arg) -> list[cst.Arg]:
    """Return arguments with one more at the end, in the layout of the last one."""
    if not args:
        return [new]
    *first, last = args
    closing = new.with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
    return [*first, last.with_changes(comma=SPACED, whitespace_after_arg=_NO_SPACE), closing]
